"""What a fit of classes is given, and what it finds."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import take_rows, to_numpy
from latentviews._numbers import TINY, posteriors_of
from latentviews._validation import IdentifiabilityWarning, allowed_classes, check_count, warn_user
from latentviews.core import streams
from latentviews.core.embeddings import Components
from latentviews.core.tables import Columns

KNOWN_ROWS = 20_000  # rows with known labels that name the classes


class Problem(NamedTuple):
    """What a fit is given, read and checked."""

    data: Any  # an array, or an iterable of batches
    weights: np.ndarray | None
    columns: Columns
    blocks: list[int]
    prototypes: list[Any]  # an unfitted feature map a view
    pilot: np.ndarray  # some rows of the data, and their weights
    pilot_weights: np.ndarray | None
    partial: bool  # whether there are more rows than the pilot's
    labels: np.ndarray | None  # known classes of all rows, -1 where unknown
    allowed: np.ndarray | None  # (n_pilot, k), zero for classes that a row is known not to be in
    rank: int
    rng: np.random.Generator

    @property
    def codes(self) -> np.ndarray | None:
        """All rows, where they are in memory: discrete views are read off them."""
        return to_numpy(self.data) if streams.is_array(self.data) else None

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
        return _label_order(posteriors(rows), allowed_classes(self.labels[known], self.rank))


class Estimate(NamedTuple):
    """Class weights and components: all that is needed to judge a row."""

    weights: np.ndarray
    components: list[Components]
    columns: Columns

    def take(self, order: np.ndarray) -> "Estimate":
        """The same with the classes in another order; views of a block keep one record."""
        reordered = {id(view): view.take(order) for view in self.components}
        return Estimate(self.weights[order], [reordered[id(view)] for view in self.components], self.columns)

    def log_joint(self, table: Any) -> np.ndarray:
        """Log π_h + Σ_t log p_t(x_t | h) over the views a row has, (n, k)."""
        table = to_numpy(table)
        joint = np.tile(np.log(np.maximum(self.weights, TINY)), (len(table), 1))
        for columns, view in zip(self.columns, self.components, strict=True):
            x = table[:, columns]
            present = ~np.isnan(x).any(axis=1)
            if present.all():
                joint += view.log_density(x)
            elif present.any():
                joint[present] += view.log_density(x[present])
        return joint

    def posteriors(self, table: Any) -> np.ndarray:
        """P(h | row), (n, k)."""
        joint = self.log_joint(table)
        return posteriors_of(joint)


def hidden_sentence(counts: np.ndarray, weights: np.ndarray) -> str | None:
    """On classes that win no row, given how many rows each wins; None where there are none."""
    hidden = [f"class {h}, of size {weights[h]:.1%}" for h in np.flatnonzero(counts == 0)]
    if not hidden:
        return None
    rest = "it hides beneath others, and may be none of its own" if len(hidden) == 1 else "they hide beneath others"
    return f"No row is most probably in {', or in '.join(hidden)}: {rest}. Try fewer classes."


def warn_of_hidden(weights: np.ndarray, joint: np.ndarray) -> None:
    """Warn of classes that no row is most probably in, given the joint density of rows and classes."""
    counts = np.bincount(joint.argmax(axis=1), minlength=len(weights))[: len(weights)]
    sentence = hidden_sentence(counts, weights)
    if sentence:
        warn_user(sentence, IdentifiabilityWarning)


class PosteriorMixin(DensityMixin):
    """What follows from ``_log_joint(X)``, the log of the joint density of rows and classes, and the components."""

    _log_joint: Callable[[Any], np.ndarray]
    random_state: Any
    n_components_: int
    n_features_in_: int
    weights_: np.ndarray
    components_: list[Any]
    views_: Columns

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row."""
        return self._log_joint(X).argmax(axis=1)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The posterior probability of every class, (n_samples, k)."""
        joint = self._log_joint(X)
        return posteriors_of(joint)

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-density of every row, over the views it has."""
        return logsumexp(self._log_joint(X), axis=1)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-density of the rows."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Rows drawn from the fitted mixture, and their classes; columns in no view are NaN."""
        check_is_fitted(self)
        n_samples, rng = check_count("n_samples", n_samples), np.random.default_rng(self.random_state)
        labels = rng.choice(self.n_components_, size=n_samples, p=self.weights_)
        rows = np.full((n_samples, self.n_features_in_), np.nan)
        for component in range(self.n_components_):
            members = np.flatnonzero(labels == component)
            for columns, view in zip(self.views_, self.components_, strict=True):
                rows[members[:, None], columns] = view.sample(component, len(members), rng)
        return rows, labels

    def aic(self, X: Any) -> float:
        """Akaike's criterion with the effective number of parameters of the densities; lower is better."""
        return -2 * float(self.score_samples(X).sum()) + 2 * self._n_parameters()

    def bic(self, X: Any) -> float:
        """The Bayesian criterion with the effective number of parameters of the densities; lower is better."""
        log_likelihood = self.score_samples(X)
        return -2 * float(log_likelihood.sum()) + np.log(len(log_likelihood)) * self._n_parameters()

    def _n_parameters(self) -> float:
        """Weights, and the trace of every density's smoother; views of a block count once."""
        views = {id(view): view for view in self.components_}.values()
        return self.n_components_ - 1 + float(sum(view.n_parameters.sum() for view in views))


def _label_order(posteriors: np.ndarray, allowed: np.ndarray | None) -> np.ndarray:
    """The classes in the order in which known labels name them."""
    if allowed is None:
        return np.arange(posteriors.shape[1])
    known = allowed.sum(axis=1) == 1
    return linear_sum_assignment(-allowed[known].T @ posteriors[known])[1]
