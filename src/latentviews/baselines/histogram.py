"""The spectral method on histograms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import logsumexp

from latentviews._numbers import TINY, as_shares, log_cauchy
from latentviews._parameters import Ability, Constraint, Count, NoneOr, OneOf, Seed, WithData
from latentviews._validation import UnsupportedError, all_or_nothing, check_count, is_auto
from latentviews.baselines._shared import OneColumnViews, log_joint
from latentviews.core.components import HIGHEST, as_rows
from latentviews.core.features.indicators import OneHotFeatures
from latentviews.core.spectral import spectral_fit
from latentviews.core.tensors import JointDiagonalization, Solver
from latentviews.core.views import Views

BACKGROUND = 1e-6
FOLDS = 5


@dataclass(frozen=True, eq=False)
class HistogramView:
    """The distributions of one view in k components, as histograms."""

    edges: np.ndarray  # (n_bins + 1,)
    probabilities: np.ndarray  # (n_bins, k), columns sum to one
    center: float
    spread: float

    def density(self, x: Any) -> np.ndarray:
        """The densities, (n, k): constant in a bin, zero outside."""
        x = np.asarray(as_rows(x))[:, 0]
        heights = self.probabilities / np.maximum(np.diff(self.edges), 1 / HIGHEST)[:, None]
        inside = (x >= self.edges[0]) & (x <= self.edges[-1])
        return np.where(inside[:, None], heights[_codes(x, self.edges)], 0.0)

    def log_density(self, x: Any) -> np.ndarray:
        """The log of ``density`` mixed with a millionth of a Cauchy density, so that it is finite everywhere."""
        x = np.asarray(as_rows(x))[:, 0]
        background = np.log(BACKGROUND) + log_cauchy(x, self.center, self.spread)
        return np.logaddexp(np.log(np.maximum(self.density(x), TINY)), background[:, None])

    @property
    def n_parameters(self) -> np.ndarray:
        """The free probabilities of every component, (k,)."""
        return np.full(self.probabilities.shape[1], len(self.probabilities) - 1.0)

    def sample(self, component: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn from one component, (size, 1)."""
        bins = rng.choice(len(self.probabilities), size=size, p=self.probabilities[:, component])
        return rng.uniform(self.edges[bins], self.edges[bins + 1])[:, None]

    def take(self, order: np.ndarray) -> "HistogramView":
        """The components in another order, or some of them."""
        return replace(self, probabilities=self.probabilities[:, order])


class HistogramSpectral(OneColumnViews):
    r"""The spectral algorithm on histograms: views cut into bins, then treated as discrete (Kasahara & Shimotsu 2010).

    .. math:: E[b(x_1) \otimes b(x_2) \otimes b(x_3)] = \sum_h \pi_h\, p_{1h} \otimes p_{2h} \otimes p_{3h}

    with the indicators b of the bins, and the probabilities p_th of the bins of view t in class h.

    Parameters
    ----------
    n_components : int, default=2
    views : list of column indices or names, or None
        Which columns are views; by default all.
    n_bins : int, "auto" or "cv", default="auto"
        Bins a view: a number of at least k, twice the cube root of the number of rows ("auto"), or the number with the
        highest held-out likelihood of the model, in five folds.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of equal numbers of rows.
    solver : solver, default=JointDiagonalization()
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    weights_ : array of shape (k,), decreasing
    components_ : list of HistogramView, one per view
        Negative probabilities that the moments gave are clipped.
    n_bins_ : int
    views_ : tuple of lists of column indices
    n_components_ : int

    Examples
    --------
    >>> from latentviews.baselines import HistogramSpectral
    >>> from latentviews.datasets import make_multiview
    >>> X = make_multiview(2000, 2, random_state=0).X
    >>> HistogramSpectral(2, n_bins=6, random_state=0).fit(X).weights_.round(1)
    array([0.7, 0.3])
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_components": Count(),
        "views": WithData(),
        "n_bins": WithData(),
        "strategy": OneOf(lambda: STRATEGIES),
        "solver": NoneOr(Ability("decompose")),
        "random_state": Seed(),
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        views: Sequence[Any] | None = None,
        n_bins: int | str = "auto",
        strategy: str = "uniform",
        solver: Solver | None = None,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.views = views
        self.n_bins = n_bins
        self.strategy = strategy
        self.solver = solver
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Cut the views into bins and decompose the moments of their indicators.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        table, columns, rank = self._read(X)
        rng = np.random.default_rng(self.random_state)
        self.n_bins_ = self._count(table, rank, rng)
        weights, components = self._estimate(table, self.n_bins_, rank, rng)
        self._keep(weights, components, columns, np.argsort(-weights, kind="stable"))
        return self

    def _count(self, table: np.ndarray, rank: int, rng: np.random.Generator) -> int:
        """The number of bins."""
        automatic = max(rank, int(np.ceil(2 * len(table) ** (1 / 3))))
        if is_auto(self.n_bins):
            return automatic
        if isinstance(self.n_bins, str) and self.n_bins == "cv":
            candidates = sorted({max(rank, round(automatic * factor)) for factor in (0.4, 0.6, 1.0, 1.6)})
            return max(candidates, key=lambda n_bins: self._held_out(table, n_bins, rank, rng))
        return check_count("n_bins", self.n_bins, rank)

    def _held_out(self, table: np.ndarray, n_bins: int, rank: int, rng: np.random.Generator) -> float:
        fold, total = np.arange(len(table)) % FOLDS, 0.0
        columns = tuple([t] for t in range(table.shape[1]))
        for held in range(FOLDS):
            try:
                weights, components = self._estimate(table[fold != held], n_bins, rank, rng)
            except UnsupportedError:
                return -np.inf
            total += float(logsumexp(log_joint(weights, components, columns, table[fold == held]), axis=1).sum())
        return total

    def _estimate(
        self, table: np.ndarray, n_bins: int, rank: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, list[HistogramView]]:
        """Weights and histograms from the moments of bins."""
        edges = [STRATEGIES[self.strategy](x, n_bins) for x in table.T]
        codes = np.stack([_codes(x, cuts) for x, cuts in zip(table.T, edges, strict=True)], axis=1).astype(float)
        features = tuple(OneHotFeatures(len(cuts) - 1).fit(codes[:, [t]]) for t, cuts in enumerate(edges))
        views = Views(tuple([t] for t in range(table.shape[1])), features)
        solver = JointDiagonalization() if self.solver is None else self.solver
        found = spectral_fit(codes, views, rank, solver, rng)
        components = [
            HistogramView(cuts, _as_probabilities(vectors), float(np.median(x)), float(x.std()))
            for cuts, vectors, x in zip(edges, found.vectors, table.T, strict=True)
        ]
        return found.weights / found.weights.sum(), components


def _codes(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of every value; values outside go to the nearest bin."""
    return np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)


def _uniform_edges(x: np.ndarray, n_bins: int) -> np.ndarray:
    return np.linspace(x.min(), x.max(), n_bins + 1)


def _quantile_edges(x: np.ndarray, n_bins: int) -> np.ndarray:
    return np.unique(np.quantile(x, np.linspace(0, 1, n_bins + 1)))


STRATEGIES: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "uniform": _uniform_edges,
    "quantile": _quantile_edges,
}


def _as_probabilities(vectors: np.ndarray) -> np.ndarray:
    """Columns clipped at zero and scaled to sum one; of a column that is nowhere positive nothing is known."""
    positive = np.maximum(vectors, 0.0)
    return as_shares(np.where(positive.any(axis=0), positive, 1.0), axis=0)
