"""What a fit of classes is given, and what it finds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import answered, counts_there, in_library_of, namespace, take_rows, to_numpy
from latentviews._numbers import TINY, log_of_sums, posteriors_of
from latentviews._sentences import warn_user
from latentviews._validation import IdentifiabilityWarning, allowed_classes, check_count, draws_of
from latentviews.core.by_parts import by_parts
from latentviews.core.categories import decoded
from latentviews.core.components import Components
from latentviews.core.selection import RankTest
from latentviews.core.tables import Columns, TrainingRows
from latentviews.core.views import ViewFits, Views
from latentviews.mixtures.conditional import Conditional
from latentviews.mixtures.functionals import functional_posteriors, judged_by_functionals
from latentviews.mixtures.inference import Classes, signed_weights
from latentviews.mixtures.polish import Polished
from latentviews.mixtures.sieve import SieveParameters, accelerated_em, moves_little, posterior

KNOWN_ROWS = 20_000  # rows with known labels that name the classes
REFIT_STEPS = 1000  # of EM on resampled rows, which ends where all rows together gain less in a hundred steps,
REFIT_GAIN = 0.2  # a log-likelihood that is small beside what a standard error of a weight costs, one half,
SETTLED = (
    2e-3  # or where a step moves every weight by less of its error: smaller steps lead to the same standard errors
)
TOLD = 5  # classes that win no row; more are counted
FEW_ROWS = (100, 2000)  # rows that are asked first whether every class wins some


@dataclass(frozen=True, eq=False)
class Problem(TrainingRows):
    """What a fit is given, read and checked."""

    columns: Columns
    blocks: list[int]
    prototypes: list[Any]  # an unfitted feature map per view
    rank: int
    rng: np.random.Generator
    allowed: np.ndarray | None = None  # (n_pilot, k), zero for classes that a row is known not to be in
    rank_test: RankTest | None = None  # where the rank was not given
    directions: Mapping[int, np.ndarray] = field(default_factory=dict)  # (d, q), of views that are seen in a subspace
    fits: ViewFits | None = None  # where some were made before
    point_masses: Any = None  # "auto", values, or None: those that copulas have

    @cached_property
    def view_fits(self) -> ViewFits:
        """The feature maps fitted to the pilot so far."""
        return self.fits or ViewFits(self.pilot, self.columns, self.blocks, self.codes)

    def views(self, prototypes: Sequence[Any] | None = None) -> Views:
        """The views with these feature maps, the problem's own if None, fitted to the pilot."""
        return self.view_fits.views(self.prototypes if prototypes is None else prototypes, self.rng)

    @property
    def class_weights(self) -> np.ndarray | None:
        """The weights of all rows; of rows in classes, (n, k), where some classes are known."""
        if self.labels is None:
            return self.weights
        allowed = allowed_classes(self.labels, self.rank)
        return allowed if self.weights is None else allowed * self.weights[:, None]

    def name_classes(self, posteriors: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The classes in the order in which known labels name them; as they are without labels."""
        if self.labels is None:
            return np.arange(self.rank)
        known = np.flatnonzero(self.labels >= 0)[:KNOWN_ROWS]
        rows = to_numpy(take_rows(self.data, known))
        return label_order(posteriors(rows), allowed_classes(self.labels[known], self.rank))


class Estimate(NamedTuple):
    """Classes whose views are independent: weights and components are all that is needed to judge a row."""

    weights: np.ndarray
    components: list[Components]
    columns: Columns
    polished: Polished | None = None  # the sieve that the components were made from

    @property
    def n_parameters(self) -> float:
        """Weights, and the trace of every density's smoother; views of a block count once."""
        views = {id(view): view for view in self.components}.values()
        return len(self.weights) - 1 + float(sum(view.n_parameters.sum() for view in views))

    @property
    def dependence(self) -> None:
        """Views are independent inside classes."""
        return None

    @property
    def noise_class(self) -> bool:
        """Every row is in a class."""
        return False

    @property
    def noise_weight(self) -> float:
        """Noise is no class."""
        return 0.0

    @property
    def can_refit(self) -> bool:
        """Whether there is a sieve to refit."""
        return self.polished is not None

    def take(self, order: np.ndarray) -> "Estimate":
        """The same with the classes in another order; views of a block keep one record."""
        reordered = {id(view): view.take(order) for view in self.components}
        return Estimate(
            self.weights[order],
            [reordered[id(view)] for view in self.components],
            self.columns,
            None if self.polished is None else self.polished.take(order),
        )

    def log_joint(self, table: Any) -> np.ndarray:
        """Log π_h + Σ_t log p_t(x_t | h) over the views a row has, (n, k); views without density count by P(h | x)."""
        if counts_there(table) and all(getattr(view, "looks_up", False) for view in self.components):
            return self._looked_up(table)
        table = to_numpy(table)
        joint = np.tile(np.log(np.maximum(self.weights, TINY)), (len(table), 1))
        blind = judged_by_functionals(self.components)
        if blind:  # their P(h | x) is all that is known, up to a factor of the row's
            joint = np.log(functional_posteriors(table, self.columns, self.components, blind, self.weights) + TINY)
        seen = [t for t in range(len(self.components)) if t not in blind]
        missing = np.isnan(table) if np.isnan(table.sum()) else None
        for columns, view in [(self.columns[t], self.components[t]) for t in seen]:
            x = table[:, columns]
            present = None if missing is None else ~missing[:, columns].any(axis=1)
            if present is None or present.all():
                joint += view.log_density(x)
            elif present.any():
                joint[present] += view.log_density(x[present])
        return joint

    def _looked_up(self, table: Any) -> Any:
        """The same where the rows live."""
        views = zip(self.columns, self.components, strict=True)
        logs = [view.log_density(table[:, columns[0]]) for columns, view in views]
        return sum(logs[1:], start=logs[0]) + in_library_of(np.log(np.maximum(self.weights, TINY)), logs[0])

    def posteriors(self, table: Any) -> np.ndarray:
        """P(h | row), (n, k)."""
        joint = self.log_joint(table)
        return posteriors_of(joint)

    def _posteriors_without(self, table: np.ndarray, view: int) -> np.ndarray:
        """P(h | all views but one), (n, k)."""
        table = table.copy()
        table[:, self.columns[view]] = np.nan
        return self.posteriors(table)

    def sample(self, n_samples: int, n_columns: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Rows and their classes; columns in no view are NaN."""
        labels = rng.choice(len(self.weights), size=n_samples, p=self.weights)
        rows = np.full((n_samples, n_columns), np.nan)
        for component in range(len(self.weights)):
            members = np.flatnonzero(labels == component)
            for columns, view in zip(self.columns, self.components, strict=True):
                rows[members[:, None], columns] = view.sample(component, len(members), rng)
        return rows, labels

    def conditional(self, table: np.ndarray, view: int) -> Conditional:
        """The distribution of one view given the others, for every row."""
        return Conditional(self._posteriors_without(table, view), self.components[view])

    def functional_weights(self, table: np.ndarray, view: int, counts: np.ndarray) -> np.ndarray:
        """How much every row counts for means of functions of a view in every class, (n, k): what other views say."""
        return signed_weights(self.posteriors(table), self._posteriors_without(table, view), counts)

    def resampled(self, table: np.ndarray, counts: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """The shares (n, k) of the rows in the classes after refits of the sieve to rows that count so often."""
        if self.polished is None:
            raise ValueError(
                "bootstrap refits the polish, and this model was fitted with polish=None; fit it with one."
            )
        cells, start = self.polished.cells(table), self.polished.fit.parameters

        def ends(before: SieveParameters, after: SieveParameters, small: bool) -> bool:
            return small or moves_little(before, after, len(table), SETTLED)

        for weights in counts:
            step = partial(self.polished.step, cells, weights=weights)
            fit = accelerated_em(step, start, REFIT_STEPS, REFIT_GAIN / len(table), ends=ends)
            yield posterior(cells, fit.parameters)[0] * weights[:, None]


def classes_of(model: Any) -> Classes:
    """What judges the rows of a fitted mixture, from its attributes."""
    own = Estimate(model.weights_, model.components_, model.views_, getattr(model, "polished_", None))
    return getattr(model, "dependent_", None) or own


def hidden_sentence(counts: np.ndarray, weights: np.ndarray) -> str | None:
    """On classes that win no row, given how many rows each wins; None where there are none."""
    places = np.flatnonzero(counts == 0)
    hidden = [f"class {h}, of size {weights[h]:.1%}" for h in places]
    if not hidden:
        return None
    if len(hidden) > TOLD:
        every = (
            f"No row is most probably in {len(hidden)} of {len(counts)} classes, of size {weights[places].sum():.1%}"
        )
        return f"{every} in all: they hide beneath others. Try fewer classes."
    rest = "it hides beneath others, and may be none of its own" if len(hidden) == 1 else "they hide beneath others"
    return f"No row is most probably in {', or in '.join(hidden)}: {rest}. Try fewer classes."


def warn_of_hidden(weights: np.ndarray, log_joint: Callable[[Any], np.ndarray], rows: Any) -> None:
    """Warn of classes that no row is most probably in, given the joint density of rows and classes."""
    for few in (*FEW_ROWS, len(rows)):  # a few rows mostly show every class, and then no more are asked
        some = rows[:: max(len(rows) // few, 1)]
        counts = np.bincount(log_joint(some).argmax(axis=1), minlength=len(weights))[: len(weights)]
        sentence = hidden_sentence(counts, weights)
        if sentence is None:
            return
    warn_user(str(sentence), IdentifiabilityWarning)


class PosteriorMixin(DensityMixin):
    """What follows from ``_log_joint(X)``, the log of the joint density of rows and classes, and the components."""

    fit: Callable[..., Any]
    _log_joint: Callable[[Any], np.ndarray]
    random_state: Any
    n_features_in_: int
    weights_: np.ndarray
    components_: list[Any]
    views_: Columns

    def fit_predict(self, X: Any, y: Any = None, **options: Any) -> np.ndarray:
        """Fit, and the most probable class of every row: ``fit(X, y, **options).predict(X)``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,) or None
            As ``fit`` takes it.
        **options : keyword arguments
            Of ``fit``.

        Returns
        -------
        array of shape (n_samples,)
        """
        return self.fit(X, y, **options).predict(X)

    @by_parts(dtype=int)
    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row; -1 where it is noise, and ``dependence`` makes noise a class.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self)
        labels = self._labels(X)
        if classes_of(self).noise_class:
            labels = namespace(labels).where(labels < len(self.weights_), labels, -1)
        return answered(labels, X)

    def _labels(self, X: Any) -> np.ndarray:
        """The number of the largest for every row."""
        joint = self._log_joint(X)
        return namespace(joint).argmax(joint, axis=1)

    @by_parts("n_components_")
    def predict_proba(self, X: Any) -> np.ndarray:
        """The posterior probability of every class; what is left to one is that of noise, where it is a class.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, k)
        """
        return answered(posteriors_of(self._log_joint(X))[:, : len(self.weights_)], X)

    @by_parts()
    def score_samples(self, X: Any) -> np.ndarray:
        """The log-density of every row, over the views it has.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self)
        for view in self.components_:
            if isinstance(view, Components) and view.domain is None:
                view._domain()  # which says that there is no density
        return answered(log_of_sums(self._log_joint(X)), X)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-density of the rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        float
            Higher is better.
        """
        return float(self._log_densities(X).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Rows drawn from the fitted mixture, and their classes; columns in no view are NaN.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None
            By default that of the model, so that a call repeats itself.

        Returns
        -------
        tuple of arrays
            Rows (n_samples, n_features), and their classes.
        """
        check_is_fitted(self)
        n_samples, rng = check_count("n_samples", n_samples), draws_of(self, random_state)
        rows, labels = classes_of(self).sample(n_samples, self.n_features_in_, rng)
        return decoded(rows, getattr(self, "categories_", {})), labels

    def aic(self, X: Any) -> float:
        """Akaike's criterion with the effective number of parameters of the densities; lower is better.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        float
        """
        return -2 * float(self._log_densities(X).sum()) + 2 * self._n_parameters()

    def bic(self, X: Any) -> float:
        """The Bayesian criterion with the effective number of parameters of the densities; lower is better.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        float
        """
        log_likelihood = self._log_densities(X)
        n_rows = float((log_likelihood == log_likelihood).sum())  # which a Dask collection may not know
        return -2 * float(log_likelihood.sum()) + np.log(n_rows) * self._n_parameters()

    def _log_densities(self, X: Any) -> Any:
        """What ``score_samples`` gives, in NumPy, or still to be computed by Dask."""
        values = self.score_samples(X)
        return values if hasattr(values, "dask") else to_numpy(values)

    def _n_parameters(self) -> float:
        return classes_of(self).n_parameters


def label_order(posteriors: np.ndarray, allowed: np.ndarray | None) -> np.ndarray:
    """The classes in the order in which known labels name them."""
    if allowed is None:
        return np.arange(posteriors.shape[1])
    known = allowed.sum(axis=1) == 1
    return linear_sum_assignment(-allowed[known].T @ posteriors[known])[1]
