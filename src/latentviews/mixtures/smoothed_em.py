"""Nonparametric EM as a polish: npEM and npMSL on the cells of a sieve."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.parallel import Parallel, delayed

from latentviews._numbers import TINY, far_unit
from latentviews._parameters import (
    Bandwidth,
    Constraint,
    Count,
    Flag,
    Nonnegative,
    check_parameters,
)
from latentviews._progress import Report
from latentviews.core.features.bins import grid_and_kernel
from latentviews.core.kernels.bandwidths import RULES
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.defaults import kernel_on
from latentviews.mixtures.cells import (
    Basis,
    GridBasis,
    values_basis,
    without_negligible,
)
from latentviews.mixtures.fit_rows import MixtureRows
from latentviews.mixtures.polish import Polished
from latentviews.mixtures.races import agreements
from latentviews.mixtures.sieve import (
    EMFit,
    SieveParameters,
    smoothing_step,
)


class SmoothedEM(BaseEstimator):
    r"""Nonparametric EM: weighted kernel density estimates in place of an M-step.

    Its smoothing accumulates from step to step, so it is more biased than `Sieve`; it is here for comparison, and for
    those who want its fixed bandwidth. Views are single real columns or codes.

    .. math:: p_t(x \mid h) \propto \sum_i r_{ih}\, k(x, x_{it}), \qquad
              r_{ih} \propto \pi_h \prod_t \exp \int k(x_{it}, u) \log p_t(u \mid h)\, du

    Parameters
    ----------
    bandwidth : float or rule, default="isj"
    nonlinear : bool, default=True
        Smooth the log-densities in the E-step, which makes the steps an ascent (npMSL, Levine, Hunter & Chauveau 2011);
        False is npEM (Benaglia, Chauveau & Hunter 2009).
    max_iter : int, default=1000
    tol : float, default=1e-3
        Stop when a hundred steps would gain less log-likelihood per row.

    Examples
    --------
    >>> from latentviews import MultiViewMixture, SmoothedEM
    >>> from latentviews.datasets import make_multiview
    >>> X = make_multiview(300, 2, random_state=0).X
    >>> model = MultiViewMixture(2, polish=SmoothedEM(), random_state=0).fit(X)
    >>> model.weights_.round(2)
    array([0.73, 0.27])
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "bandwidth": Bandwidth(tuple(RULES)),
        "nonlinear": Flag(),
        "max_iter": Count(),
        "tol": Nonnegative(),
    }

    def __init__(self, bandwidth: Any = "isj", nonlinear: bool = True, max_iter: int = 1000, tol: float = 1e-3):
        self.bandwidth = bandwidth
        self.nonlinear = nonlinear
        self.max_iter = max_iter
        self.tol = tol

    def polish(
        self,
        rows: MixtureRows,
        starts: Sequence[np.ndarray],
        rng: np.random.Generator,
        n_jobs: int | None = None,
        report: Report = lambda task, n_iter, objective: False,
    ) -> Polished:
        """Run from every guess and keep the one with the highest objective.

        Parameters
        ----------
        rows : rows of a fit
        starts : list of arrays of shape (n, k)
            Posteriors to start from.
        rng : numpy Generator
        n_jobs : int or None
            Threads.
        report : callable
            Told of every step.

        Returns
        -------
        Polished
        """
        check_parameters(self)
        shared = {block: self._basis(x, kernel) for block, (x, kernel) in rows.by_block().items()}
        views = rows.views(shared)
        cells = rows.cells(views)

        def run(start: np.ndarray) -> EMFit:
            step = partial(smoothing_step, cells, weights=rows.weights, allowed=rows.allowed)
            return self._run(step, shares(start), report)

        def shares(start: np.ndarray) -> SieveParameters:
            start = start if rows.weights is None else start * rows.weights[:, None]
            sums = [np.sum([view.shares(start) for view in cells if view.block == b], axis=0) for b in shared]
            return SieveParameters(start.sum(axis=0) / start.sum(), tuple(map(_as_shares, sums)))

        fits = Parallel(n_jobs, prefer="threads")(delayed(run)(start) for start in starts)
        objectives = np.array([fit.objective for fit in fits])
        best = int(objectives.argmax())
        labels = [rows.posteriors(cells, fit.parameters).argmax(axis=1) for fit in fits]
        agreed = agreements(objectives, labels)
        return Polished(views, fits[best], 1.0, best, objectives, False, agreed, len(starts[0]))

    def _basis(self, x: np.ndarray, kernel: Kernel) -> Basis:
        """Atoms on every cell, at the bandwidth of the density estimates."""
        space = kernel.space
        if space is not None and space.finite:
            return values_basis(x)
        if space is None or not space.ordered or x.shape[1] != 1:
            raise ValueError(
                f"SmoothedEM takes views of one real column or of codes; got a {space and space.name} view of "
                f"{x.shape[1]} column(s). Sieve takes any view."
            )
        points, narrow = grid_and_kernel(x[:, 0], kernel_on(space, self.bandwidth).adapt(x), 1024)
        grid = points[:, None]
        values, step = narrow.gram(grid, grid), float(grid[1, 0] - grid[0, 0])
        unit = far_unit(float(values.max()))
        atoms = without_negligible(values / unit)
        if not self.nonlinear:
            return GridBasis(grid, narrow, atoms, log_unit=math.log(unit))
        # the M-step is the maximum only if what smooths logs is the transpose of what smooths shares, of mass one
        spread = atoms @ sparse.diags_array(1 / atoms.sum(axis=0))
        return GridBasis(grid, narrow, spread / (unit * step), spread.T.tocsr(), math.log(unit))

    def _run(
        self, step: Callable[[SieveParameters], tuple[SieveParameters, float]], current: SieveParameters, report: Report
    ) -> EMFit:
        before = -np.inf
        for n_iter in range(1, self.max_iter + 1):
            updated, objective = step(current)
            stop = report("polish", n_iter, objective)
            if stop or 100 * abs(objective - before) < self.tol:
                return EMFit(current, objective, n_iter, not stop)
            current, before = updated, objective
        return EMFit(current, before, self.max_iter, False)


def _as_shares(part: np.ndarray) -> np.ndarray:
    """Columns that sum to one; even ones where no row that counts has the view."""
    total = part.sum(axis=0)
    return np.where(total > 0, part / np.maximum(total, TINY), 1 / len(part))
