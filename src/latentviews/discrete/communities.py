"""Communities of a graph: every node belongs to several, by shares of its own."""

from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from latentviews._clusters import cluster_posteriors, kmeans
from latentviews._numbers import as_shares
from latentviews._parameters import (
    Ability,
    AutoOr,
    Constraint,
    Count,
    NoneOr,
    Nonnegative,
    Positive,
    Seed,
    check_parameters,
)
from latentviews._sentences import warn_user
from latentviews._validation import IdentifiabilityWarning, UnsupportedError, all_or_nothing, is_auto
from latentviews.core.tensors import JointDiagonalization, Solver
from latentviews.discrete.blockmodels import BlockModel, connectivity_of, memberships_of, on_simplex, polished
from latentviews.discrete.dirichlet import UNTOLD
from latentviews.discrete.graphs import read_graph, read_links
from latentviews.discrete.stars import StarMemberships, leading_eigenvectors, star_memberships

NEAR = 1e-8  # rotations of the third moment below this angle are far below its noise
LEAST = 0.01  # of the prior's α_h in variational steps
FOLDS = 100  # steps that find the shares of a new node
CLEAR = 2.5  # times the noise of links that the least eigenvalue needs for a concentration to be told


class CommunityModel(BaseEstimator):
    r"""Overlapping communities of an undirected graph: the mixed-membership stochastic blockmodel.

    A node x has shares :math:`\pi_x \sim \mathrm{Dirichlet}(\alpha)` of k communities, and two nodes are linked with
    probability :math:`\pi_x^\top P \pi_y`. Counts of stars, a node and three of its neighbours, corrected for the
    prior, have the communities as an orthogonal decomposition (Anandkumar et al. 2013), so nothing starts at random;
    variational steps on the links go on from there.

    The model has no degrees of its own for nodes: where a few nodes have most of the links, as in many small social
    networks, it may take them for a community.

    Parameters
    ----------
    n_components : int, default=2
        The number of communities k.
    concentration : "auto" or float, default="auto"
        α₀ = Σ α_h: at zero every node is of one community, the stochastic blockmodel; when large all nodes mix alike.
        "auto" solves Σ_h π_h(α₀) = 1 for an α₀ of k at most, which tells it from three communities on; with two it is
        taken to be 1, with a warning. It is mostly too large where the noise of the links is not far below what shows
        the communities, of which another warning speaks.
    max_iter : int, default=50
        Variational steps at most; 0 leaves the memberships of the moments.
    tol : float, default=1e-4
        The steps stop when one moves the shares of nodes by less than this on average.
    solver : object with a method ``decompose``, or None
        `JointDiagonalization` by default.
    random_state : int, RandomState or None, default=None
        For the sets that nodes are parted into.

    Attributes
    ----------
    nodes_ : array of shape (n,)
        The names of the nodes: those of a networkx graph or of a data frame's index, their numbers otherwise.
    memberships_ : array of shape (n, k)
        The shares of every node. A node without links has the mean shares.
    labels_ : array of shape (n,)
        The community in which every node has its largest share.
    connectivity_ : array of shape (k, k)
        P: how probable a link is between two nodes of one community each.
    weights_ : array of shape (k,)
        The mean shares, the largest first.
    concentration_ : float
    spectrum_ : array of shape (k,)
        The eigenvalues of the adjacency that are largest in size.
    start_ : {"stars", "clusters"}
        What the steps started from: clusters of eigenvectors where the moments have fewer communities.
    n_iter_ : int
    converged_ : bool

    References
    ----------
    Anandkumar, Ge, Hsu & Kakade (2013), "A tensor approach to learning mixed membership community models". Airoldi,
    Blei, Fienberg & Xing (2008), "Mixed membership stochastic blockmodels", JMLR 9.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import CommunityModel
    >>> rng = np.random.default_rng(0)
    >>> shares = rng.dirichlet([0.3, 0.3, 0.3], size=600)
    >>> chances = shares @ (0.05 + 0.35 * np.eye(3)) @ shares.T
    >>> G = np.triu(rng.random((600, 600)) < chances, 1)
    >>> model = CommunityModel(3, random_state=0).fit(G | G.T)
    >>> model.memberships_.shape
    (600, 3)
    >>> bool(abs(np.diag(model.connectivity_) - 0.4).max() < 0.05)
    True
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_components": Count(),
        "concentration": AutoOr(Nonnegative()),
        "max_iter": Count(0),
        "tol": Positive(),
        "solver": NoneOr(Ability("decompose")),
        "random_state": Seed(),
    }

    def __init__(
        self,
        n_components: int = 2,
        concentration: float | str = "auto",
        *,
        max_iter: int = 50,
        tol: float = 1e-4,
        solver: Solver | None = None,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.concentration = concentration
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """A graph is no table of features."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.sparse = False, True
        return tags

    @all_or_nothing
    def fit(self, G: Any, y: Any = None) -> Self:
        """Learn the communities of a graph.

        Parameters
        ----------
        G : networkx graph, or sparse or dense adjacency of shape (n, n)
            Undirected, without links of a node to itself. Weights of a networkx graph's edges are not looked at; an
            adjacency holds zeros and ones.
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        links, names = read_graph(G)
        linked = np.flatnonzero(np.diff(links.indptr) > 0)
        self._check_size(links, len(linked))
        core = links[linked][:, linked]
        rng = np.random.default_rng(self.random_state)
        start = self._start(core, rng)
        shares = on_simplex(start.memberships)
        prior = np.maximum(start.concentration * as_shares(start.weights), LEAST)
        model = BlockModel(shares, connectivity_of(core, shares), 0, True)
        if self.max_iter:
            model = polished(core, shares, prior, self.max_iter, self.tol)
        self._keep(model, names, linked, start)
        return self

    def _check_size(self, links: sparse.csr_array, n_linked: int) -> None:
        """Refuse graphs in which nothing can be found."""
        if not links.nnz:
            raise ValueError(f"G has {links.shape[0]} nodes and no links; communities are found by links.")
        if n_linked < 3 * self.n_components:
            raise ValueError(
                f"{self.n_components} communities need {3 * self.n_components} nodes with links, as many leaves as "
                f"communities in each of three sets; got {n_linked}. Ask for fewer."
            )

    def _start(self, links: sparse.csr_array, rng: np.random.Generator) -> StarMemberships:
        """Memberships by stars; by clusters of eigenvectors where stars have fewer communities, with a warning."""
        k, given = self.n_components, None if is_auto(self.concentration) else float(self.concentration)
        eigen = leading_eigenvectors(links, k, rng)
        solver = JointDiagonalization(tol=NEAR) if self.solver is None else self.solver
        self.start_ = "stars"
        try:
            found = star_memberships(links, eigen, given, solver, rng)
            if given is None and k > 2:
                _warn_of_noise(links, eigen[0], found.concentration)
            return found
        except UnsupportedError as error:
            warn_user(
                f"{error} The steps start from clusters of eigenvectors; communities may be one of many local optima.",
                IdentifiabilityWarning,
            )
        self.start_, rows = "clusters", eigen[1] * eigen[0]
        shares = cluster_posteriors(kmeans(rows, k, int(rng.integers(2**31)), n_init=10), rows)
        return StarMemberships(shares, shares.mean(axis=0), UNTOLD if given is None else given, eigen[0])

    def _keep(self, model: BlockModel, names: np.ndarray, linked: np.ndarray, start: StarMemberships) -> None:
        weights = model.memberships.mean(axis=0)
        order = np.argsort(-weights, kind="stable")
        self.nodes_, self.weights_ = names, weights[order]
        self.memberships_ = np.tile(self.weights_, (len(names), 1))
        self.memberships_[linked] = model.memberships[:, order]
        self.labels_ = self.memberships_.argmax(axis=1)
        self.connectivity_ = model.connectivity[np.ix_(order, order)]
        self.concentration_, self.spectrum_ = float(start.concentration), start.spectrum
        self.n_iter_, self.converged_ = model.n_iter, model.converged

    def fit_predict(self, G: Any, y: Any = None) -> np.ndarray:
        """Fit, and the community of every node in which it has its largest share.

        Parameters
        ----------
        G : networkx graph, or sparse or dense adjacency of shape (n, n)
        y : ignored

        Returns
        -------
        array of shape (n,)
        """
        return self.fit(G).labels_

    def transform(self, links: Any) -> np.ndarray:
        """The shares of new nodes by their links to the nodes of the fit; the mean shares where there are none.

        Parameters
        ----------
        links : sparse or dense array of shape (m, n)
            One row per new node, ones where it is linked to a node of the fit.

        Returns
        -------
        array of shape (m, k)
        """
        check_is_fitted(self)
        table = read_links(links, "links")
        if table.shape[1] != len(self.nodes_):
            raise ValueError(f"links needs one column per node of the fit, {len(self.nodes_)}; got {table.shape[1]}.")
        prior = np.maximum(self.concentration_ * self.weights_, LEAST)
        found = memberships_of(table, self.memberships_ @ self.connectivity_, prior, FOLDS)
        return np.where((np.diff(table.indptr) > 0)[:, None], found, self.weights_)


def _warn_of_noise(links: sparse.csr_array, spectrum: np.ndarray, concentration: float) -> None:
    """Say where a concentration that was found means little: the noise of links has a norm of about 2 √degree."""
    clear = float(np.abs(spectrum).min() / (2 * np.sqrt(links.nnz / links.shape[0])))
    if clear < CLEAR:
        warn_user(
            f"The concentration found, {concentration:.2g}, is rough, and mostly too large: the least eigenvalue that "
            f"shows the communities is {clear:.1f} times the noise of the links, and {CLEAR:g} are needed. Pass "
            "`concentration` where more is known.",
            IdentifiabilityWarning,
        )
