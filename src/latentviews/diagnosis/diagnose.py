"""What the assumptions behind a fitted model are worth on this data, and what to do where they fail."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import to_numpy
from latentviews._numbers import effective_rows
from latentviews._validation import check_count
from latentviews.core import streams
from latentviews.core.features.point_masses import which_mass
from latentviews.core.point_masses import masses_of
from latentviews.core.tables import read_table
from latentviews.core.view_names import view_names
from latentviews.diagnosis.dependence import (
    FEWEST_MEMBERS,
    WithinClassDependence,
    drawn_classes,
    within_class_dependence,
)
from latentviews.diagnosis.moments import MomentQuality, moment_quality
from latentviews.diagnosis.point_masses import ExactValues, exact_sentences, exact_values
from latentviews.diagnosis.splits import classes_within
from latentviews.mixtures.problem import classes_of, hidden_sentence

ROWS = 10_000  # rows looked at
CERTAIN = 0.8  # a posterior below this is uncertain
FAR = 0.01  # rows beyond the range of a fit that are too many
SQUEEZED = 0.02  # of the spread in a fit: less is another scale
AGREED = 0.7  # partitions of different starts this alike agree
CLOSE = 3.0  # starts this near in total log-likelihood agree
CLOSE_PER_ROW = 1e-4  # or this near per row, where rows are many: EM stops so far from its optimum
STRONGEST = 3  # dependences are told one by one
CLEAR_GAP = 1e6  # a singular value so many times the next has none beside it


def most_probable(posteriors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The most probable class of every row and its probability; -1 is noise, which has what classes leave to one."""
    noise, best = 1 - posteriors.sum(axis=1), posteriors.max(axis=1)
    return np.where(noise > best, -1, posteriors.argmax(axis=1)), np.maximum(noise, best)


def outside_range(model: Any, rows: np.ndarray) -> dict[int, float]:
    """Columns whose values a model was not fitted to, and the share of rows in each that it does not know.

    Those with more than a hundredth of the rows beyond all that the model was fitted to, or with values so close to
    each other that they must be on another scale (then the share is one).
    """
    found, masses = {}, masses_of(model)  # where rows may be, wherever the others are
    for view, component in zip(model.views_, model.components_, strict=True):
        domain = component.domain
        if domain is None or not any(domain.space.column(c).ordered for c in range(len(view))):
            continue
        low, high = domain.nodes.min(axis=0) - domain.cell / 2, domain.nodes.max(axis=0) + domain.cell / 2
        for c, j in [(c, j) for c, j in enumerate(view) if domain.space.column(c).ordered]:
            x = rows[~np.isnan(rows[:, j]) & (which_mass(rows[:, j], masses.get(j, ())) < 0), j]
            share = float(np.mean((x < low[c]) | (x > high[c]))) if len(x) else 0.0
            close = len(x) >= FEWEST_MEMBERS and np.ptp(np.quantile(x, [0.05, 0.95])) < SQUEEZED * domain.spread[c]
            # not where a few rows of the fit itself are far out; of two values the kernel is as wide as their distance
            if close and np.ptp(x) < domain.spread[c] / 2:
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


class Finding(NamedTuple):
    """One thing that was looked at.

    Examples
    --------
    >>> from latentviews import MultiViewMixture, diagnose
    >>> from latentviews.datasets import make_multiview
    >>> X = make_multiview(100, 2, random_state=0).X
    >>> diagnose(MultiViewMixture(2, polish=None, random_state=0).fit(X), X, random_state=0).findings[0].trusted
    True
    """

    trusted: bool
    text: str


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What `diagnose` finds: print ``summary()`` first; the fields hold the numbers behind it.

    Examples
    --------
    >>> from latentviews import MultiViewMixture, diagnose
    >>> from latentviews.datasets import make_multiview
    >>> X = make_multiview(100, 2, random_state=0).X
    >>> diagnose(MultiViewMixture(2, polish=None, random_state=0).fit(X), X, random_state=0).n_rows
    100
    """

    n_rows: int  # rows looked at
    view_names: tuple[str, ...]
    weights: np.ndarray  # (k,)
    moments: MomentQuality | None = field(repr=False)  # None where the moments do not support k classes
    mass: np.ndarray = field(repr=False)  # (n_views, k), integrals of components before they are densities; no objects
    clipped: np.ndarray = field(repr=False)  # (n_views, k), the share of their mass that was negative
    effective_rows: np.ndarray  # (k,), the expected rows Σ r, or Kish's (Σ r)² / Σ r² where fewer
    certainty: np.ndarray = field(repr=False)  # (n_rows,), the largest posterior of every row
    counts: np.ndarray  # (k,), rows by their most probable class
    outside: dict[str, float]  # columns beyond the range of the fit, and the share of the rows that are
    dependence: WithinClassDependence = field(repr=False)
    start_objectives: dict[str, float]  # what every start reached
    converged: bool
    agreement: float | None = None  # of the starts' partitions, where the fit allows for dependence
    within: np.ndarray | None = None  # (k,), how many classes the rows of each look like; None where views may depend
    exact: dict[str, ExactValues] = field(default_factory=dict)  # values that many rows of a column have exactly
    tried: bool = False  # whether the fit could have allowed for dependence, and held-out rows spoke against it

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
        parts = (_on_range, _on_exact, _on_moments, _on_components, _on_dependence, _on_splits, _on_starts, _on_rows)
        return [finding for part in parts for finding in part(self)]

    @property
    def worst(self) -> str | None:
        """What speaks most against the fit: a failed assumption before a small class; None where nothing does."""
        parts = (_on_range, _on_dependence, _on_splits, _on_moments, _on_starts, _on_components, _on_rows)
        doubts = (finding.text for part in parts for finding in part(self) if not finding.trusted)
        return next(doubts, None)

    def summary(self) -> str:
        """What can be trusted, what cannot, and what to do, in plain sentences."""
        k, n_views = len(self.weights), len(self.view_names)
        findings = self.findings
        lines = [f"Diagnosis of {k} class(es) in {n_views} views, from {self.n_rows} rows."]
        for trusted, title in ((True, "What can be trusted:"), (False, "What cannot, and what to do:")):
            texts = [finding.text for finding in findings if finding.trusted is trusted]
            lines += ["", title, *(f"- {text}" for text in texts or ["nothing was found."])]
        return "\n".join(lines)


def diagnose(model: Any, X: Any, *, n_permutations: int = 199, random_state: Any = None) -> Diagnosis:
    """What the assumptions behind a fitted model are worth on the data it was fitted to.

    Looked at are the moments (a gap in their spectrum, the error of σ_k and of the whitened tensor, ρ and π_min: what
    Theorem 2 of Song et al. 2014 is made of), mass and negativity of components, how many rows stand behind a class,
    whether views depend inside it, whether its rows look like several classes to `rank_test`, whether starts agree,
    and how certain the rows' classes are.

    Dependence is tested by HSIC, with a kernel per view, on rows drawn into classes by their posteriors. P-values are
    corrected for all classes and pairs of views together: a standardised statistic is compared with the largest of all
    tests' null draws (Westfall & Young 1993, single step). Tests of different pairs are asymptotically independent
    where views are, since E[φ_1 φ_2 φ_1 φ_3] = 0 for centred features, so that their draws can be put side by side.
    Errors of the posteriors alone make weak dependence: an effect below 0.1 is not held against the model.

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
        raise TypeError(f"diagnose looks at a fitted MultiViewMixture; got a {type(model).__name__}.")
    n_permutations, rng = check_count("n_permutations", n_permutations), np.random.default_rng(random_state)
    data, columns = read_table(model, X, reset=False)
    sample, *_ = streams.sample(data, ROWS, rng)
    rows = to_numpy(sample)
    classes = classes_of(model)
    posteriors, dependent = classes.posteriors(rows), classes.dependence is not None
    spaces = [
        kernel if component.domain is None else component.space
        for component, kernel in zip(model.components_, getattr(model, "kernels_", model.components_), strict=True)
    ]
    seen = [component for component in model.components_ if component.domain is not None]  # objects have no density
    labels, certainty = most_probable(posteriors)
    drawn = drawn_classes(rows, columns, spaces, posteriors, rng)
    names = getattr(model, "feature_names_in_", range(rows.shape[1]))
    return Diagnosis(
        n_rows=len(rows),
        view_names=view_names(model),
        weights=model.weights_,
        moments=moment_quality(model, rows, columns, rng),
        mass=np.array([component.mass for component in seen]).reshape(-1, len(model.weights_)),
        clipped=np.array([component.clipped for component in seen]).reshape(-1, len(model.weights_)),
        effective_rows=_effective_rows(posteriors),
        certainty=certainty,
        counts=np.bincount(labels[labels >= 0], minlength=posteriors.shape[1]),
        outside={str(names[j]): share for j, share in outside_range(model, rows).items()},
        dependence=within_class_dependence(drawn, len(columns), n_permutations, rng),
        start_objectives=dict(getattr(model, "start_objectives_", {})),
        converged=bool(model.converged_),
        agreement=model.agreement_ if dependent else None,
        within=None if dependent else classes_within(drawn, rng),
        exact=exact_values(model, rows, names),
        tried=hasattr(model, "dependence_choice_"),
    )


def _effective_rows(posteriors: np.ndarray) -> np.ndarray:
    """How many rows a class rests on: many rows with small posteriors are no more than those they add up to."""
    expected = posteriors.sum(axis=0)
    return np.minimum(expected, effective_rows(expected, (posteriors**2).sum(axis=0)))


# ------------------------------------------------------------------------------------------- what a person reads


def _on_range(diagnosis: Diagnosis) -> Iterator[Finding]:
    if diagnosis.outside:
        shares = dict(enumerate(diagnosis.outside.values()))
        yield Finding(False, outside_sentence(shares, list(diagnosis.outside)))


def _on_exact(diagnosis: Diagnosis) -> Iterator[Finding]:
    for sentence in exact_sentences(diagnosis.exact):
        yield Finding(True, sentence)


def _on_moments(diagnosis: Diagnosis) -> Iterator[Finding]:
    k, moments = len(diagnosis.weights), diagnosis.moments
    if k == 1 or len(diagnosis.view_names) < 3:  # the spectral step takes three views
        return
    if moments is None:
        yield Finding(
            False,
            f"The moments of the views do not support {k} classes, so no theory stands behind the classes. Ask for "
            "fewer, add rows or views, or widen `bandwidth`.",
        )
        return
    clear = moments.sigma_k > 1.5 * moments.noise
    following = f", and {moments.gap:.3g} times the next" if moments.gap < CLEAR_GAP else ""
    yield Finding(
        clear,
        f"The number of classes: singular value {k} of the pair moment is {moments.sigma_k:.2g}, where sampling "
        f"alone would make {moments.noise:.2g}{following}."
        + ("" if clear else f" It does not stand out of the noise: fewer than {k} classes may explain the data."),
    )
    firm = moments.eps_t < moments.least_value / 2
    rest = (
        f"The spectral estimate: resampled, the whitened tensor differs by about {moments.eps_t:.2g}, beside a least "
        f"eigenvalue of {moments.least_value:.2g}."
        if np.isfinite(moments.eps_t)
        else f"The spectral estimate: some resamples of the rows do not support {k} classes."
    )
    advice = " Its eigenvectors may mix classes: trust the polish, if any, only where starts agree, or add rows."
    yield Finding(firm, rest + ("" if firm else advice))


def _on_components(diagnosis: Diagnosis) -> Iterator[Finding]:
    if diagnosis.mass.size:
        clipped, off = float(diagnosis.clipped.max()), float(np.abs(diagnosis.mass - 1).max())
        proper = clipped <= 0.05 and off <= 0.1
        yield Finding(
            proper,
            f"The densities: at most {clipped:.1%} of a component was negative, and masses are within {off:.2g} of one."
            + ("" if proper else " A polish, a wider `bandwidth` or more rows would help; fewer classes might."),
        )
    fewest = int(diagnosis.effective_rows.argmin())
    count = float(diagnosis.effective_rows[fewest])
    yield Finding(
        count >= 50,
        f"The size of classes: the least supported, class {fewest}, rests on about {count:.0f} rows."
        + ("" if count >= 50 else " That is few for a density; merge it with another, or add rows."),
    )


def _on_dependence(diagnosis: Diagnosis) -> Iterator[Finding]:
    dependence, names = diagnosis.dependence, diagnosis.view_names
    tested = int(np.isfinite(dependence.pvalue).sum())
    untested, flagged = dependence.pvalue.size - tested, dependence.flagged()
    rest = f" {untested} more have too few rows, or too little variation, to be tested." if untested else ""
    if not tested and untested:
        yield Finding(False, f"{untested} pairs and classes have too few rows, or too little variation, to be tested.")
    elif tested and not flagged:
        weak = len(dependence.flagged(least=0.0))
        yield Finding(
            True,
            f"Independence inside classes: none of {tested} tests of a class and a pair of views finds dependence that "
            f"matters (smallest corrected p-value {np.nanmin(dependence.pvalue):.2g}"
            + (f"; {weak} significant but weak)." if weak else ").")
            + rest,
        )
    elif flagged and diagnosis.agreement is not None:
        h, s, t = flagged[0]
        yield Finding(
            True,
            f"Dependence inside classes: {len(flagged)} of {tested} pairs and classes show it (most of all views "
            f"{names[s]} and {names[t]} in class {h}), and the fit allows for it.{rest}",
        )
    else:
        yield from _on_pairs(diagnosis, flagged, tested, rest)


def _on_pairs(diagnosis: Diagnosis, flagged: list[tuple[int, int, int]], tested: int, rest: str) -> Iterator[Finding]:
    """The strongest dependences one by one; how many more there are is said with the last."""
    both = 'Fit with dependence="auto", which allows for it where that helps, or put'
    advice = "Copulas, which allow for it, were tried and not taken; put" if diagnosis.tried else both
    more = len(flagged) - STRONGEST
    if more > 0:
        rest = f" So do {more} more of {tested} pairs and classes; see `dependence.flagged()`.{rest}"
    shown = flagged[:STRONGEST]
    names = diagnosis.view_names
    for number, (h, s, t) in enumerate(shown, start=1):
        effect, pvalue = (diagnosis.dependence.matrix(h, values)[s, t] for values in ("effect", "pvalue"))
        yield Finding(
            False,
            f"Views {names[s]} and {names[t]} depend on each other inside class {h} (strength {effect:.2f} of 1, "
            f"corrected p-value {pvalue:.2g}). {advice} their columns into one view; if it is weak, the class may be a "
            f"mixture: try more classes.{rest if number == len(shown) else ''}",
        )


def _on_splits(diagnosis: Diagnosis) -> Iterator[Finding]:
    k, within = len(diagnosis.weights), diagnosis.within
    if within is None or not within.any():
        return
    more = np.flatnonzero(within > 1)
    if not len(more):
        yield Finding(True, "Classes within classes: no class looks like two.")
        return
    looks = ", ".join(f"class {h} looks like {within[h]}" for h in more)
    yield Finding(
        False,
        f"Classes within classes: {looks} (the rank of the dependence between views among its rows). Fit "
        f'{k + int((within[more] - 1).sum())} classes; where a class is one but its views depend, dependence="auto".',
    )


def _on_starts(diagnosis: Diagnosis) -> Iterator[Finding]:
    if diagnosis.agreement is not None:
        yield _on_agreement(diagnosis.agreement)
        return
    if not diagnosis.converged:
        yield Finding(False, "The polish had not converged; raise its `max_iter`.")
    reached = diagnosis.start_objectives
    if len(diagnosis.weights) == 1 or not reached:
        return
    best = max(reached.values())
    near = [name for name, value in reached.items() if best - value <= max(CLOSE / diagnosis.n_rows, CLOSE_PER_ROW)]
    agree = len(near) > 1
    text = f"Starts: {len(near)} of {len(reached)} ({', '.join(near)}) reached the best likelihood."
    yield Finding(
        agree, text + ("" if agree else " A single one did, so a better optimum may exist: refit with other seeds.")
    )


def _on_agreement(agreement: float) -> Finding:
    good = agreement >= AGREED
    text = f"Starts: partitions from several agree with the one chosen to {agreement:.2f} (adjusted Rand index)."
    return Finding(
        good, text + ("" if good else " Other classes explain the rows as well: try another number of them.")
    )


def _on_rows(diagnosis: Diagnosis) -> Iterator[Finding]:
    share = diagnosis.uncertain
    shares = "" if diagnosis.dependence.flagged() else ", their shares are still good"
    yield Finding(
        share <= 0.2,
        f"The classes of rows: {share:.1%} have no class of posterior above {CERTAIN}."
        + ("" if share <= 0.2 else f" Use `predict_proba`, not `predict`: classes overlap{shares}."),
    )
    hidden = hidden_sentence(diagnosis.counts, diagnosis.weights)
    if hidden:
        yield Finding(False, hidden)
