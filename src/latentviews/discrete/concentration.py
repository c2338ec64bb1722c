"""The concentration of a prior on shares, read off topics that EM found.

Functionals B with Bᵀ T = I of topics T turn two different words of a document into E[θ⊗θ] = Bᵀ E[x₁⊗x₂] B, whose trace
tells α₀: with π = E[θ],

    Σ_h E[θ_h²] = (1 + α₀ Σ_h π_h²) / (1 + α₀).

Errors of topics come in twice over. Of topics learnt from the same words they would count those words once more, and
in Tᵀ D T, with D one over the frequencies of words, their squares add up over all words. So documents are in three
lots: pairs of one are seen by B = D T₁ (T₂ᵀ D T₁)⁻¹ of the two others, with the errors of one in the numerator and
those of the other in what it is scaled by, as an instrumental variable has.

This is far steadier than the root of Σ_h π_h(α₀) = 1 where α₀ is small, and off where EM's topics are, which is where
all documents mix alike. The root is right on average whatever EM does, so it is kept where the two differ by more than
its error allows (Hausman 1978).
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

import numpy as np
from scipy import sparse

from latentviews._numbers import as_shares
from latentviews._validation import UnsupportedError
from latentviews.discrete.bags import BagMoments, long_enough
from latentviews.discrete.dirichlet import RANGE, DirichletParts
from latentviews.discrete.topic_em import EMSettings, TopicFit, lot_topics

LOTS, STEPS = 3, 10  # of documents, and of EM on each
APART = 3.0  # standard errors of the moments' concentration by which the other may differ from it
NUDGE = 0.05  # of log α₀, for the slope of the sum of weights


def read_concentration(bags: sparse.csr_array, fit: TopicFit, settings: EMSettings) -> float | None:
    """α₀ by topics of lots of the documents; None where the moments of shares are those of no Dirichlet law."""
    bags = bags[long_enough(bags)]
    if bags.shape[0] < LOTS:
        return None
    settings = settings._replace(max_iter=min(STEPS, settings.max_iter))
    lots = [bags[lot::LOTS] for lot in range(LOTS)]
    topics = [lot_topics(lot, fit, settings) for lot in lots]
    frequencies = as_shares(np.asarray(bags.sum(axis=0)).ravel() + settings.smoothing)
    squares = of_means = 0.0
    for i, lot in enumerate(lots):
        one, two = topics[i - 1], topics[i - 2]
        try:
            duals = functionals(one, two, frequencies), functionals(two, one, frequencies)
        except np.linalg.LinAlgError:
            return None
        of_lot = share_squares(lot, *duals)
        squares, of_means = squares + of_lot[0] / LOTS, of_means + of_lot[1] / LOTS
    return concentration_of_shares(squares, of_means)


def functionals(instruments: np.ndarray, topics: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """B = D Z (Tᵀ D Z)⁻¹, (n_words, k), with Bᵀ T = I."""
    scaled = instruments / frequencies[:, None]
    return scaled @ np.linalg.inv(topics.T @ scaled)


def share_squares(bags: sparse.csr_array, first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Σ_h E[θ_h²] by pairs of different words of a document, one seen by each set of functionals; and Σ_h E[θ_h]²."""
    n = np.asarray(bags.sum(axis=1)).ravel()
    pair = 1 / (n * (n - 1) * len(n))
    seen, other = bags @ first, bags @ second
    same = (first * second).sum(axis=1) @ (bags.T @ pair)  # a word beside itself
    means = (1 / n) @ seen / len(n), (1 / n) @ other / len(n)
    return float((seen * other).sum(axis=1) @ pair - same), float(means[0] @ means[1])


def concentration_of_shares(squares: float, of_means: float) -> float | None:
    """α₀ = (1 − Σ E[θ_h²]) / (Σ E[θ_h²] − Σ π_h²); None where it is none that is looked for, or not positive."""
    found = (1 - squares) / (squares - of_means) if of_means < squares < 1 else 0.0
    return found if RANGE[0] <= found <= RANGE[1] else None


def moment_error(
    lots: Sequence[BagMoments], concentration: float, parts_at: Callable[[BagMoments, float], DirichletParts]
) -> float:
    """The standard error of log α₀ at the root of Σ_h π_h(α₀) = 1, by the jackknife over lots of bags.

    Infinite where the moments of some lots have fewer parts.
    """

    def total(some: Sequence[BagMoments], log_concentration: float) -> float:
        return float(parts_at(reduce(add, some).means(), float(np.exp(log_concentration))).weights.sum())

    here, n = np.log(concentration), len(lots)
    try:
        without = np.array([total([*lots[:i], *lots[i + 1 :]], here) for i in range(n)])
        slope = (total(lots, here + NUDGE) - total(lots, here - NUDGE)) / (2 * NUDGE)
    except UnsupportedError:
        return np.inf
    return float(np.sqrt((n - 1) * without.var()) / abs(slope)) if slope else np.inf


def steadier(by_moments: float, error: float, by_topics: float | None) -> float:
    """The concentration read off topics, unless it is too far from that of moments for their standard error."""
    if by_topics is None or abs(np.log(by_topics / by_moments)) > APART * error:
        return by_moments
    return by_topics
