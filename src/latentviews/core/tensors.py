"""Solvers: the orthogonal decomposition T = Σ λ_h v_h ⊗ v_h ⊗ v_h of a symmetric k × k × k tensor."""

from itertools import combinations
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from sklearn.base import BaseEstimator

from latentviews._numbers import TINY, size_of
from latentviews._parameters import Constraint, Count, Nonnegative, Such, WithData, check_parameters, is_number
from latentviews._validation import as_numbers


class Decomposition(NamedTuple):
    """Eigenpairs of a symmetric tensor, and how much of it they leave unexplained."""

    values: np.ndarray  # (k,), decreasing
    vectors: np.ndarray  # (k, k), eigenvectors in columns
    residual: float  # norm of the rest over norm of the tensor


class Solver(Protocol):
    """What every solver offers."""

    def decompose(self, tensor: np.ndarray, rng: np.random.Generator) -> Decomposition:
        """Eigenpairs of ``tensor``."""


class PowerMethod(BaseEstimator):
    r"""The robust tensor power method with deflation (Song et al. 2014, appendix 10, Algorithm 2).

    .. math:: \theta \leftarrow \frac{T(I, \theta, \theta)}{\|T(I, \theta, \theta)\|}, \qquad
              T(I, \theta, \theta)_i = \sum_{jl} T_{ijl}\, \theta_j \theta_l

    An eigenvector v_h of T = Σ_h λ_h v_h ⊗ v_h ⊗ v_h attracts what starts near it; it is then taken out of T.

    Parameters
    ----------
    n_restarts : int, default=50
        Random starts for every eigenvector, where none are given.
    n_iter : int, default=50
        Iterations from every start, and once more from the best.
    threshold : float, default=0.0
        ξ: an eigenpair found before is removed where abs(λ_j ⟨θ, v_j⟩) > ξ.
    starts : array of shape (n_starts, k) or None
        Vectors to start from instead, such as whitened rows of the data (Anandkumar, Ge, Hsu & Kakade 2013, section 4):
        where rows are of one class each, some lie near every eigenvector.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import PowerMethod
    >>> v = np.array([[0.6, -0.8], [0.8, 0.6]])  # eigenvectors in columns
    >>> tensor = np.einsum("h,ih,jh,lh->ijl", [3.0, 1.0], v, v, v)
    >>> found = PowerMethod().decompose(tensor, np.random.default_rng(0))
    >>> found.values.round(6), found.vectors.round(6)
    (array([3., 1.]), array([[ 0.6, -0.8],
           [ 0.8,  0.6]]))
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_restarts": Count(),
        "n_iter": Count(),
        "threshold": Such(lambda value: is_number(value) and value >= 0, "a number of at least zero"),
        "starts": WithData(),
    }

    def __init__(self, n_restarts: int = 50, n_iter: int = 50, threshold: float = 0.0, starts: Any = None):
        self.n_restarts = n_restarts
        self.n_iter = n_iter
        self.threshold = threshold
        self.starts = starts

    def decompose(self, tensor: np.ndarray, rng: np.random.Generator) -> Decomposition:
        """Eigenpairs, one after the other.

        Parameters
        ----------
        tensor : array of shape (k, k, k)
            A symmetric tensor.
        rng : numpy Generator

        Returns
        -------
        Decomposition
            Eigenpairs and the residual.
        """
        check_parameters(self)
        rank = len(tensor)
        values, vectors = np.empty(0), np.empty((rank, 0))
        for _ in range(rank):
            starts = _normalised(self._first_vectors(rank, rng))
            thetas = self._iterate(tensor, values, vectors, starts)
            heights = np.sum(self._update(tensor, values, vectors, thetas) * thetas, axis=1)
            best = self._iterate(tensor, values, vectors, thetas[[heights.argmax()]])
            height = np.sum(self._update(tensor, values, vectors, best) * best)
            values = np.append(values, height)
            vectors = np.column_stack([vectors, best[0]])
        return _ordered(tensor, vectors)

    def _first_vectors(self, rank: int, rng: np.random.Generator) -> np.ndarray:
        """The starts given, or random ones."""
        if self.starts is None:
            return rng.normal(size=(self.n_restarts, rank))
        starts = as_numbers("starts", self.starts)
        if starts.ndim != 2 or starts.shape[1] != rank or not len(starts) or not np.all(np.isfinite(starts)):
            raise ValueError(
                f"starts must be finite vectors of {rank} coordinates, one per row; got shape {starts.shape}."
            )
        return starts

    def _iterate(self, tensor: np.ndarray, values: np.ndarray, vectors: np.ndarray, thetas: np.ndarray) -> np.ndarray:
        for _ in range(self.n_iter):
            thetas = _normalised(self._update(tensor, values, vectors, thetas))
        return thetas

    def _update(self, tensor: np.ndarray, values: np.ndarray, vectors: np.ndarray, thetas: np.ndarray) -> np.ndarray:
        """The deflated T(I, θ, θ) for every row θ."""
        overlaps = thetas @ vectors
        removed = np.where(np.abs(values * overlaps) > self.threshold, values * overlaps**2, 0.0)
        return np.einsum("ijl,nj,nl->ni", tensor, thetas, thetas, optimize=True) - removed @ vectors.T


class JointDiagonalization(BaseEstimator):
    r"""The orthogonal matrix that makes all slices of the tensor as diagonal as can be, by Jacobi rotations.

    .. math:: \max_{V^\top V = I} \sum_l \sum_h \bigl(V^\top T_{\cdot\cdot l} V\bigr)_{hh}^2

    Cardoso & Souloumiac (1996). Every eigenvector is found at once, so errors do not pass from one to the
    next as they do in deflation.

    Parameters
    ----------
    max_sweeps : int, default=100
    tol : float, default=1e-14
        Stop after a sweep whose rotations are all smaller than this angle.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import JointDiagonalization
    >>> v = np.array([[0.6, -0.8], [0.8, 0.6]])  # eigenvectors in columns
    >>> tensor = np.einsum("h,ih,jh,lh->ijl", [3.0, 1.0], v, v, v)
    >>> found = JointDiagonalization().decompose(tensor, np.random.default_rng(0))
    >>> found.values.round(6), found.vectors.round(6)
    (array([3., 1.]), array([[ 0.6, -0.8],
           [ 0.8,  0.6]]))
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "max_sweeps": Count(),
        "tol": Nonnegative(),
    }

    def __init__(self, max_sweeps: int = 100, tol: float = 1e-14):
        self.max_sweeps = max_sweeps
        self.tol = tol

    def decompose(self, tensor: np.ndarray, rng: np.random.Generator) -> Decomposition:
        """Eigenpairs, all together.

        Parameters
        ----------
        tensor : array of shape (k, k, k)
            A symmetric tensor.
        rng : numpy Generator

        Returns
        -------
        Decomposition
            Eigenpairs and the residual.
        """
        check_parameters(self)
        vectors = rotated_to_diagonal(tensor, rng, self.max_sweeps, self.tol)
        return _ordered(tensor, vectors)


def rotated_to_diagonal(slices: np.ndarray, rng: np.random.Generator, max_sweeps: int, tol: float) -> np.ndarray:
    """The orthogonal matrix (k, k) in whose basis symmetric matrices (m, k, k) are as diagonal as can be together."""
    # a random contraction has distinct eigenvalues, so its eigenvectors are a start near the answer
    _, vectors = np.linalg.eigh(np.tensordot(rng.normal(size=len(slices)), slices, axes=1))
    turned = np.ascontiguousarray(np.einsum("lij,ia,jb->abl", slices, vectors, vectors, optimize=True))
    for _ in range(max_sweeps):
        angles = [_rotate(turned, vectors, p, q) for p, q in combinations(range(vectors.shape[1]), 2)]
        if max(map(abs, angles), default=0.0) < tol:
            break
    return vectors


def _rotate(turned: np.ndarray, vectors: np.ndarray, p: int, q: int) -> float:
    """Rotate coordinates p and q of (k, k, m), in place, by the angle that best diagonalises all m matrices at once."""
    contrast = np.stack([turned[p, p] - turned[q, q], 2 * turned[p, q]])
    gram = contrast @ contrast.T
    along, across = gram[0, 0] - gram[1, 1], 2 * gram[0, 1]
    angle = 0.5 * np.arctan2(across, along + np.hypot(along, across))
    cosine, sine = np.cos(angle), np.sin(angle)
    for rows in (turned, turned.swapaxes(0, 1), vectors.T):
        rows[p], rows[q] = cosine * rows[p] + sine * rows[q], cosine * rows[q] - sine * rows[p]
    return float(angle)


def _normalised(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY)


def _ordered(tensor: np.ndarray, vectors: np.ndarray) -> Decomposition:
    """Positive eigenvalues T(v, v, v) in decreasing order, and what they leave."""
    values = np.einsum("ijl,ih,jh,lh->h", tensor, vectors, vectors, vectors, optimize=True)
    vectors = vectors * np.where(values < 0, -1.0, 1.0)
    order = np.argsort(-np.abs(values))
    values, vectors = np.abs(values)[order], vectors[:, order]
    rest = tensor - np.einsum("h,ih,jh,lh->ijl", values, vectors, vectors, vectors, optimize=True)
    return Decomposition(values, vectors, size_of(rest) / max(size_of(tensor), TINY))
