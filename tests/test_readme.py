"""The README shows what its example really prints."""

import contextlib
import io
import re
from pathlib import Path

import matplotlib as mpl

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_example_prints_what_the_readme_shows():
    mpl.use("Agg")
    code, shown = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README, flags=re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == shown


def test_the_example_is_short():
    code = re.search(r"```python\n(.*?)```", README, flags=re.DOTALL).group(1)
    assert len(code.splitlines()) <= 16
