"""Formulas as MathML, which browsers draw by themselves: no script, nothing asked of any network."""

import html
import re
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import accents, tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

SIZES = re.compile(r"\\[bB]igg?[lr]?(?![a-zA-Z])")  # MathML stretches brackets by itself
NAMED = re.compile(r"&(?!lt;|gt;|amp;|quot;)\w+;")  # HTML's characters by name, which XML does not know
SPACE = "http://www.w3.org/1998/Math/MathML"
ElementTree.register_namespace("", SPACE)

logger = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer, ``html_math_renderer = "mathml"``."""
    app.add_html_math_renderer("mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def visit_inline(translator: Any, node: nodes.Element) -> None:
    """A formula in a sentence."""
    translator.body.append(mathml(node, as_block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.Element) -> None:
    """A formula on a line of its own."""
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    translator.body.append(mathml(node, as_block=True))
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def mathml(node: nodes.Element, as_block: bool) -> str:
    """The formula of a node; a warning, and nothing, where it cannot be read."""
    try:
        return subscripts_beside(tex2mathml(SIZES.sub("", node.astext()), as_block=as_block))
    except MathError as error:
        logger.warning("%s In the formula %s", error, node.astext(), location=node)
        return ""


def subscripts_beside(formula: str) -> str:
    """The formula with the subscript of a letter that has an accent beside it, where docutils puts it underneath."""
    tree = ElementTree.fromstring(NAMED.sub(lambda named: html.unescape(named[0]), formula))
    for both in list(tree.iter(f"{{{SPACE}}}munderover")):
        letter, subscript, above = both
        if above.text in accents.values():
            accented = ElementTree.Element(f"{{{SPACE}}}mover", accent="true")
            accented.extend([letter, above])
            both.tag, both[:] = f"{{{SPACE}}}msub", [accented, subscript]
    return ElementTree.tostring(tree, encoding="unicode")
