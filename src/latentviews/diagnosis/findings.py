"""The sentences of a diagnosis: what was looked at, whether it speaks against the fit, and what to do then."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from latentviews._sentences import counted
from latentviews.diagnosis.copies import copies_sentence
from latentviews.diagnosis.moments import MomentQuality
from latentviews.diagnosis.point_masses import apart_sentence, exact_sentences
from latentviews.diagnosis.shares import shift_sentence
from latentviews.mixtures.problem import hidden_sentence
from latentviews.mixtures.races import AGREED

if TYPE_CHECKING:
    from latentviews.diagnosis.diagnose import Diagnosis

CERTAIN = 0.8  # a posterior below this is uncertain
JUDGING = 20  # rows: fewer judge nothing
FEW = 50  # rows, too few for a density
CLOSE = 3.0  # starts this near in total log-likelihood agree
SAME = 0.95  # partitions this alike have the same classes
CLOSE_PER_ROW = 1e-4  # or this near per row, where rows are many: EM stops so far from its optimum
STRONGEST = 3  # dependences are told one by one
CLEAR_GAP = 1e6  # a singular value so many times the next has none beside it
CLEAR = 1.5  # times the noise: a singular value so large stands out of it
NAMES = {"splits": "from splits of the classes counted first"}  # of starts, where theirs says too little


class Finding(NamedTuple):
    """One thing that was looked at, or that could not be.

    Attributes
    ----------
    trusted : bool or None
        None where the rows do not let it be looked at.
    text : str
        What was found, and what to do, in a sentence or two.

    Examples
    --------
    >>> from latentviews import MultiViewMixture, diagnose
    >>> from latentviews.datasets import make_multiview
    >>> X = make_multiview(100, 2, random_state=0).X
    >>> diagnose(MultiViewMixture(2, polish=None, random_state=0).fit(X), X, random_state=0).findings[0].trusted
    True
    """

    trusted: bool | None
    text: str


Part = Callable[["Diagnosis"], Iterator[Finding]]  # of a diagnosis


def on_few_rows(diagnosis: "Diagnosis") -> Iterator[Finding]:
    """Rows that are too few to judge anything by."""
    yield Finding(
        False,
        f"{diagnosis.n_rows} rows are too few to judge a fit by; give the rows of the fit, or at least {JUDGING} of "
        "their kind.",
    )


def on_shares(diagnosis: "Diagnosis") -> Iterator[Finding]:
    """Whether classes are as common among these rows as in the fit."""
    if diagnosis.shifted:
        yield Finding(False, shift_sentence(diagnosis.shares, diagnosis.weights))


def on_exact(diagnosis: "Diagnosis") -> Iterator[Finding]:
    """Values that many rows have, or some rows far from all others."""
    for sentence in exact_sentences(diagnosis.exact):
        yield Finding(True, sentence)
    if diagnosis.apart:
        yield Finding(False, apart_sentence(diagnosis.apart))


def on_copies(diagnosis: "Diagnosis") -> Iterator[Finding]:
    """Columns that say the same thing twice."""
    if diagnosis.copies:
        yield Finding(False, copies_sentence(diagnosis.copies))


def on_moments(diagnosis: "Diagnosis") -> Iterator[Finding]:
    """The number of classes and the spectral estimate."""
    k, moments = len(diagnosis.weights), diagnosis.moments
    if not _asks_moments(diagnosis):
        return
    split = _split_sentence(diagnosis)
    if moments is None:
        usual = (
            " That is usual where classes are more than the categories of a view; else ask for fewer, add rows or "
            "views, or widen `bandwidth`."
        )
        yield Finding(
            False,
            f"The moments of the views do not support {k} classes, so that these rest on their likelihood alone."
            f"{split or usual}",
        )
        return
    clear = moments.sigma_k > CLEAR * moments.noise
    following = f", and {moments.gap:.3g} times the next" if moments.gap < CLEAR_GAP else ""
    fewer = "a single class" if k == 2 else f"fewer than {k} classes"
    doubt = " It is less than one and a half times that noise" + (
        f".{split}" if split else f": {fewer} may explain the data."
    )
    yield Finding(
        clear,
        f"The number of classes: singular value {k} of the pair moment is {moments.sigma_k:.2g}, where sampling "
        f"alone would make {moments.noise:.2g}{following}.{'' if clear else doubt}",
    )
    yield _on_spectral_estimate(diagnosis, moments)


def _asks_moments(diagnosis: "Diagnosis") -> bool:
    """Whether singular values tell of classes: of three views or more, which do not depend on each other inside them.

    With dependence inside classes they count the dependence too; starts and valleys judge such a fit.
    """
    return len(diagnosis.weights) > 1 and len(diagnosis.view_names) > 2 and diagnosis.agreement is None


def _split_sentence(diagnosis: "Diagnosis") -> str:
    """Why a fit counted more classes than singular values show; nothing where it did not."""
    k, shown = len(diagnosis.weights), diagnosis.counted_by_rank
    if shown is None or shown >= k:
        return ""
    return (
        f" The fit counted {counted(shown, 'class', 'classes')} by singular values, as `rank_test` does, and split "
        f"them into {k} because held-out rows are likelier so: compare with n_components={shown}, and keep {k} where "
        "they mean something to you."
    )


def _on_spectral_estimate(diagnosis: "Diagnosis", moments: MomentQuality) -> Finding:
    """Whether the whitened tensor is known well enough to tell classes apart."""
    firm = moments.eps_t < moments.least_value / 2
    rest = "The spectral estimate" + (", one of the starts: " if diagnosis.start_objectives else ": ")
    rest += (
        f"resampled, the whitened tensor differs by about {moments.eps_t:.2g}, beside a least eigenvalue of "
        f"{moments.least_value:.2g}."
        if np.isfinite(moments.eps_t)
        else f"some resamples of the rows do not support {len(diagnosis.weights)} classes."
    )
    agreed = len(_best_starts(diagnosis)) > 1
    advice = " It may mix classes" + (
        ", but other starts reached the same likelihood." if agreed else ": add rows, or ask for fewer classes."
    )
    return Finding(firm or agreed, rest + ("" if firm else advice))


def on_components(diagnosis: "Diagnosis") -> Iterator[Finding]:
    """Densities that are none, and classes of few rows."""
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
    if diagnosis.shifted:  # the fit had others, and `on_shares` says how many are here
        return
    alone = len(diagnosis.weights) == 1
    which = "the only one" if alone else f"the least supported, class {fewest}"
    advice = " That is few for a density; " + ("add rows." if alone else "merge it with another, or add rows.")
    yield Finding(
        count >= FEW,
        f"The size of classes: {which}, rests on about {counted(round(count), 'row')}."
        + ("" if count >= FEW else advice),
    )


def on_dependence(diagnosis: "Diagnosis") -> Iterator[Finding]:
    """Whether views depend on each other inside classes."""
    dependence, names = diagnosis.dependence, diagnosis.view_names
    tested = int(np.isfinite(dependence.pvalue).sum())
    untested, flagged = dependence.pvalue.size - tested, dependence.flagged()
    few = "has" if untested == 1 else "have"
    rest = f" {untested:,} more {few} too few rows, or too little variation, to be tested." if untested else ""
    if not tested and untested:
        pairs = "1 pair in a class has" if untested == 1 else f"{untested:,} pairs and classes have"
        yield Finding(None, f"{pairs} too few rows, or too little variation, to be tested for dependence.")
    elif tested and not flagged:
        weak = len(dependence.flagged(least=0.0))
        tests = "the one test" if tested == 1 else f"none of {tested:,} tests"
        finds = "does not find" if tested == 1 else "finds"
        yield Finding(
            True,
            f"Independence inside classes: {tests} of a class and a pair of views {finds} dependence that matters "
            f"(smallest corrected p-value {dependence.said(float(np.nanmin(dependence.pvalue)))}"
            + (f"; {weak} significant but weak)." if weak else ").")
            + rest,
        )
    elif flagged and diagnosis.agreement is not None:
        h, s, t = flagged[0]
        yield Finding(
            True,
            f"Dependence inside classes: {len(flagged)} of {counted(tested, 'test')} of a pair in a class "
            f"{'shows' if len(flagged) == 1 else 'show'} it (most of all views {names[s]} and {names[t]} in class "
            f"{h}), and the fit allows for it.{rest}",
        )
    else:
        yield from _on_pairs(diagnosis, flagged, tested, rest)


def _on_pairs(diagnosis: "Diagnosis", flagged: list[tuple[int, int, int]], tested: int, rest: str) -> Iterator[Finding]:
    """The most evident dependences one by one; how many more there are is said with the last."""
    more = len(flagged) - STRONGEST
    if more > 0:
        so = "So does 1 more" if more == 1 else f"So do {more:,} more"
        rest = f" {so} of {tested:,} pairs and classes; see `dependence.flagged()`.{rest}"
    shown, names, advice = flagged[:STRONGEST], diagnosis.view_names, _against_dependence(diagnosis)
    for number, (h, s, t) in enumerate(shown, start=1):
        effect, pvalue = (diagnosis.dependence.matrix(h, values)[s, t] for values in ("effect", "pvalue"))
        yield Finding(
            False,
            f"Views {names[s]} and {names[t]} depend on each other inside class {h} (strength {effect:.2f} of 1, "
            f"corrected p-value {diagnosis.dependence.said(pvalue)}). {advice}; the class may also be a mixture of "
            f"several.{rest if number == len(shown) else ''}",
        )


def _against_dependence(diagnosis: "Diagnosis") -> str:
    """What can be done about it, which depends on what the views are."""
    if diagnosis.exchangeable:
        return "Exchangeable views have no setting that allows for it: see whether they measure the same thing apart"
    if diagnosis.refused:
        return "Put their columns into one view (copulas, which allow for it, take numbers alone)"
    if diagnosis.tried:
        return "Copulas, which allow for it, were tried and not taken; put their columns into one view"
    return 'Fit with dependence="auto", which allows for it where that helps, or put their columns into one view'


def on_splits(diagnosis: "Diagnosis") -> Iterator[Finding]:
    """Whether classes look like several."""
    k, within = len(diagnosis.weights), diagnosis.within
    if within is None or not within.any():
        return
    more = np.flatnonzero(within > 1).tolist()
    if not more:
        seen = "no class looks like two."
        if diagnosis.agreement is not None:
            seen = (
                "in no class does the density dip between two clumps of its rows; classes that overlap so much that "
                "it does not are not told apart."
            )
        yield Finding(True, f"Classes within classes: {seen}")
        return
    looks = ", ".join(f"class {h} looks like {within[h]}" for h in more)
    if diagnosis.agreement is not None:
        yield Finding(
            False,
            f"Classes within classes: {looks}, since the density dips between two clumps of its rows. Fit {k + 1} "
            f"classes{'' if diagnosis.counted else ', or let them be counted'}, unless the two belong together for "
            "reasons that the rows do not show.",
        )
        return
    dependent = bool({h for h, *_ in diagnosis.dependence.flagged()} & set(more))
    closed = diagnosis.tried or diagnosis.refused or diagnosis.exchangeable
    first = 'Fit with dependence="auto" first, and then' if dependent and not closed else "Fit"
    disagree = (
        " Other checks speak for fewer classes: they disagree with this one, and held-out rows decide."
        if any(_speaks_for_fewer(diagnosis))
        else ""
    )
    how = f"; the fit itself counted {k}" if diagnosis.counted else ""
    yield Finding(
        False,
        f"Classes within classes: {looks} (the rank of the dependence between views among its rows), which may be more "
        f"classes or views that depend inside one: the test cannot tell. {first} {k + 1} classes, and keep them only "
        f"if held-out rows are likelier (`likelihood_curve`{how}).{disagree}",
    )


def _speaks_for_fewer(diagnosis: "Diagnosis") -> Iterator[bool]:
    """Whether checks advise fewer classes."""
    k, moments = len(diagnosis.weights), diagnosis.moments
    if _asks_moments(diagnosis):
        yield moments is None or moments.sigma_k <= CLEAR * moments.noise
    if k > 1 and not diagnosis.shifted:
        yield bool(diagnosis.effective_rows.min() < FEW)
        yield bool(np.any(diagnosis.counts == 0))


def on_views(diagnosis: "Diagnosis") -> Iterator[Finding]:
    """Two views, which leave classes to what else is assumed."""
    if len(diagnosis.view_names) == 2 and len(diagnosis.weights) > 1:
        yield Finding(
            False,
            "Two views do not determine classes by themselves: these rest on what shapes their distributions may have, "
            "so compare them with something that the fit has not seen, or add a view.",
        )


def on_starts(diagnosis: "Diagnosis") -> Iterator[Finding]:
    """Whether starts agree."""
    if not diagnosis.converged:
        what = "The polish" if diagnosis.agreement is None else "EM of the copulas"
        how = "its `max_iter`" if diagnosis.agreement is None else "`max_iter` of `Copulas`"
        yield Finding(False, f"{what} had not converged, so that other steps would still move classes; raise {how}.")
    if diagnosis.agreement is not None:
        yield _on_agreement(diagnosis.agreement)
        return
    reached = diagnosis.start_objectives
    if len(diagnosis.weights) == 1 or not reached:
        return
    near = _best_starts(diagnosis)
    if len(reached) == 1:
        yield Finding(True, f"Starts: one was made ({near[0]}); other seeds would show whether it is best.")
        return
    yield _on_partitions(diagnosis, near)


def _on_partitions(diagnosis: "Diagnosis", near: list[str]) -> Finding:
    """Whether several starts reached the best likelihood or its classes, and none as likely has others."""
    alike = {NAMES.get(name, name): value for name, value in diagnosis.start_agreements.items()}
    text = f"Starts: {len(near)} of {len(diagnosis.start_objectives)} ({', '.join(near)}) reached the best likelihood"
    least = min((alike[name] for name in near if name in alike), default=np.nan)
    if len(near) > 1:
        if not np.isnan(least):
            text += f"; their partitions agree with the best one's to {least:.2f} or more (adjusted Rand index)"
        other = ". Other classes explain the rows as well: ask for another number of them, or add rows or views."
        return Finding(not least < AGREED, text + (other if least < AGREED else "."))
    same = [name for name, value in alike.items() if value >= SAME and name not in near]
    if same:
        return Finding(True, f"{text}, and {len(same)} more ({', '.join(same)}) found the same classes.")
    return Finding(
        False,
        text + ". A single one did, so a better optimum may exist: refit with two or three other seeds, and keep the "
        "fit with the highest log-likelihood; where classes are others each time, trust none of them.",
    )


def _best_starts(diagnosis: "Diagnosis") -> list[str]:
    """The starts that reached the best likelihood, in total over the rows of the fit."""
    n_rows = diagnosis.n_fitted or diagnosis.n_rows
    reached = {NAMES.get(name, name): value for name, value in diagnosis.start_objectives.items()}
    best = max(reached.values(), default=0.0)
    return [name for name, value in reached.items() if best - value <= max(CLOSE / n_rows, CLOSE_PER_ROW)]


def _on_agreement(agreement: float) -> Finding:
    good = agreement >= AGREED
    text = f"Starts: partitions from several agree with the one chosen to {agreement:.2f} (adjusted Rand index)."
    return Finding(
        good, text + ("" if good else " Other classes explain the rows as well: try another number of them.")
    )


def on_rows(diagnosis: "Diagnosis") -> Iterator[Finding]:
    """How certain the classes of rows are, and classes that win none."""
    share = diagnosis.uncertain
    firm = not (diagnosis.shifted or diagnosis.dependence.flagged() or any(_speaks_for_fewer(diagnosis)))
    shares = ", their shares are still good" if firm else ""
    yield Finding(
        share <= 0.2,
        f"The classes of rows: {share:.1%} have no class of posterior above {CERTAIN}."
        + ("" if share <= 0.2 else f" Use `predict_proba`, not `predict`: classes overlap{shares}."),
    )
    hidden = None if diagnosis.shifted else hidden_sentence(diagnosis.counts, diagnosis.weights)
    if hidden:
        yield Finding(False, hidden)
