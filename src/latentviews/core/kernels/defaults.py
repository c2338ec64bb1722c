"""The kernel that serves a space when nobody names one."""

from collections.abc import Callable, Mapping
from typing import Any

from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.circle import VonMises
from latentviews.core.kernels.discrete import Delta
from latentviews.core.kernels.real import Gaussian
from latentviews.core.kernels.space import Space
from latentviews.core.kernels.spaces import Circle, Discrete, Real, entry_for

KERNELS: Mapping[type[Space], Callable[[Any, Any], Kernel]] = {
    Real: lambda space, bandwidth: Gaussian(bandwidth, space=space),
    Circle: lambda space, bandwidth: VonMises(bandwidth),
    Discrete: lambda space, bandwidth: Delta(),
}


def kernel_on(space: Space, bandwidth: Any) -> Kernel:
    """A kernel on a space, of a bandwidth or rule where it has one."""
    return entry_for(space, KERNELS)(space, bandwidth)
