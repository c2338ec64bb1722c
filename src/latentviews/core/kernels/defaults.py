"""The kernel that serves a space when nobody names one."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.circle import VonMises
from latentviews.core.kernels.discrete import Delta
from latentviews.core.kernels.mixed import product_on, widened
from latentviews.core.kernels.product_space import ProductSpace
from latentviews.core.kernels.real import Gaussian
from latentviews.core.kernels.space import Space
from latentviews.core.kernels.spaces import Circle, Discrete, Real, entry_for

KERNELS: Mapping[type[Space], Callable[[Any, Any], Kernel]] = {
    Real: lambda space, bandwidth: Gaussian(bandwidth, space=space),
    Circle: lambda space, bandwidth: VonMises(bandwidth, period=space.period),
    Discrete: lambda space, bandwidth: Delta(),
    ProductSpace: lambda space, bandwidth: product_on(
        [kernel_on(part, bandwidth) for part in space.parts], space.columns
    ),
}


def kernel_on(space: Space, bandwidth: Any) -> Kernel:
    """A kernel on a space, of a bandwidth or rule where it has one."""
    return entry_for(space, KERNELS)(space, bandwidth)


def thumb_kernel(space: Space, x: np.ndarray) -> Kernel:
    """A kernel on a space, as wide as the space's rule of thumb says for the rows ``x``."""
    if not isinstance(space, ProductSpace):
        return kernel_on(space, space.rule).adapt(x)
    own = [thumb_kernel(part, x[:, list(places)]) for part, places in zip(space.parts, space.columns, strict=True)]
    wider = zip(own, space.widening(x, len(x)), strict=True)
    return product_on([widened(kernel, factor) for kernel, factor in wider], space.columns)
