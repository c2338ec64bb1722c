"""One HTML file that says what was fitted, what was found and what it is worth."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from latentviews.report.contents import Contents, report_contents
from latentviews.report.crowd import write_crowd_report
from latentviews.report.page import page, write_page

__all__ = ["Contents", "write_contents", "write_crowd_report", "write_report"]


def write_report(
    model: Any,
    X: Any,
    path: Any,
    *,
    columns: Sequence[str] | None = None,
    source: str | None = None,
    title: str | None = None,
    saved: str | None = None,
    random_state: Any = 0,
) -> Path:
    """Write a report on a fitted model as one HTML file, which needs nothing else to be read.

    It holds the sizes of the classes with intervals, the densities of every view, rows in two columns of choice, how
    certain the rows' classes are, what `rank_test` and `diagnose` say, the settings, and how to use the model.
    The file stays small however many rows there are: at most 200,000 are classified, 20,000 are drawn.

    Parameters
    ----------
    model : fitted MultiViewMixture
    X : array of shape (n_samples, n_features), or data frame
        The rows that the report is on: those the model was fitted to, or others. Columns of a frame are found by name.
    path : str or path
        The file; an older one is replaced once the new one is whole.
    columns : sequence of str or None
        The names of X's columns; by default those of the frame, or those the model was fitted with.
    source : str or None
        What the rows come from, such as the name of a file.
    title : str or None
    saved : str or None
        The file in which the model is saved, for the example of how to load it.
    random_state : int, RandomState or None, default=0
        For samples, intervals and tests.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> from latentviews import MultiViewMixture
    >>> from latentviews.datasets import make_multiview
    >>> from latentviews.report import write_report
    >>> X = make_multiview(500, 2, random_state=0).X
    >>> model = MultiViewMixture(2, random_state=0).fit(X)
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> write_report(model, X, pathlib.Path(folder.name) / "report.html", source="made up").name
    'report.html'
    """
    check_is_fitted(model)
    if not hasattr(model, "start_objectives_") or not hasattr(model, "exchangeable"):
        raise TypeError(f"write_report takes a fitted MultiViewMixture; got a {type(model).__name__}.")
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"A report is one file, and {path} is a directory; name a file in it.")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"The report cannot be written: there is no directory {path.parent}; make it first.")
    contents = report_contents(
        model, X, columns=columns, source=source, title=title, saved=saved, random_state=random_state
    )
    write_contents(contents, path)
    return path


def write_contents(contents: Contents, path: Path) -> None:
    """The page at ``path``, whole or not at all: written aside, then renamed.

    Parameters
    ----------
    contents : Contents
    path : str or Path
    """
    write_page(page(contents), path)
