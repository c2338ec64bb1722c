"""Columns whose longer tail is drawn in, for Gaussians that are too few to follow a skewed shape."""

from typing import Any, NamedTuple

import numpy as np

from latentviews._arrays import in_library_of, namespace
from latentviews._numbers import TINY, row_sums
from latentviews.densities.codebooks import FAR, spreads

LEVELS = (np.arange(200) + 0.5) / 200  # quantiles that stand for a column, without its stray rows
POWERS = np.array(sorted(np.linspace(0.05, 1.95, 39), key=lambda power: abs(power - 1)))  # straight where nothing tells


class PowerScale(NamedTuple):
    """Yeo & Johnson's (2000) power of every column, on the side of the longer tail, with z = (x - middle) / spread.

    y = sign(z) ((1 + |z|)^p - 1) / p, where p is ``power`` above the middle and 2 - ``power`` below, but at most one,
    which is straight: a power above one would push stray rows of the shorter tail further out.
    """

    middle: np.ndarray  # (d,)
    spread: np.ndarray  # (d,)
    power: np.ndarray  # (d,), between 0 and 2

    def bent(self, x: Any) -> tuple[Any, Any]:
        """The rows y (n, d), and the logs of |dy / dx|, (n,), where the rows are."""
        rows, log_slopes = bend(self.in_spreads(x), in_library_of(self.power, x))
        return rows, row_sums(log_slopes) - float(np.log(self.spread).sum())

    def in_spreads(self, x: Any) -> Any:
        """The columns z, where stray rows are at most far."""
        with np.errstate(over="ignore"):
            z = (x - in_library_of(self.middle, x)) / in_library_of(self.spread, x)
        return namespace(x).clip(z, -FAR, FAR)


def power_scale(x: np.ndarray) -> PowerScale:
    """The powers under which the columns of ``x``, none missing, are likeliest as normal ones."""
    straight = PowerScale(np.median(x, axis=0), spreads(x), np.ones(x.shape[1]))
    rows, log_slopes = bend(straight.in_spreads(np.quantile(x, LEVELS, axis=0)), POWERS[:, None, None])
    likelihoods = log_slopes.mean(axis=1) - np.log(np.maximum(rows.var(axis=1), TINY)) / 2
    return straight._replace(power=POWERS[likelihoods.argmax(axis=0)])


def bend(z: Any, power: Any) -> tuple[Any, Any]:
    """Bent columns y, and log |dy / dz|, of columns z in units of their spread."""
    xp = namespace(z)
    own = xp.clip(xp.where(z < 0, 2 - power, power), None, 1.0)
    logs = xp.log1p(xp.abs(z))
    return xp.sign(z) * xp.expm1(own * logs) / own, (own - 1) * logs
