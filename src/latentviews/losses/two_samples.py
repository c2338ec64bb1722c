"""Losses of rows of two samples: how much denser one is than the other, and where."""

from typing import Any

import numpy as np

from latentviews._arrays import namespace
from latentviews._validation import check_positive
from latentviews.losses.base import Loss, between


class DensityRatio(Loss):
    r"""Least-squares importance fitting: the function of least loss is the ratio p/q of two densities.

    Rows drawn from p have target 1, rows drawn from q have target 0. With π the share of the former,

    .. math:: \frac{(1 - t)\, s^2}{2 (1 - \pi)} - \frac{t\, s}{\pi}, \qquad
              \text{on average}\quad \tfrac12 \mathbb E_q[s^2] - \mathbb E_p[s],

    which s = p/q minimises (Kanamori, Hido & Sugiyama 2009). Scores are not kept from falling below zero.

    Parameters
    ----------
    share : float, default=0.5
        π, between zero and one.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import DoublyStochasticRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0.5, size=(500, 1)), rng.normal(size=(500, 1))])
    >>> y = np.repeat([1.0, 0.0], 500)
    >>> ratio = DoublyStochasticRegressor(loss=DensityRatio(), random_state=0).fit(X, y)
    >>> bool(ratio.predict([[1.0]])[0] > 1 > ratio.predict([[-1.0]])[0])
    True
    """

    smooth = True
    limit = 1e4

    def __init__(self, share: float = 0.5):
        self.share = share

    @property
    def curvature(self) -> float:  # type: ignore[override]
        """That of rows from q; those from p have none."""
        return 1 / (1 - between("share", self.share))

    def constant(self, targets: np.ndarray) -> np.ndarray:
        """The constant scores to start from: one, where ``share`` is that of the targets."""
        _check_two_samples(self, targets)
        share, found = between("share", self.share), targets.mean(axis=0)
        return (found / share) / np.maximum((1 - found) / (1 - share), 1 / len(targets))

    def value(self, scores: Any, targets: Any) -> float:
        """The mean loss of rows."""
        xp, share = namespace(scores), between("share", self.share)
        losses = (1 - targets) * scores**2 / (2 * (1 - share)) - targets * scores / share
        return float(xp.mean(xp.sum(losses, axis=1)))

    def gradient(self, scores: Any, targets: Any) -> Any:
        """The derivative of every row's loss by its scores."""
        share = between("share", self.share)
        return (1 - targets) * scores / (1 - share) - targets / share


class Novelty(Loss):
    r"""A hinge loss whose function of least loss is 1 where a density is above a level, and -1 where below: novel.

    Rows of the sample, of density p, have target 1. Rows drawn from a reference of density q, such as evenly from the
    box around the sample, have target 0. With π the share of the former and ρ the level,

    .. math:: \frac{t}{\pi} \max(0, 1 - s) + \frac{\rho\,(1 - t)}{1 - \pi} \max(0, 1 + s),

    which is least for s = sign(p - ρ q) (Steinwart, Hush & Scovel 2005). A sample alone would not do: the constant of a
    machine is free, and a constant would tell no row from another.

    Parameters
    ----------
    level : float, default=0.1
        ρ: rows are novel where the sample has less than this share of the density of the reference.
    share : float, default=0.5
        π, between zero and one.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import DoublyStochasticRegressor, Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(500, 1)), rng.uniform(-6, 6, size=(500, 1))])
    >>> y = np.repeat([1.0, 0.0], 500)
    >>> known = DoublyStochasticRegressor(loss=Novelty(), kernel=Gaussian(1.0), random_state=0).fit(X, y)
    >>> np.sign(known.predict([[0.0], [5.0]]))
    array([ 1., -1.])
    """

    limit = 1e4

    def __init__(self, level: float = 0.1, share: float = 0.5):
        self.level = level
        self.share = share

    @property
    def curvature(self) -> float:  # type: ignore[override]
        """How large the gradient can be."""
        return max(self._factors())

    def constant(self, targets: np.ndarray) -> np.ndarray:
        """The constant scores to start from: neither known nor novel."""
        _check_two_samples(self, targets)
        return np.zeros(targets.shape[1])

    def value(self, scores: Any, targets: Any) -> float:
        """The mean loss of rows."""
        xp, (inside, outside) = namespace(scores), self._factors()
        known = inside * targets * xp.clip(1 - scores, min=0.0)
        return float(xp.mean(xp.sum(known + outside * (1 - targets) * xp.clip(1 + scores, min=0.0), axis=1)))

    def gradient(self, scores: Any, targets: Any) -> Any:
        """The derivative of every row's loss by its scores."""
        xp, (inside, outside) = namespace(scores), self._factors()
        low, high = xp.astype(scores < 1, scores.dtype), xp.astype(scores > -1, scores.dtype)
        return outside * (1 - targets) * high - inside * targets * low

    def _factors(self) -> tuple[float, float]:
        """What rows of the sample and of the reference are multiplied by."""
        share = between("share", self.share)
        return 1 / share, check_positive("level", self.level) / (1 - share)


def _check_two_samples(loss: Loss, targets: np.ndarray) -> None:
    """Refuse targets that do not say which of two samples a row is from."""
    if not np.all((targets == 0) | (targets == 1)):
        raise ValueError(f"{type(loss).__name__} takes targets 1 and 0, for the rows of two samples; got others.")
