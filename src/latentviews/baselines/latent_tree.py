"""The kernel spectral algorithm for latent trees, on a caterpillar."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import to_numpy
from latentviews._numbers import row_shares, thin_svd
from latentviews._parameters import Constraint, Count, Seed, Share, Such, check_parameters, is_number
from latentviews._validation import all_or_nothing, check_rows
from latentviews.core.kernels.bandwidths import median
from latentviews.core.kernels.real import Gaussian
from latentviews.joint.signed import ProductKDE, SignedDensity, column_features, in_range
from latentviews.joint.tensor_trees import TreeEmbedding, khatri_rao, leaf_features
from latentviews.joint.trees import caterpillar


class LatentTreeSpectral(DensityMixin, BaseEstimator):
    r"""Song, Parikh & Xing (2011): a latent caterpillar from pairs and triples of neighbouring columns.

    The belief about the hidden variable is carried from column to column in the coordinates U_j of the next one,

    .. math:: s_{j+1} = U_{j+1}^\top\, C_{j+1, j(x_j), j-1} (U_j^\top C_{j, j-1})^\dagger\, s_j

    with U_j the leading singular vectors of C_{j,j-1}. Where the tree and the rank are right this is exact; where they
    are not, nothing bounds its error, unlike that of `SignedTrain`. As there, the estimate may be negative: rows are
    scored by max(p̂, floor·KDE) / Z.

    Parameters
    ----------
    rank : int, default=2
    bandwidth : float or "median", default="median"
        Of the Gaussian kernel of every column; "median" is that of the distances between rows.
    floor : float, default=0.1
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    density_ : SignedDensity
    mass_ : float
        The integral of the estimate before it is floored.
    negative_share_ : float
        The share of fresh rows at which it is negative.

    Examples
    --------
    >>> from latentviews.baselines import LatentTreeSpectral
    >>> from latentviews.datasets import make_multiview
    >>> X = make_multiview(300, 2, random_state=0).X
    >>> round(LatentTreeSpectral(2, random_state=0).fit(X).mass_, 1)
    1.0
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "rank": Count(),
        "bandwidth": Such(
            lambda s: (isinstance(s, str) and s == "median") or (is_number(s) and s > 0),
            'a positive number or "median"',
        ),
        "floor": Share(),
        "random_state": Seed(),
    }

    def __init__(self, rank: int = 2, *, bandwidth: Any = "median", floor: float = 0.1, random_state: Any = None):
        self.rank = rank
        self.bandwidth = bandwidth
        self.floor = floor
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Moments of neighbours, and the operators from them.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        rank, by_rule = int(self.rank), isinstance(self.bandwidth, str)
        rows = to_numpy(check_rows(self, X, reset=True))
        if len(rows) < max(rank, 2) or rows.shape[1] < 2:
            raise ValueError(
                f"A latent tree of rank {rank} needs at least {max(rank, 2)} rows and two columns; got n_samples = "
                f"{len(rows)} and n_features = {rows.shape[1]}."
            )
        if np.all(rows == rows[0]):
            raise ValueError(f"All {rows.shape[1]} columns are constant over {len(rows)} rows; there is no density.")
        width = median(rows) if by_rule else float(self.bandwidth)
        if not in_range(np.full(rows.shape[1], width)):
            raise ValueError(
                f"The product of {rows.shape[1]} kernels with the bandwidth {width:.2g} leaves the range of floating "
                "point; scale the columns first."
            )
        kernels = {j: Gaussian(width) for j in range(rows.shape[1])}
        features = [column_features(kernels[j], rows[:, [j]], 100) for j in kernels]
        cores = chain_operators(leaf_features(features, range(rows.shape[1]), rows), rank)
        embedding = TreeEmbedding(caterpillar(rows.shape[1]), tuple(features), tuple(cores), {}, np.nan)
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        self.density_ = SignedDensity(embedding, ProductKDE(rows, kernels, {}), tuple(kernels), self.floor, seed)
        self.mass_, self.negative_share_ = self.density_.mass, self.density_.negative_share
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """The log of the floored and normalised estimate at every row.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.density_.log_density(to_numpy(check_rows(self, X, reset=False)))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean over the rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        float
            Higher is better.
        """
        return float(self.score_samples(X).mean())


def chain_operators(phi: Sequence[np.ndarray], rank: int, weights: np.ndarray | None = None) -> list[np.ndarray | None]:
    """The observable operators of a caterpillar as the cores of a chain, from features (n, m_j) of every column."""
    shares = row_shares(len(phi[0]), weights)
    bases, back = [], []
    for before, here in pairwise(phi):
        cross = (here * shares[:, None]).T @ before  # C_{j, j-1}
        basis = thin_svd(cross)[0][:, :rank]
        bases.append(here @ basis)  # U_jᵀ φ_j
        back.append(before @ np.linalg.pinv(basis.T @ cross))  # φ_{j-1}ᵀ (U_jᵀ C_{j,j-1})†
    cores: list[np.ndarray | None] = [(phi[0] * shares[:, None]).T @ bases[0]]
    for here, ahead, behind in zip(phi[1:-1], bases[1:], back[:-1], strict=True):
        core = khatri_rao(behind * shares[:, None], here).T @ ahead
        cores += [None, core.reshape(behind.shape[1], here.shape[1], -1)]
    last = (back[-1] * shares[:, None]).T @ phi[-1]
    return [*cores, None, last[:, :, None]]
