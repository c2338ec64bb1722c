"""Random feature maps: inner products that are a kernel on average, from no look at the data.

A frequency of a shift-invariant kernel is a point of the unit cube taken through its spectral measure. Points may be
independent, repel each other, or stand on a lattice; each is uniform, so every estimate is unbiased.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from array_api_compat import device
from scipy import linalg
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import in_library_of, namespace, to_numpy
from latentviews._parameters import Constraint, Count, Flag, OneOf, Seed, WithData, check_parameters
from latentviews._validation import all_or_nothing, check_range, check_rows
from latentviews.core.features.points import lattice_points, orthogonal_points
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.real import Gaussian

RADIX = 32  # Hadamard matrices are applied as products of factors of at most this size


class FourierFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Random Fourier features of a shift-invariant kernel (Rahimi & Recht 2007).

    .. math:: \varphi(x) = \sqrt{k(0)/m}\,(\cos \omega_1^\top x, \ldots, \cos \omega_m^\top x,
              \sin \omega_1^\top x, \ldots, \sin \omega_m^\top x)

    The inner product is unbiased for the kernel, amplitude included, so densities come out right.

    Parameters
    ----------
    kernel : Kernel with ``frequencies``, default=Gaussian()
    n_frequencies : int, default=256
        m; there are twice as many features.
    selection : {"independent", "orthogonal", "lattice", "fastfood"}, default="independent"
        How frequencies are picked: one by one; as many at a time as there are columns, orthogonal (Yu et al. 2016; for
        kernels other than the Gaussian, points that repel each other in the same way); on a shifted lattice, by far
        the best for few columns; or as the rows of products of Hadamard and diagonal matrices (Le, Sarlós & Smola
        2013), which take O(m log d) a row rather than O(m d), for the Gaussian and Matérn kernels.
    unit_height : bool, default=False
        Whether the kernel is divided by k(0). That is for classifiers and many columns, where the height of a density
        is out of a number's range.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    kernel_ : Kernel
    projection_ : callable
        From rows (n, n_features) to their phases ωᵀx, (n, n_frequencies).
    frequencies_ : array of shape (n_features, n_frequencies)
    amplitude_ : float, √(k(0)/m), or √(1/m) at unit height

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-3, 3, 50)[:, None]
    >>> phi = FourierFeatures(Gaussian(1.0), 64, selection="lattice", random_state=0).fit_transform(x)
    >>> bool(np.abs(phi @ phi.T - Gaussian(1.0).gram(x, x)).max() < 0.01)
    True
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "kernel": WithData(),
        "n_frequencies": Count(),
        "selection": OneOf(lambda: SELECTIONS),
        "unit_height": Flag(),
        "random_state": Seed(),
    }

    def __init__(
        self,
        kernel: Kernel | None = None,
        n_frequencies: int = 256,
        *,
        selection: str = "independent",
        unit_height: bool = False,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.n_frequencies = n_frequencies
        self.selection = selection
        self.unit_height = unit_height
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Resolve the kernel's rules on ``X`` and draw the frequencies.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        x = to_numpy(check_rows(self, X, reset=True))
        kernel = check_shift_invariant("FourierFeatures", Gaussian() if self.kernel is None else self.kernel)
        size, rng = self.n_frequencies, np.random.default_rng(self.random_state)
        self.kernel_ = kernel.adapt(x)
        self.projection_ = SELECTIONS[self.selection](self.kernel_, size, x.shape[1], rng)
        height = 1.0 if self.unit_height else float(self.kernel_.diagonal(x[:1])[0])
        if not 0 < height < np.inf:
            raise ValueError(
                f"The height of this kernel as a density on {x.shape[1]} columns, {height}, is out of range; pass "
                "unit_height=True to divide by it."
            )
        self.amplitude_ = math.sqrt(height / size)
        self._n_features_out = 2 * size
        return self

    def transform(self, X: Any) -> Any:
        """The feature vectors of the rows of ``X``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        x = check_rows(self, X, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):  # told in a sentence
            return self.amplitude_ * waves(check_range(self.projection_(x)))

    @property
    def frequencies_(self) -> np.ndarray:
        """The frequencies ω in columns."""
        return self.projection_(np.eye(self.n_features_in_))


def check_shift_invariant(name: str, kernel: Kernel, other: str = "LandmarkFeatures") -> Kernel:
    """``kernel`` if it has frequencies, or a sentence on what was expected."""
    if isinstance(kernel, type):
        raise TypeError(f"{name} needs a kernel that is an object, {kernel.__name__}(), not its class.")
    if getattr(getattr(kernel, "space", None), "bordered", False):
        raise TypeError(
            f"{name} takes kernels that know only differences; {kernel!r} is mirrored at the border of its space. "
            f"Take a kernel on the line, or {other}, which takes any kernel."
        )
    if not hasattr(kernel, "frequencies"):
        raise TypeError(
            f"{name} needs a shift-invariant kernel, one with `frequencies`; "
            f"{type(kernel).__name__} has none. {other} takes any kernel."
        )
    return kernel


def waves(phases: Any) -> Any:
    """The cosines of phases beside their sines."""
    xp = namespace(phases)
    return xp.concat([xp.cos(phases), xp.sin(phases)], axis=1)


@dataclass(frozen=True, eq=False)
class Dense:
    """Phases by a matrix of frequencies, (n_features, n_frequencies)."""

    frequencies: np.ndarray

    def __call__(self, x: Any) -> Any:
        """The phases of rows."""
        return x @ in_library_of(self.frequencies, x)


@dataclass(frozen=True, eq=False)
class Fastfood:
    """Phases by blocks of S H G Π H B: Hadamard matrices H, a permutation Π, and diagonal matrices.

    A row of H G Π H B, with signs B and normal G, is a normal vector; S gives it an independent length.
    """

    signs: np.ndarray  # (blocks, width), B
    order: np.ndarray  # (blocks * width,), Π
    normals: np.ndarray  # (blocks, width), G
    lengths: np.ndarray  # (blocks, width), S over the length that G gives
    scale: np.ndarray  # (n_features,), the bandwidth of every column
    size: int  # the number of frequencies

    def __call__(self, x: Any) -> Any:
        """The phases of rows."""
        xp, (blocks, width) = namespace(x), self.signs.shape
        rows, dim = x.shape
        x = x / in_library_of(self.scale, x)
        x = xp.concat([x, xp.zeros((rows, width - dim), dtype=x.dtype, device=device(x))], axis=1)
        mixed = hadamard_transform(x[:, None, :] * in_library_of(self.signs, x)[None, :, :])
        order = xp.asarray(self.order, device=device(x))
        mixed = xp.reshape(xp.take(xp.reshape(mixed, (rows, blocks * width)), order, axis=1), mixed.shape)
        phases = hadamard_transform(mixed * in_library_of(self.normals, x)) * in_library_of(self.lengths, x)
        return xp.reshape(phases, (rows, blocks * width))[:, : self.size]


def hadamard_transform(x: Any) -> Any:
    """The last axis of ``x``, whose length is a power of two, times the Hadamard matrix of ±1."""
    xp, shape, rest = namespace(x), x.shape, x.shape[-1]
    while rest > RADIX:  # H_(ab) is the Kronecker product of H_a and H_b
        rest //= RADIX
        x = in_library_of(linalg.hadamard(RADIX), x) @ xp.reshape(x, (-1, RADIX, rest))
    return xp.reshape(xp.reshape(x, (-1, rest)) @ in_library_of(linalg.hadamard(rest), x), shape)


def fastfood(kernel: Kernel, size: int, dim: int, rng: np.random.Generator) -> Fastfood:
    """So many frequencies of a kernel, never written out (Le, Sarlós & Smola 2013)."""
    if not hasattr(kernel, "radii"):
        raise TypeError(
            f'selection="fastfood" needs a kernel of the distance alone, one with `radii` (Gaussian or Matern); '
            f'{type(kernel).__name__} has none. "lattice" and "independent" take every shift-invariant kernel.'
        )
    width = 1 << max(dim - 1, 0).bit_length()
    shape = (-(-size // width), width)
    normals = rng.normal(size=shape)
    lengths = kernel.radii(shape, width, rng) / np.sqrt(width * np.sum(normals**2, axis=1, keepdims=True))
    orders = [block * width + rng.permutation(width) for block in range(shape[0])]
    signs, scale = rng.choice([-1.0, 1.0], size=shape), np.broadcast_to(kernel.get_params()["bandwidth"], (dim,))
    return Fastfood(signs, np.concatenate(orders), normals, lengths, np.asarray(scale, dtype=float), size)


def _independent(kernel: Kernel, size: int, dim: int, rng: np.random.Generator) -> Dense:
    return Dense(kernel.frequencies(size, dim, rng))


def _orthogonal(kernel: Kernel, size: int, dim: int, rng: np.random.Generator) -> Dense:
    return Dense(_spectral(kernel, dim, lambda n: orthogonal_points(size, n, rng)))


def _lattice(kernel: Kernel, size: int, dim: int, rng: np.random.Generator) -> Dense:
    return Dense(_spectral(kernel, dim, lambda n: lattice_points(0, size, rng.random(n))))


def _spectral(kernel: Any, dim: int, points: Callable[[int], np.ndarray]) -> np.ndarray:
    if not hasattr(kernel, "spectral"):
        raise TypeError(
            f"Only independent frequencies are to be had of {type(kernel).__name__}, which lacks `spectral`: use "
            'selection="independent", or write spectral(points, dim) for it.'
        )
    return kernel.spectral(points(kernel.spectral_size(dim)), dim)


SELECTIONS: dict[str, Callable[[Kernel, int, int, np.random.Generator], Any]] = {
    "independent": _independent,
    "orthogonal": _orthogonal,
    "lattice": _lattice,
    "fastfood": fastfood,
}
