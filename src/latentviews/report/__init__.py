"""One HTML file that says what was fitted, what was found and what it is worth."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from latentviews._files import path_to_write
from latentviews.report.contents import Contents, report_contents
from latentviews.report.crowd import write_crowd_report
from latentviews.report.page import page, write_page

__all__ = ["Contents", "write_contents", "write_crowd_report", "write_report"]

INSTEAD = {  # of models without a report
    "CrowdLabels": "which write_crowd_report takes",
    "KernelHMM": (
        "which `StateDisplay`, `TransitionDisplay`, `ForecastDisplay` and `ComponentDisplay` of latentviews.plot draw, "
        "and `bic` and `score` judge"
    ),
    "PredictiveStateModel": "whose forecasts `ForecastDisplay` of latentviews.plot draws, and `score` judges",
    "LowRankDensity": "two columns of which `DensityDisplay` of latentviews.plot draws, and which `score` judges",
    "TransformedDensity": "which `score` judges by rows that it was not fitted to",
    "ChangePoints": "which `ChangePointDisplay` of latentviews.plot draws, and `segments` sums up",
    "DriftMonitor": "which `DriftDisplay` of latentviews.plot draws",
}


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

    Of a `MultiViewMixture` it holds the sizes of the classes with intervals, the densities of every view, rows in two
    columns of choice, how certain the rows' classes are, what `rank_test` and `diagnose` say, the settings, and how to
    use the model; at most 200,000 rows are classified, and 20,000 drawn, so that the file stays small. Of a
    `LatentClass` it holds the answers of every class and how well they fit, of a `TopicModel` the words or densities
    of every part, of a `CommunityModel` the links and nodes of every community. `write_crowd_report` is for
    `CrowdLabels`.

    Parameters
    ----------
    model : fitted MultiViewMixture, LatentClass, TopicModel or CommunityModel
    X : array of shape (n_samples, n_features), or data frame
        The rows that the report is on: those the model was fitted to, or others. Columns of a frame are found by name.
        Of a graph nothing more than the model is looked at.
    path : str or path
        The file; an older one is replaced once the new one is whole.
    columns : sequence of str or None
        The names of X's columns, words for example; by default those of the frame, or those the model was fitted with.
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
    path = path_to_write(path, "A report")
    settings: dict[str, Any] = {"columns": columns, "source": source, "title": title, "saved": saved}
    if hasattr(model, "start_objectives_") and hasattr(model, "exchangeable"):
        write_contents(report_contents(model, X, **settings, random_state=random_state), path)
    else:
        write_page(_discrete_page(model, X, settings), path)
    return path


def _discrete_page(model: Any, X: Any, settings: dict[str, Any]) -> str:
    """The page of a model of categories, words or links; what makes it is imported where there is one."""
    from latentviews.discrete.communities import CommunityModel
    from latentviews.discrete.latent_class import LatentClass
    from latentviews.discrete.topics import TopicModel
    from latentviews.report.classes import classes_page
    from latentviews.report.communities import communities_page
    from latentviews.report.topics import topics_page

    if isinstance(model, LatentClass):
        return classes_page(model, X, **settings)
    if isinstance(model, TopicModel):
        return topics_page(model, X, **settings)
    if isinstance(model, CommunityModel):
        return communities_page(model, settings["source"], settings["title"], settings["saved"])
    raise TypeError(
        "write_report takes a fitted MultiViewMixture, LatentClass, TopicModel or CommunityModel; got a "
        f"{type(model).__name__}, {_instead(model)}."
    )


def _instead(model: Any) -> str:
    """What there is for a model that has no report."""
    if type(model).__name__ in INSTEAD:
        return INSTEAD[type(model).__name__]
    if all(hasattr(model, part) for part in ("views_", "components_", "weights_")):
        return "whose views `ComponentDisplay` draws"
    told = [name for name in ("score", "predict", "transform") if hasattr(model, name)]
    return f"of which its methods tell: {' and '.join(told)}" if told else "of which its attributes tell"


def write_contents(contents: Contents, path: Path) -> None:
    """The page at ``path``, whole or not at all: written aside, then renamed.

    Parameters
    ----------
    contents : Contents
    path : str or Path

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from latentviews import MultiViewMixture
    >>> from latentviews.datasets import make_multiview
    >>> from latentviews.report import write_contents
    >>> from latentviews.report.contents import report_contents
    >>> X = make_multiview(100, 2, random_state=0).X
    >>> model = MultiViewMixture(2, polish=None, random_state=0).fit(X)
    >>> settings = {"columns": None, "source": None, "title": "Two classes", "saved": None, "random_state": 0}
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> write_contents(report_contents(model, X, **settings), path)
    >>> path.exists()
    True
    """
    write_page(page(contents), path)
