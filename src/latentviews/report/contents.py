"""The numbers of a report: what was fitted, on what, what was found, and what it is worth."""

import datetime
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from latentviews._constants import REPORTED_CLASSES
from latentviews._numbers import as_shares, generator_of
from latentviews._validation import UnsupportedError
from latentviews.core import streams
from latentviews.core.kernels.space import Space
from latentviews.core.kernels.spaces import Discrete
from latentviews.core.selection import RankTest, dependence_rank, table_rank
from latentviews.core.view_names import view_names
from latentviews.diagnosis.checked_rows import CheckedRows, checked_rows
from latentviews.diagnosis.diagnose import Diagnosis, Finding, most_probable
from latentviews.diagnosis.findings import JUDGING
from latentviews.diagnosis.moments import MomentQuality
from latentviews.plot.view_densities import ViewDensities, row_densities, view_densities
from latentviews.report.sizes import Sizes, class_sizes, of_sample

POINTS = 20_000  # rows in the scatter plot
VALUES = 600_000  # and at most this many of their values, 2 bytes each
PANELS = 48  # views whose densities are drawn
AXES = 60  # columns to choose from in the scatter plot
RANK_VIEWS = 12  # views among which dependence is counted
RANK_ROWS = 2000  # and rows
RANK_DRAWS = 19  # and permutations, for a level of a twentieth
BEYOND = 7  # directions of a view that it is counted in, beside those that the classes of the model have
BELOW = "; the table below the checks has all"  # where a sentence for elsewhere names the report
STEPS = (0.99, 0.95, 0.8)  # posteriors that part certain rows from less certain ones


class Column(NamedTuple):
    """One column of the rows."""

    name: str
    view: int
    space: Space
    missing: int  # cells without a value, among all rows
    typical: np.ndarray  # (k, 3): quartiles of a number, directions of an angle, value, share of a code
    objects: bool = False  # whether values are the numbers of objects, which have no density

    @property
    def kind(self) -> str:
        """What a value is: a number, an angle, a code or an object."""
        return "object" if self.objects else self.space.noun


class Points(NamedTuple):
    """Rows for the scatter plot, as whole numbers on a scale of their column."""

    columns: list[int]  # indices into `Contents.columns`
    values: np.ndarray  # (n, p), uint16; 65535 where missing
    scales: list[tuple[float, float]]  # the values that 0 and 65534 stand for
    limits: list[tuple[float, float]]  # the ends of the axes
    labels: np.ndarray  # (n,), uint8; k where noise
    certainty: np.ndarray  # (n,), uint8: 255 is certain


class Wording(NamedTuple):
    """How a report speaks to its reader: in the words of Python, or in those of another way to the library."""

    say: Callable[[str], str] = str
    options: Mapping[str, str] = MappingProxyType({})  # what parameters are called, where it is something else
    command: str | None = None  # that fits the model again


@dataclass(frozen=True, eq=False)
class Contents:
    """All that a report says.

    Attributes
    ----------
    title : str
    source : str or None
        Where the rows are from.
    made : datetime
    model_name : str
        The class of the model.
    settings : dict
        The value of every parameter, and whether it is not the default.
    saved : str or None
        Where the model was saved.
    reading : bool
        Whether the model remembers how its rows were read from a file.
    n_rows : int
    n_incomplete : int
        Rows with a missing cell.
    n_classified : int
        Rows whose class was looked at.
    columns : list of Column
    view_names : list of str
    named_views : bool
        Whether the names are their own, not those of the columns.
    sizes : Sizes
        How common the classes are, with intervals.
    counts : array of shape (k,)
        Rows by their most probable class.
    n_noise : int
        Rows most probably in none.
    certainty : array of shape (k, 4)
        Shares of a class's rows by certainty, the least certain last.
    confused : tuple or None
        The two classes most often in doubt, and their share of the doubt.
    panels : list of ViewDensities
    panel_views : list of int
        The view of every panel.
    diagnosis : Diagnosis
    rank : RankTest or None
    counted : bool
        Whether that is the test of the fit, on its rows.
    points : Points
        Rows for the scatter plot.
    wording : Wording
        How the report speaks to its reader.

    Examples
    --------
    >>> from latentviews import MultiViewMixture
    >>> from latentviews.datasets import make_multiview
    >>> from latentviews.report.contents import report_contents
    >>> X = make_multiview(100, 2, random_state=0).X
    >>> model = MultiViewMixture(2, polish=None, random_state=0).fit(X)
    >>> settings = {"columns": None, "source": None, "title": "Two classes", "saved": None, "random_state": 0}
    >>> contents = report_contents(model, X, **settings)
    >>> contents.title, contents.n_rows, len(contents.panels)
    ('Two classes', 100, 3)
    """

    title: str
    source: str | None
    made: datetime.datetime
    model_name: str
    settings: dict[str, tuple[str, bool]]
    saved: str | None
    reading: bool
    n_rows: int
    n_incomplete: int
    n_classified: int
    columns: list[Column]
    view_names: list[str]
    named_views: bool
    sizes: Sizes
    counts: np.ndarray
    n_noise: int
    certainty: np.ndarray
    confused: tuple[int, int, float] | None
    panels: list[ViewDensities]
    panel_views: list[int]
    diagnosis: Diagnosis
    rank: RankTest | None
    counted: bool
    points: Points
    wording: Wording

    @property
    def findings(self) -> list[Finding]:
        """What `diagnose` looked at, in the words of whoever asked."""
        said = [(finding, self.wording.say(finding.text)) for finding in self.diagnosis.findings]
        return [finding._replace(text=text.replace("; see the report", BELOW)) for finding, text in said]


def report_contents(
    model: Any,
    X: Any,
    *,
    columns: Sequence[str] | None,
    source: str | None,
    title: str | None,
    saved: str | None,
    random_state: Any,
    wording: Wording | None = None,
    n_in_file: int | None = None,
    checked: CheckedRows | None = None,
) -> Contents:
    """Everything a report on ``model`` and the rows ``X`` says; these may be a sample of so many in a file.

    ``checked`` is what `checked_rows` found of them, where that is known.
    """
    rng = generator_of(random_state)
    plain, table, names, some, posteriors, here, diagnosis = checked or checked_rows(model, X, columns, rng)
    labels, k = most_probable(posteriors)[0], posteriors.shape[1]
    if k > REPORTED_CLASSES:
        raise ValueError(f"A report shows at most {REPORTED_CLASSES} classes; the model has {k}.")
    named = list(view_names(plain, names))
    described = _columns(plain, table, some, labels, k, names)
    drawn = range(min(len(plain.views_), PANELS))
    panels = [(t, panel) for t in drawn for panel in _panels(plain, t, some, posteriors, names)]
    return Contents(
        title=title or (f"Hidden classes in {source}" if source else "Hidden classes"),
        source=source,
        made=datetime.datetime.now().astimezone(),
        model_name=type(model).__name__,
        settings=_settings(model),
        saved=saved,
        reading=hasattr(model, "reading_"),
        n_rows=len(table),
        n_incomplete=int(np.isnan(table[:, [j for view in plain.views_ for j in view]]).any(axis=1).sum()),
        n_classified=len(some),
        columns=described,
        view_names=named,
        named_views=isinstance(getattr(model, "views", None), Mapping),
        sizes=of_sample(class_sizes(plain, table, posteriors, here, rng), len(table), n_in_file),
        counts=diagnosis.counts,
        n_noise=int(np.sum(labels < 0)),
        certainty=_certainty(posteriors, labels),
        confused=_confused(posteriors),
        panels=[panel for _, panel in panels],
        panel_views=[t for t, _ in panels],
        diagnosis=diagnosis,
        rank=_rank(plain, table, diagnosis.moments, rng),
        counted=getattr(plain, "rank_test_", None) is not None,
        points=_points(described, plain, some, posteriors, rng),
        wording=Wording() if wording is None else wording,
    )


def _settings(model: Any) -> dict[str, tuple[str, bool]]:
    """Every parameter as text, and whether it is not the default."""
    known = inspect.signature(type(model)).parameters
    return {key: (repr(v), repr(v) != repr(known[key].default)) for key, v in model.get_params(deep=False).items()}


# ------------------------------------------------------------------------------------------------- classes and rows


def _certainty(posteriors: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The shares of every class's rows whose largest posterior lies between `STEPS`, (k, 4)."""
    counts = np.zeros((posteriors.shape[1], len(STEPS) + 1))
    members = labels >= 0
    steps = np.digitize(-posteriors[members].max(axis=1), -np.array(STEPS))
    np.add.at(counts, (labels[members], steps), 1)
    return as_shares(counts, axis=1)


def _confused(posteriors: np.ndarray) -> tuple[int, int, float] | None:
    """The pair of classes with most of Σ_i r_ig r_ih, and its share over all pairs; None where there is one pair."""
    doubt = np.triu(posteriors.T @ posteriors, 1)
    if len(doubt) < 3 or not doubt.sum() > 0:
        return None
    g, h = np.unravel_index(doubt.argmax(), doubt.shape)
    return int(g), int(h), float(doubt[g, h] / doubt.sum())


def _columns(
    model: Any, table: np.ndarray, some: np.ndarray, labels: np.ndarray, k: int, names: list[str]
) -> list[Column]:
    """Every column that is in a view."""
    found = []
    for t, view in enumerate(model.views_):
        domain = model.components_[t].domain
        for place, j in enumerate(view):
            space = Discrete() if domain is None else domain.space.column(place)
            members = [values[~np.isnan(values)] for values in (some[labels == h, j] for h in range(k))]
            told = [domain is not None and len(values) > 0 for values in members]
            each = zip(members, told, strict=True)
            typical = np.array([space.typical(values) if known else (np.nan,) * 3 for values, known in each])
            found.append(Column(names[j], t, space, int(np.isnan(table[:, j]).sum()), typical, domain is None))
    return found


# --------------------------------------------------------------------------------------------------------- pictures


def _panels(model: Any, t: int, some: np.ndarray, posteriors: np.ndarray, names: list[str]) -> list[ViewDensities]:
    """The densities of a view: its own for a line or a plane, else one line per column from the rows' posteriors."""
    view, components = model.views_[t], model.components_[t]
    if components.domain is None:  # objects
        return []
    present = ~np.isnan(some[:, view]).any(axis=1)
    rows, chances = some[present][:, view], posteriors[present]
    labels = tuple(names[j] for j in view)
    spaces = [components.space.column(c) for c in range(len(view))]
    if len(view) == 1 or (len(view) == 2 and not any(space.finite for space in spaces)):
        return [view_densities(components, model.weights_, labels, 256 if len(view) == 1 else 64, rows)]
    return [row_densities(rows[:, [c]], chances, labels[c], spaces[c]) for c in range(len(view))]


def _points(
    columns: list[Column], model: Any, some: np.ndarray, posteriors: np.ndarray, rng: np.random.Generator
) -> Points:
    """Some rows, all columns or the first of them; codes a little apart, so that rows do not hide each other."""
    flat = [j for view in model.views_ for j in view]
    places = ([c for c, column in enumerate(columns) if not column.objects] or list(range(len(flat))))[:AXES]
    used = [flat[c] for c in places]
    rows, chances = streams.sample(some, min(POINTS, VALUES // len(used)), rng, posteriors)
    values = rows[:, used]
    limits = []
    for c, place in enumerate(places):
        space = columns[place].space
        values[:, c] = space.scattered(values[:, c], rng)
        limits.append(space.axis(*np.nanquantile(values[:, c], [0.0, 1.0] if space.finite else [0.001, 0.999])))
    scales = [(float(np.nanmin(column)), float(np.nanmax(column))) for column in values.T]
    low, high = np.array(scales).T
    share = (values - low) / np.where(high > low, high - low, 1.0)
    whole = np.where(np.isnan(share), 65535, np.round(65534 * share)).astype(np.uint16)
    labels, certain = most_probable(chances)
    labels = np.where(labels < 0, chances.shape[1], labels).astype(np.uint8)
    certainty = np.round(255 * certain).astype(np.uint8)
    return Points(places, whole, scales, limits, labels, certainty)


# ------------------------------------------------------------------------------------------------------------ tests


def _rank(model: Any, table: np.ndarray, moments: MomentQuality | None, rng: np.random.Generator) -> RankTest | None:
    """The test that counted the classes, or the same test now; None where rows are few or share no two views.

    It is in the feature maps of the moments, where there are some.
    """
    if getattr(model, "rank_test_", None) is not None:
        return model.rank_test_
    if len(table) < JUDGING:
        return None
    (rows,) = streams.sample(table, RANK_ROWS, rng)
    n_views, n_directions = min(len(model.views_), RANK_VIEWS), len(model.weights_) + BEYOND
    try:
        if moments is not None and moments.views is not None:
            views = moments.views.some(range(n_views))
            return dependence_rank(rows, views, rng, n_permutations=RANK_DRAWS, n_directions=n_directions)
        return _rank_of_table(model, rows, n_views, n_directions, rng)
    except UnsupportedError:
        return None


def _rank_of_table(model: Any, rows: np.ndarray, n_views: int, n_directions: int, rng: np.random.Generator) -> RankTest:
    """The test in feature maps of its own."""

    def own(setting: str) -> Any:
        value = getattr(model, setting, None)
        return list(value)[:n_views] if isinstance(value, list | tuple) else value

    kernel = "kernels_" if hasattr(model, "kernels_") and model.features is None else "kernel"
    views, masses = model.views_[:n_views], getattr(model, "point_masses", "auto")
    return table_rank(rows, views, own(kernel), own("features"), masses, 0.05, RANK_DRAWS, rng, n_directions)
