"""Kernels on rows: what two points have in common.

A kernel needs one method, ``gram``; ``+`` and ``*`` come free. Those that are densities in their first argument
(all but `Delta`, `Linear` and `Polynomial`) make embeddings whose values are densities.
"""

import math
from typing import Any, Self

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if

from latentviews import bandwidths
from latentviews._arrays import like, namespace, normal_quantile, to_numpy
from latentviews._validation import check_count

Bandwidth = float | str | np.ndarray


class Kernel(BaseEstimator):
    """What every kernel offers: ``gram(x, y)``, and what follows from it.

    ``domain`` names the space the kernel's densities live on: "real" (Lebesgue measure), "circle" (angles),
    "discrete" (counting measure), or None where it has none. A shift-invariant kernel also offers
    ``frequencies(size, dim, rng)``, draws from its spectral measure in columns, and may offer
    ``spectral(points, dim)``, the frequencies at points of the unit cube of ``spectral_size(dim)`` coordinates:
    uniform points, however they depend on each other, give draws from the spectral measure.
    """

    domain: str | None = "real"

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        raise TypeError(f"{type(self).__name__} is a kernel without `gram`: write gram(x, y) for it.")

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i)."""
        xp = namespace(x)
        return xp.concat([xp.reshape(self.gram(x[i : i + 1, :], x[i : i + 1, :]), (1,)) for i in range(x.shape[0])])

    def correlation(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j) / √(k(x_i, x_i) k(y_j, y_j))."""
        xp = namespace(x)
        heights = xp.sqrt(self.diagonal(x)[:, None] * self.diagonal(y)[None, :])
        return self.gram(x, y) / xp.clip(heights, min=float(np.finfo(np.float32).tiny))  # zero has no direction

    def adapt(self, x: Any) -> Self:
        """A copy in which every rule (such as ``bandwidth="median"``) is a number read off the rows ``x``."""
        return clone(self)

    def __add__(self, other: "Kernel") -> "Sum":
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: "Kernel") -> "Product":
        return Product(self, other) if isinstance(other, Kernel) else NotImplemented


class _ShiftInvariant(Kernel):
    """Kernels known by their spectral measure: ``frequencies`` from ``spectral``."""

    def spectral_size(self, dim: int) -> int:
        """How many uniform numbers make a frequency in ``dim`` dimensions."""
        return dim

    def spectral(self, points: Any, dim: int) -> Any:
        """The frequencies at ``points`` of the unit cube, (size, spectral_size), a frequency a column."""
        raise TypeError(f"{type(self).__name__} does not say what its spectral measure is.")

    def frequencies(self, size: int, dim: int, rng: np.random.Generator) -> np.ndarray:
        """Draws from the spectral measure, a frequency a column."""
        return self.spectral(rng.random((size, self.spectral_size(dim))), dim)


class _Scaled(_ShiftInvariant):
    """Shift-invariant kernels k(x, y) = s^(-d) q(x/s - y/s) with one bandwidth s or one a column."""

    def __init__(self, bandwidth: Bandwidth = "isj"):
        self.bandwidth = bandwidth

    def adapt(self, x: Any) -> Self:
        """A copy whose bandwidth is a number, or one a column."""
        if not isinstance(self.bandwidth, str):
            self._scale(np.shape(x)[1])
            return clone(self)
        return clone(self).set_params(bandwidth=self._resolve(self.bandwidth, to_numpy(x)))

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        with np.errstate(over="ignore"):  # in very many dimensions the height of a density is no number
            return self.correlation(x, y) * float(np.exp(self.log_height(x.shape[1])))

    def correlation(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j) / k(0), one where x and y are the same."""
        scale = self._scale(x.shape[1])
        return self._profile(x / like(scale, x), y / like(scale, y))

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i), all equal."""
        return self.gram(x[:1, :], x[:1, :])[0, 0] * namespace(x).ones_like(x[:, 0])

    def _profile(self, x: Any, y: Any) -> Any:
        """The correlation at bandwidth one; the rows are its own, to be changed."""
        raise TypeError(f"{type(self).__name__} does not say what it is at bandwidth one.")

    def log_height(self, dim: int) -> float:
        """The log of k(0), such that the kernel is a density."""
        return self._log_unit_height(dim) - float(np.log(self._scale(dim)).sum())

    def _log_unit_height(self, dim: int) -> float:
        """The log of k(0) at bandwidth one."""
        raise TypeError(f"{type(self).__name__} does not say how high it is at bandwidth one.")

    def spectral(self, points: Any, dim: int) -> Any:
        """The frequencies at ``points`` of the unit cube, (size, spectral_size), a frequency a column."""
        return self._unit_spectral(points).T / like(self._scale(dim), points)[:, None]

    def _unit_spectral(self, points: Any) -> Any:
        """The frequencies at bandwidth one, a frequency a row."""
        raise TypeError(f"{type(self).__name__} does not say what its spectral measure is.")

    def _resolve(self, rule: str, x: np.ndarray) -> float | np.ndarray:
        return bandwidths.resolve(rule, x)

    def _scale(self, dim: int) -> np.ndarray:
        """The bandwidth of every column, checked."""
        name = type(self).__name__
        if isinstance(self.bandwidth, str):
            raise ValueError(
                f"{name}(bandwidth={self.bandwidth!r}) is a rule, not yet a number; call `adapt(x)` on data first."
            )
        scale = np.asarray(self.bandwidth, dtype=float)
        if scale.ndim > 1 or (scale.ndim == 1 and len(scale) != dim):
            raise ValueError(
                f"{name} takes one bandwidth or one a column; got shape {scale.shape} for {dim} column(s)."
            )
        if not np.all(np.isfinite(scale) & (scale > 0)):
            raise ValueError(f"{name} needs a positive, finite bandwidth; got {self.bandwidth!r}.")
        return np.full(dim, scale)


def _squares(x: Any, y: Any) -> Any:
    """Squared Euclidean distances between rows, in whose place intermediate results may be put."""
    xp = namespace(x)
    if x.shape[1] == 1:
        with np.errstate(over="ignore"):  # infinitely far
            return (x - y.T) ** 2
    center = xp.mean(y, axis=0)  # large offsets would cost digits in the difference below
    x -= center
    y -= center
    limit = math.sqrt(float(xp.finfo(x.dtype).max) / (8 * x.shape[1]))  # squares of larger numbers are out of range
    if isinstance(x, np.ndarray):  # in place: copies of many columns are memory
        np.clip(x, -limit, limit, out=x)
        np.clip(y, -limit, limit, out=y)
    else:
        x, y = xp.clip(x, min=-limit, max=limit), xp.clip(y, min=-limit, max=limit)
    squares = x @ y.T
    squares *= -2
    squares += xp.vecdot(x, x)[:, None]
    squares += xp.vecdot(y, y)
    return xp.clip(squares, min=0.0)  # rounding can take a zero distance below zero


class Gaussian(_Scaled):
    r"""The Gaussian density as a kernel (equation 2 of Song et al. 2014, right for any dimension).

    .. math:: k(x, y) = (2\pi)^{-d/2} s^{-d} \exp(-\|x - y\|^2 / (2 s^2))

    Parameters
    ----------
    bandwidth : float, array of one a column, or rule
        The scale s. A rule ("isj", "silverman", "scott", "median") is resolved on data by ``adapt``.

    Examples
    --------
    >>> import numpy as np
    >>> Gaussian(2.0).gram(np.zeros((1, 1)), np.array([[0.0], [2.0]])).round(3)
    array([[0.199, 0.121]])
    """

    def _profile(self, x: Any, y: Any) -> Any:
        squares = _squares(x, y)
        squares *= -0.5
        return namespace(x).exp(squares)

    def _log_unit_height(self, dim: int) -> float:
        return -dim / 2 * math.log(2 * math.pi)

    def _unit_spectral(self, points: Any) -> Any:
        return normal_quantile(points)

    def radii(self, size: int, dim: int, rng: np.random.Generator) -> np.ndarray:
        """Lengths of frequencies at bandwidth one, whose directions are uniform."""
        return np.sqrt(rng.chisquare(dim, size=size))


class Laplace(_Scaled):
    r"""The Laplace density as a kernel.

    .. math:: k(x, y) = (2s)^{-d} \exp(-\|x - y\|_1 / s)

    Parameters
    ----------
    bandwidth : float, array of one a column, or rule
        The scale s.
    """

    def _profile(self, x: Any, y: Any) -> Any:
        xp = namespace(x)
        return xp.exp(-sum(xp.abs(x[:, j, None] - y[None, :, j]) for j in range(x.shape[1])))

    def _log_unit_height(self, dim: int) -> float:
        return -dim * math.log(2)

    def _unit_spectral(self, points: Any) -> Any:
        return namespace(points).tan(math.pi * (points - 0.5))  # Cauchy


class Matern(_Scaled):
    r"""The Matérn family as densities, for half-integer smoothness ν = p + 1/2.

    .. math:: k(x, y) = c\, e^{-a} \frac{p!}{(2p)!} \sum_{i=0}^p \frac{(p+i)!}{i!(p-i)!} (2a)^{p-i},
              \qquad a = \sqrt{2\nu}\,\|x - y\| / s

    with c such that the kernel integrates to one in d dimensions.

    Parameters
    ----------
    bandwidth : float, array of one a column, or rule
        The scale s.
    smoothness : float
        ν, one of 0.5, 1.5, 2.5, …
    """

    def __init__(self, bandwidth: Bandwidth = "isj", smoothness: float = 1.5):
        super().__init__(bandwidth)
        self.smoothness = smoothness

    def _profile(self, x: Any, y: Any) -> Any:
        xp, p = namespace(x), self._degree()
        a = math.sqrt(2 * self.smoothness) * xp.sqrt(_squares(x, y))
        a = xp.clip(a, max=-1.25 * math.log(float(xp.finfo(a.dtype).smallest_normal)))  # exp(-a) is zero from here on
        factorial = math.factorial
        terms = (factorial(p + i) / (factorial(i) * factorial(p - i)) * (2 * a) ** (p - i) for i in range(p + 1))
        return xp.exp(-a) * sum(terms) * (factorial(p) / factorial(2 * p))

    def spectral_size(self, dim: int) -> int:
        """How many uniform numbers make a frequency: a direction, and how far the tails reach."""
        return dim + 1

    def _unit_spectral(self, points: Any) -> Any:
        self._degree()
        half_chi_square = special.gammaincinv(self.smoothness, to_numpy(points[:, -1]))  # 2ν degrees of freedom
        return normal_quantile(points[:, :-1]) * like(np.sqrt(self.smoothness / half_chi_square), points)[:, None]

    def radii(self, size: int, dim: int, rng: np.random.Generator) -> np.ndarray:
        """Lengths of frequencies at bandwidth one, whose directions are uniform."""
        self._degree()
        return np.sqrt(rng.chisquare(dim, size=size) * 2 * self.smoothness / rng.chisquare(2 * self.smoothness, size))

    def _degree(self) -> int:
        p = self.smoothness - 0.5
        if p < 0 or p != int(p):
            raise ValueError(f"Matern needs a smoothness of 0.5, 1.5, 2.5, …; got {self.smoothness!r}.")
        return int(p)

    def _log_unit_height(self, dim: int) -> float:
        """One over the integral of the correlation, which is its spectral density at zero."""
        v = self.smoothness
        return math.lgamma(v) - math.lgamma(v + dim / 2) - dim / 2 * math.log(2 * math.pi / v)


class VonMises(_ShiftInvariant):
    r"""The von Mises density on the circle, and its product on the torus, as a kernel. Angles are in radians.

    .. math:: k(x, y) = \prod_j \frac{\exp(\kappa \cos(x_j - y_j))}{2\pi I_0(\kappa)}, \qquad \kappa = s^{-2}

    Parameters
    ----------
    bandwidth : float or rule
        The scale s in radians; narrow kernels are Gaussians of that standard deviation. The rules are
        "median" (of the angular distances) and "silverman" (on the circular standard deviation).
    """

    domain = "circle"

    def __init__(self, bandwidth: float | str = "silverman"):
        self.bandwidth = bandwidth

    def adapt(self, x: Any) -> Self:
        """A copy whose bandwidth is a number."""
        if not isinstance(self.bandwidth, str):
            self._concentration()
            return clone(self)
        return clone(self).set_params(bandwidth=_circular_bandwidth(self.bandwidth, to_numpy(x)))

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        return self.correlation(x, y) * (2 * math.pi * float(special.ive(0, self._concentration()))) ** -x.shape[1]

    def correlation(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j) / k(0), one where x and y are the same."""
        xp = namespace(x)
        cosines = xp.cos(x) @ xp.cos(y).T + xp.sin(x) @ xp.sin(y).T
        return xp.exp(self._concentration() * (cosines - x.shape[1]))

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i), all equal."""
        return self.gram(x[:1, :], x[:1, :])[0, 0] * namespace(x).ones_like(x[:, 0])

    def spectral(self, points: Any, dim: int) -> Any:
        """Integers n with probability e^(-κ) I_|n|(κ), a frequency a column."""
        kappa = self._concentration()
        reach = int(10 + 10 * math.sqrt(kappa))  # I_n(κ) falls as exp(-n²/(2κ))
        cumulative = np.cumsum(special.ive(np.abs(np.arange(-reach, reach + 1)), kappa))
        places = np.searchsorted(cumulative / cumulative[-1], to_numpy(points).T, side="right")
        return like(np.minimum(places, 2 * reach) - float(reach), points)

    def _concentration(self) -> float:
        if isinstance(self.bandwidth, str):
            raise ValueError(
                f"VonMises(bandwidth={self.bandwidth!r}) is a rule, not yet a number; call `adapt(x)` on data first."
            )
        if not (np.ndim(self.bandwidth) == 0 and np.isfinite(self.bandwidth) and self.bandwidth > 0):
            raise ValueError(f"VonMises needs one positive, finite bandwidth; got {self.bandwidth!r}.")
        return float(self.bandwidth) ** -2


def _circular_bandwidth(rule: str, x: np.ndarray) -> float:
    """A bandwidth in radians for angles."""
    points = np.concatenate([np.cos(x), np.sin(x)], axis=1)
    if rule == "median":
        chord = bandwidths.resolve("median", points) / math.sqrt(x.shape[1])
        return 2 * math.asin(min(float(chord) / 2, 1.0))
    if rule == "silverman":
        resultant = np.abs(np.exp(1j * x).mean(axis=0)).clip(0.05, 1 - 1e-12)
        spread = float(np.sqrt(-2 * np.log(resultant)).mean())
        return spread * (4 / (len(x) * (x.shape[1] + 2))) ** (1 / (x.shape[1] + 4))
    raise ValueError(f"VonMises takes a positive bandwidth or one of ['median', 'silverman']; got {rule!r}.")


class Delta(Kernel):
    r"""Equality, for discrete data: k(x, y) = 1 where all columns agree, else 0."""

    domain = "discrete"

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        xp = namespace(x)
        equal = x[:, 0, None] == y[None, :, 0]
        for j in range(1, x.shape[1]):
            equal = equal & (x[:, j, None] == y[None, :, j])
        return xp.astype(equal, x.dtype if xp.isdtype(x.dtype, "real floating") else xp.float64)

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i), all one."""
        return namespace(x).ones_like(x[:, 0])


class Linear(Kernel):
    """The inner product, k(x, y) = ⟨x, y⟩. Its embeddings are means; they have no density."""

    domain = None

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        return x @ y.T

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i)."""
        return namespace(x).sum(x**2, axis=1)


class Polynomial(Kernel):
    r"""A power of the inner product. Its embeddings hold moments up to the degree; they have no density.

    .. math:: k(x, y) = (s \langle x, y \rangle + c)^p

    Parameters
    ----------
    degree : int, default=2
        The power p.
    scale : float, default=1
        The factor s, positive.
    offset : float, default=1
        The constant c, at least zero; zero leaves out the lower powers.
    """

    domain = None

    def __init__(self, degree: int = 2, scale: float = 1.0, offset: float = 1.0):
        self.degree = degree
        self.scale = scale
        self.offset = offset

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        degree, scale, offset = self.checked()
        return (scale * (x @ y.T) + offset) ** degree

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i)."""
        degree, scale, offset = self.checked()
        return (scale * namespace(x).sum(x**2, axis=1) + offset) ** degree

    def checked(self) -> tuple[int, float, float]:
        """Degree, scale and offset, or a sentence where they make no kernel."""
        degree = check_count("degree", self.degree)
        numbers = all(isinstance(value, int | float | np.number) for value in (self.scale, self.offset))
        if not (numbers and 0 < self.scale < np.inf and 0 <= self.offset < np.inf):
            raise ValueError(
                f"Polynomial needs a positive scale and an offset of at least zero; got {self.scale!r} and "
                f"{self.offset!r}."
            )
        return degree, float(self.scale), float(self.offset)


def _both_shift_invariant(pair: "_Pair") -> bool:
    return hasattr(pair.first, "frequencies") and hasattr(pair.second, "frequencies")


def _both_spectral(pair: "_Pair") -> bool:
    return hasattr(pair.first, "spectral") and hasattr(pair.second, "spectral")


class _Pair(Kernel):
    """Two kernels combined."""

    def __init__(self, first: Kernel, second: Kernel):
        self.first = first
        self.second = second

    @property
    def domain(self) -> str | None:  # type: ignore[override]
        """The domain of the parts, where they share one."""
        return self.first.domain if self.first.domain == self.second.domain else None

    def adapt(self, x: Any) -> Self:
        """A copy with both parts adapted."""
        return type(self)(self.first.adapt(x), self.second.adapt(x))


class Sum(_Pair):
    """k(x, y) = first(x, y) + second(x, y)."""

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        return self.first.gram(x, y) + self.second.gram(x, y)

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i)."""
        return self.first.diagonal(x) + self.second.diagonal(x)

    @available_if(_both_shift_invariant)
    def frequencies(self, size: int, dim: int, rng: np.random.Generator) -> np.ndarray:
        """Draws from the mixture of the parts' spectral measures, in proportion to their values at zero."""
        at_zero = [float(part.diagonal(np.zeros((1, dim)))[0]) for part in (self.first, self.second)]
        choice = rng.random(size) < at_zero[0] / sum(at_zero)
        draws = [part.frequencies(size, dim, rng) for part in (self.first, self.second)]
        return np.where(choice, *draws)

    @available_if(_both_spectral)
    def spectral_size(self, dim: int) -> int:
        """How many uniform numbers make a frequency: one for the choice of a part, and those of the part."""
        return 1 + max(self.first.spectral_size(dim), self.second.spectral_size(dim))

    @available_if(_both_spectral)
    def spectral(self, points: Any, dim: int) -> Any:
        """The frequencies at ``points`` of the unit cube: the first coordinate chooses the part."""
        at_zero = [float(part.diagonal(np.zeros((1, dim)))[0]) for part in (self.first, self.second)]
        sizes = [part.spectral_size(dim) for part in (self.first, self.second)]
        draws = [
            part.spectral(points[:, 1 : 1 + n], dim) for part, n in zip((self.first, self.second), sizes, strict=True)
        ]
        return namespace(points).where(points[:, 0] < at_zero[0] / sum(at_zero), *draws)


class Product(_Pair):
    """k(x, y) = first(x, y) · second(x, y)."""

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        return self.first.gram(x, y) * self.second.gram(x, y)

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i)."""
        return self.first.diagonal(x) * self.second.diagonal(x)

    def correlation(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j) / √(k(x_i, x_i) k(y_j, y_j))."""
        return self.first.correlation(x, y) * self.second.correlation(x, y)

    @available_if(_both_shift_invariant)
    def frequencies(self, size: int, dim: int, rng: np.random.Generator) -> np.ndarray:
        """Sums of draws from the parts' spectral measures: their convolution."""
        return self.first.frequencies(size, dim, rng) + self.second.frequencies(size, dim, rng)

    @available_if(_both_spectral)
    def spectral_size(self, dim: int) -> int:
        """How many uniform numbers make a frequency: those of both parts."""
        return self.first.spectral_size(dim) + self.second.spectral_size(dim)

    @available_if(_both_spectral)
    def spectral(self, points: Any, dim: int) -> Any:
        """The frequencies at ``points`` of the unit cube: sums of the parts'."""
        n = self.first.spectral_size(dim)
        return self.first.spectral(points[:, :n], dim) + self.second.spectral(points[:, n:], dim)


class UnitHeight(Kernel):
    """A kernel over its values where both arguments are the same: k(x, x) = 1. Its embeddings have no density."""

    domain = None

    def __init__(self, kernel: Kernel):
        self.kernel = kernel

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix of correlations."""
        return self.kernel.correlation(x, y)

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i), all one."""
        return namespace(x).ones_like(x[:, 0])

    def adapt(self, x: Any) -> Self:
        """A copy whose kernel is adapted."""
        return type(self)(self.kernel.adapt(x))
