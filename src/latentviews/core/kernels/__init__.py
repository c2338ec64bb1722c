"""What two points have in common; bandwidths by rule, and the spaces that densities live on."""

from latentviews.core.kernels.base import Kernel, Product, Sum, UnitHeight
from latentviews.core.kernels.circle import VonMises, WrappedGaussian
from latentviews.core.kernels.discrete import Delta
from latentviews.core.kernels.polynomial import Linear, Polynomial
from latentviews.core.kernels.real import Gaussian, Laplace, Matern
from latentviews.core.kernels.structured import Precomputed

__all__ = [
    "Delta",
    "Gaussian",
    "Kernel",
    "Laplace",
    "Linear",
    "Matern",
    "Polynomial",
    "Precomputed",
    "Product",
    "Sum",
    "UnitHeight",
    "VonMises",
    "WrappedGaussian",
]
