"""The README shows what its example really prints."""

import contextlib
import io
import re
from pathlib import Path

import matplotlib as mpl
import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()


EXAMPLES = re.findall(r"```python\n((?:(?!```).)*)```\n\n```\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize(("code", "shown"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_print_what_the_readme_shows(code, shown):
    mpl.use("Agg")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == shown


def test_the_example_is_short():
    code = re.search(r"```python\n(.*?)```", README, flags=re.DOTALL).group(1)
    assert len(code.splitlines()) <= 16
