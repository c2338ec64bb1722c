"""What the assumptions behind a fitted model are worth on this data, and what to do where they fail."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import to_numpy
from latentviews._numbers import effective_rows, generator_of
from latentviews._sentences import counted
from latentviews._validation import check_count, is_auto
from latentviews.core import streams
from latentviews.core.features.point_masses import which_mass
from latentviews.core.point_masses import masses_of
from latentviews.core.tables import Columns, read_table
from latentviews.core.view_names import view_names
from latentviews.core.views import read_blocks
from latentviews.diagnosis import findings
from latentviews.diagnosis.copies import copied_columns
from latentviews.diagnosis.dependence import (
    FEWEST_MEMBERS,
    WithinClassDependence,
    drawn_classes,
    within_class_dependence,
)
from latentviews.diagnosis.findings import CERTAIN, JUDGING, Finding
from latentviews.diagnosis.moments import MomentQuality, moment_quality
from latentviews.diagnosis.point_masses import ExactValues, apart_values, exact_values
from latentviews.diagnosis.shares import row_shares
from latentviews.diagnosis.splits import classes_within, clumps_within
from latentviews.mixtures.problem import classes_of

ROWS = 10_000  # rows looked at
OTHERS = {  # models that have checks of their own
    "CommunityModel": "`converged_`, and other seeds",
    "CrowdLabels": "`write_crowd_report` and `spammer_probability_`",
    "KernelHMM": "`start_objectives_`, `start_agreements_`, `bic` and `score` of held-out sequences",
    "LatentClass": "`goodness_of_fit`, `bootstrap_test` and `write_report`",
    "LowRankDensity": "`score` of held-out rows, and `mass_`",
    "PredictiveStateModel": "`validation_errors_` and `score` of held-out sequences",
    "TopicModel": "`write_report`, `converged_` and `perplexity` of held-out texts",
}
FAR = 0.01  # rows beyond the range of a fit that are too many
SQUEEZED = 0.02  # of the spread in a fit: less is another scale


def most_probable(posteriors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The most probable class of every row and its probability; -1 is noise, which has what classes leave to one."""
    noise, best = 1 - posteriors.sum(axis=1), posteriors.max(axis=1)
    return np.where(noise > best, -1, posteriors.argmax(axis=1)), np.maximum(noise, best)


def fitted_ranges(model: Any) -> Iterator[tuple[int, float, float, float]]:
    """Every column with an order, and the least and largest value and the spread that a model knows of it."""
    for view, component in zip(model.views_, model.components_, strict=True):
        domain = component.domain
        if domain is None or not any(domain.space.column(c).ordered for c in range(len(view))):
            continue
        low, high = domain.nodes.min(axis=0) - domain.cell / 2, domain.nodes.max(axis=0) + domain.cell / 2
        for c, j in enumerate(view):
            if domain.space.column(c).ordered:
                yield j, low[c], high[c], domain.spread[c]


def outside_range(model: Any, rows: np.ndarray) -> dict[int, float]:
    """Columns whose values a model was not fitted to, and the share of rows in each that it does not know.

    Those with more than a hundredth of the rows beyond all that the model was fitted to, or with values so close to
    each other that they must be on another scale (then the share is one).
    """
    found, masses = {}, masses_of(model)  # where rows may be, wherever the others are
    for j, low, high, spread in fitted_ranges(model):
        x = rows[~np.isnan(rows[:, j]) & (which_mass(rows[:, j], masses.get(j, ())) < 0), j]
        share = float(np.mean((x < low) | (x > high))) if len(x) else 0.0
        close = len(x) >= FEWEST_MEMBERS and np.ptp(np.quantile(x, [0.05, 0.95])) < SQUEEZED * spread
        # not where a few rows of the fit itself are far out; of two values the kernel is as wide as their distance
        if close and np.ptp(x) < spread / 2:
            share = 1.0
        if share > FAR:
            found[j] = share
    return found


def outside_sentence(found: dict[int, float], names: Sequence[str]) -> str:
    """What `outside_range` found."""
    listed = [f"{names[j]} ({share:.0%} of the rows)" for j, share in list(found.items())[:8]]
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    return (
        f"Values lie outside the range or scale that the model was fitted to, in {', '.join(listed)}{more}: their "
        "classes mean little. Are they in the same units, and transformed in the same way?"
    )


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What `diagnose` finds: print ``summary()`` first; the fields hold the numbers behind it.

    Attributes
    ----------
    n_rows : int
        Rows looked at.
    view_names : tuple of str
    weights : array of shape (k,)
        Of the classes, in the fit.
    moments : MomentQuality or None
        The spectrum and its errors; None where the moments do not support k classes.
    mass : array of shape (n_views, k)
        Integrals of components before they are densities; no objects.
    clipped : array of shape (n_views, k)
        The share of their mass that was negative.
    effective_rows : array of shape (k,)
        How many rows a class rests on: the expected Σ r, or Kish's (Σ r)² / Σ r² where fewer.
    certainty : array of shape (n_rows,)
        The largest posterior of every row.
    counts : array of shape (k,)
        Rows by their most probable class.
    outside : dict
        Columns with values beyond the range of the fit, and the share of the rows that have them.
    dependence : WithinClassDependence
        HSIC of every two views inside every class.
    start_objectives : dict
        What every start reached.
    converged : bool
    start_agreements : dict
        Adjusted Rand index of every start's partition with the best one's.
    n_fitted : int
        Rows that the polish saw; zero where not known.
    agreement : float or None
        That of the starts' partitions with each other, where the fit allows for dependence.
    within : array of shape (k,) or None
        How many classes the rows of each look like.
    exact : dict
        Values that many rows of a column have exactly.
    apart : dict
        Columns of which some rows have one value far from all others: that value, how many rows, the value next to it.
    copies : tuple of pairs of str
        Columns of different views that are the same up to scale.
    tried : bool
        Whether the fit could have allowed for dependence, and held-out rows spoke against it.
    refused : bool
        Whether no copulas can be had of such views.
    exchangeable : bool
        Whether views share their distributions.
    counted : bool
        Whether the number of classes was left to the fit.
    counted_by_rank : int or None
        How many classes `rank_test` counted in the fit, before it split them.
    shares : array of shape (k,)
        How common the classes are among these rows: means of their posteriors.
    shifted : bool
        Whether these are not the weights of the fit: then the rows are others.

    Examples
    --------
    >>> from latentviews import MultiViewMixture, diagnose
    >>> from latentviews.datasets import make_multiview
    >>> X = make_multiview(100, 2, random_state=0).X
    >>> diagnose(MultiViewMixture(2, polish=None, random_state=0).fit(X), X, random_state=0).n_rows
    100
    """

    n_rows: int
    view_names: tuple[str, ...]
    weights: np.ndarray
    moments: MomentQuality | None = field(repr=False)
    mass: np.ndarray = field(repr=False)
    clipped: np.ndarray = field(repr=False)
    effective_rows: np.ndarray
    certainty: np.ndarray = field(repr=False)
    counts: np.ndarray
    outside: dict[str, float]
    dependence: WithinClassDependence = field(repr=False)
    start_objectives: dict[str, float]
    converged: bool
    start_agreements: dict[str, float] = field(default_factory=dict)
    n_fitted: int = 0
    agreement: float | None = None
    within: np.ndarray | None = None
    exact: dict[str, ExactValues] = field(default_factory=dict)
    apart: dict[str, tuple[float, int, float]] = field(default_factory=dict)
    copies: tuple[tuple[str, str], ...] = ()
    tried: bool = False
    refused: bool = False
    exchangeable: bool = False
    counted: bool = False
    counted_by_rank: int | None = None
    shares: np.ndarray = field(default_factory=lambda: np.empty(0))
    shifted: bool = False

    @property
    def pi_min(self) -> float:
        """The weight of the rarest class."""
        return float(self.weights.min())

    @property
    def uncertain(self) -> float:
        """The share of rows whose largest posterior is below 0.8."""
        return float(np.mean(self.certainty < CERTAIN))

    @property
    def findings(self) -> list[Finding]:
        """Everything that was looked at, in the order of the summary."""
        if self.n_rows < JUDGING:
            return [*_on_range(self), *findings.on_few_rows(self)]
        parts: tuple[findings.Part, ...] = (
            *(_on_range, findings.on_shares, findings.on_exact, findings.on_copies, findings.on_moments),
            findings.on_components,
            *(findings.on_dependence, findings.on_splits, findings.on_views, findings.on_starts, findings.on_rows),
        )
        return [finding for part in parts for finding in part(self)]

    @property
    def worst(self) -> str | None:
        """What speaks most against the fit: a failed assumption before a small class; None where nothing does."""
        if self.n_rows < JUDGING:
            return self.findings[0].text
        parts: tuple[findings.Part, ...] = (
            *(_on_range, findings.on_shares, findings.on_exact, findings.on_copies, findings.on_dependence),
            *(findings.on_splits, findings.on_moments),
            *(findings.on_starts, findings.on_components, findings.on_rows, findings.on_views),
        )
        doubts = (finding.text for part in parts for finding in part(self) if finding.trusted is False)
        return next(doubts, None)

    def summary(self) -> str:
        """What can be trusted, what cannot, and what to do, in plain sentences.

        Returns
        -------
        str
        """
        k, n_views = len(self.weights), len(self.view_names)
        found = self.findings
        lines = [
            f"Diagnosis of {counted(k, 'class', 'classes')} in {counted(n_views, 'view')}, from "
            f"{counted(self.n_rows, 'row')}."
        ]
        for trusted, title in ((True, "What can be trusted:"), (False, "What cannot, and what to do:")):
            texts = [finding.text for finding in found if finding.trusted is trusted]
            lines += ["", title, *(f"- {text}" for text in texts or ["nothing was found."])]
        unseen = [finding.text for finding in found if finding.trusted is None]
        lines += ["", "What could not be looked at:", *(f"- {text}" for text in unseen)] if unseen else []
        return "\n".join(lines)


def diagnose(model: Any, X: Any, *, n_permutations: int = 199, random_state: Any = None) -> Diagnosis:
    r"""What the assumptions behind a fitted model are worth on the data it was fitted to.

    Looked at are the moments (a gap in their spectrum, the error of σ_k and of the whitened tensor, ρ and π_min: what
    Theorem 2 of Song et al. 2014 is made of), mass and negativity of components, how many rows stand behind a class,
    whether views depend inside it, whether its rows look like several classes to `rank_test`, whether starts agree,
    and how certain the rows' classes are.

    Dependence is tested by HSIC (Gretton et al. 2008), with a kernel per view, on rows drawn into classes by their
    posteriors. P-values are corrected for all classes and pairs of views together: a standardised statistic z_i is
    compared with the largest of all tests' null draws z_jb, b = 1, …, B (Westfall & Young 1993, single step),

    .. math:: p_i = \frac{1 + \#\{b : \max_j z_{jb} \ge z_i\}}{1 + B} .

    Tests of different pairs are asymptotically independent where views are, since E[φ_1 φ_2 φ_1 φ_3] = 0 for centred
    features, so that their draws can be put side by side. Errors of the posteriors alone make weak dependence: an
    effect below 0.1 is not held against the model.

    Parameters
    ----------
    model : fitted MultiViewMixture
    X : data of the kind it was fitted to
        At most 10,000 rows are looked at; a pair of views is tested on those that have both.
    n_permutations : int, default=199
        Null draws of every test, 19 where these give no corrected p-value below 0.3.
    random_state : int, RandomState or None

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> from latentviews import MultiViewMixture, diagnose
    >>> from latentviews.datasets import make_multiview
    >>> X = make_multiview(2000, 2, random_state=0).X
    >>> diagnose(MultiViewMixture(2, random_state=0).fit(X), X, random_state=0).dependence.flagged()
    []
    """
    check_is_fitted(model)
    if not hasattr(model, "start_objectives_") or not hasattr(model, "exchangeable"):
        instead = OTHERS.get(type(model).__name__)
        more = f" For it see {instead}." if instead else ""
        raise TypeError(f"diagnose looks at a fitted MultiViewMixture; got a {type(model).__name__}.{more}")
    n_permutations, rng = check_count("n_permutations", n_permutations), generator_of(random_state)
    data, columns = read_table(model, X, reset=False)
    sample, *_ = streams.sample(data, ROWS, rng)
    return _looked_at(model, to_numpy(sample), columns, n_permutations, rng)


def _looked_at(
    model: Any, rows: np.ndarray, columns: Columns, n_permutations: int, rng: np.random.Generator
) -> Diagnosis:
    """All that is looked at of a model on some rows."""
    if len(rows) < 2:
        raise ValueError(
            f"A diagnosis or report needs at least 2 rows, and {JUDGING} to judge a fit by; got {len(rows)}."
        )
    classes = classes_of(model)
    posteriors, dependent = classes.posteriors(rows), classes.dependence is not None
    kernels = zip(model.components_, getattr(model, "kernels_", model.components_), strict=True)
    spaces = [kernel if component.domain is None else component.space for component, kernel in kernels]
    seen = [component for component in model.components_ if component.domain is not None]  # objects have no density
    (labels, certainty), here = most_probable(posteriors), row_shares(model, posteriors)
    drawn = drawn_classes(rows, columns, spaces, posteriors, rng)
    names = getattr(model, "feature_names_in_", range(rows.shape[1]))
    return Diagnosis(
        n_rows=len(rows),
        view_names=view_names(model),
        weights=model.weights_,
        moments=moment_quality(model, rows, columns, rng) if len(rows) >= JUDGING else None,
        mass=np.array([component.mass for component in seen]).reshape(-1, len(model.weights_)),
        clipped=np.array([component.clipped for component in seen]).reshape(-1, len(model.weights_)),
        effective_rows=_effective_rows(posteriors),
        certainty=certainty,
        counts=np.bincount(labels[labels >= 0], minlength=posteriors.shape[1]),
        outside={str(names[j]): share for j, share in outside_range(model, rows).items()},
        dependence=within_class_dependence(drawn, len(columns), n_permutations, rng),
        start_objectives=dict(model.start_objectives_),
        converged=bool(model.converged_),
        start_agreements=dict(getattr(model, "start_agreements_", {})),  # which earlier files have not
        n_fitted=getattr(getattr(model, "polished_", None), "n_rows", 0),
        agreement=model.agreement_ if dependent else None,
        within=clumps_within(rows[:, _used(model)], posteriors, rng) if dependent else classes_within(drawn, rng),
        **_about_columns(model, rows, names),
        **_about_fit(model),
        shares=here.shares,
        shifted=here.shifted,
    )


def _about_columns(model: Any, rows: np.ndarray, names: Any) -> dict[str, Any]:
    """Values that many rows have, or some far from all others, and columns that are others again."""
    views = zip(model.views_, model.components_, strict=True)
    seen = [(own, view.space) for own, view in views if view.domain is not None]
    numbers = [j for own, space in seen for c, j in enumerate(own) if space.column(c).ordered]
    return {
        "exact": exact_values(model, rows, names),
        "apart": apart_values(model, rows, names),
        "copies": tuple((str(names[s]), str(names[t])) for s, t in copied_columns(rows, model.views_, numbers)),
    }


def _used(model: Any) -> list[int]:
    """The columns in views."""
    return [j for columns in model.views_ for j in columns]


def _about_fit(model: Any) -> dict[str, Any]:
    """Whether its classes were counted, and whether copulas were tried, or can be."""
    choice = getattr(model, "dependence_choice_", None)
    numbers = all(view.domain is not None and view.space.affine for view in model.components_)
    blocks = read_blocks(model.exchangeable, len(model.views_))
    exchangeable = len(set(blocks)) < len(blocks)
    return {
        "tried": choice is not None and bool(np.isfinite(choice.copula)),
        "refused": not numbers or exchangeable or (choice is not None and not np.isfinite(choice.agreement)),
        "exchangeable": exchangeable,
        "counted": is_auto(model.n_components),
        "counted_by_rank": getattr(getattr(model, "rank_test_", None), "n_components", None),
    }


def _effective_rows(posteriors: np.ndarray) -> np.ndarray:
    """How many rows a class rests on: many rows with small posteriors are no more than those they add up to."""
    expected = posteriors.sum(axis=0)
    return np.minimum(expected, effective_rows(expected, (posteriors**2).sum(axis=0)))


def _on_range(diagnosis: Diagnosis) -> Iterator[Finding]:
    if diagnosis.outside:
        shares = dict(enumerate(diagnosis.outside.values()))
        yield Finding(False, outside_sentence(shares, list(diagnosis.outside)))
