"""What a feature map offers: φ(x), and where it is linear in something cheaper, φ(x) = raw(x) @ tail_."""

from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np

from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.spaces import space_of


@runtime_checkable
class FeatureMap(Protocol):
    """A fitted map from rows to finite vectors φ(x) whose inner products are a kernel; any transformer is one."""

    def transform(self, X: Any) -> Any:
        """The vectors φ(x) of the rows of ``X``, (n, D)."""


@runtime_checkable
class FactoredFeatureMap(FeatureMap, Protocol):
    """A feature map φ(x) = raw(x) @ tail_: sums over rows are taken of ``raw`` and multiplied by ``tail_`` once."""

    tail_: np.ndarray

    def raw(self, X: Any) -> Any:
        """The cheaper vectors of the rows of ``X``, sparse perhaps."""


def is_factored(phi: FeatureMap) -> TypeGuard[FactoredFeatureMap]:
    """Whether φ(x) = raw(x) @ tail_: told by ``tail_``, since asking the protocol takes longer than small batches."""
    return hasattr(phi, "tail_")


def raw_vectors(phi: FeatureMap, x: Any) -> Any:
    """The vectors that sums over rows are taken of: raw(x) where the map is factored, else φ(x).

    Of rows that were checked: our maps have ``_raw`` for those, which checks nothing again.
    """
    if hasattr(phi, "_raw"):
        return phi._raw(x)
    return phi.raw(x) if is_factored(phi) else phi.transform(x)


def tail_of(phi: FeatureMap) -> np.ndarray | None:
    """The matrix that takes `raw_vectors` to feature vectors; None where they are feature vectors already."""
    return phi.tail_ if is_factored(phi) else None


def numbers_held(phi: FeatureMap) -> int:
    """How many numbers `raw_vectors` of a row hold, for a map of one column on a grid as few as there are."""
    inside = getattr(phi, "features_", phi)
    if hasattr(inside, "grid_"):
        return 6  # two entries, their places, and what they are made from
    tail = tail_of(phi)
    return int(getattr(phi, "_n_features_out", 64) if tail is None else len(tail))


def check_inside(kernel: Kernel, x: np.ndarray) -> None:
    """Refuse values outside the space of a kernel, where they would have no features."""
    space = space_of(kernel)
    if space is not None and space.bordered:
        for j, column in enumerate(x.T):
            space.check(column, j)
