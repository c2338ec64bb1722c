"""How Sphinx builds these pages: `make docs`, result in docs/_build/html."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

import latentviews

project = "latentviews"
author = "the authors of latentviews"
version = release = latentviews.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "formulas",  # the last two are in _extensions
    "measured",
]
default_role = "py:obj"  # `KernelHMM` in a docstring is a link
templates_path = ["_templates"]
exclude_patterns = ["_build"]

# Markdown: $…$ is a formula, ``:::`` a box; a link to "#a-heading" works on every page
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# a page per public name, made from its docstring; methods of our own mixins belong to it, scikit-learn's do not
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_use_plots = False

# the scripts in examples/ as pages, with what they print and draw; GALLERY=0 only shows them
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/uses",
    "doc_module": ("latentviews",),
    "plot_gallery": os.environ.get("GALLERY") != "0",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "write_computation_times": False,
    "show_signature": False,
}
rst_prolog = ".. currentmodule:: latentviews"  # names in the scripts' text are links

html_theme = "furo"
html_title = "latentviews"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_search_summary = False  # it fetches pages, which browsers refuse for local files
html_show_sphinx = False
html_show_copyright = False
pygments_style = "friendly"
highlight_language = "text"  # of a block that names no language


def setup(app):
    """Fields of named tuples are in the section of attributes, and have no docstring of their own to be shown below."""
    app.connect("autodoc-skip-member", lambda *given: type(given[3]).__name__ == "_tuplegetter" or None)
