"""A sieve: densities as mixtures of narrow kernels on fixed centres, and exact EM for them.

A view's density in a class is a mixture of narrow kernels on fixed centres, p(x|h) = Σ_b a_bh k_s(c_b, x). The
a_bh and the class weights are its parameters, EM on them is exact and raises the likelihood at every step, and rows
enter through cells (bins, values or landmarks), so that nothing costs O(n²). Rows may be of any array library that can
count: what has an entry per row stays where they are, and parameters are NumPy's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from latentviews._arrays import in_library_of, namespace, to_numpy
from latentviews._numbers import TINY, as_shares, at_least, column_sums, row_sums, scaled_columns, where_present

DENSE = 2**16  # values of atoms at rows up to which their table is dense
PATIENCE = 60  # rounds of EM, of two or three steps, in which weights move on while the gain is small
FLOOR = 1e-100  # least density of a row: three views of it, and one over it, are still numbers


@dataclass(frozen=True, eq=False)
class SieveRows:
    """One view of some rows: their shares in cells, and the sieve's narrow densities on those cells."""

    rows: Any  # (n, C), dense or sparse, of any array library
    atoms: Any  # (C, B), dense or sparse, None for the identity
    present: Any = None  # (n,), False where the view is missing
    block: int = 0  # views of a block share their densities
    smoother: Any = None  # (C, C), rows summing to one: log-densities are smoothed by it, as in npMSL
    log_units: Any = 0.0  # (n,), the logs of what densities of rows are held over

    @cached_property
    def _transposed(self) -> Any:
        return self.rows.T

    @cached_property
    def _transposed_atoms(self) -> Any:
        return self.atoms.T  # a sparse one takes longer to transpose than to multiply

    @cached_property
    def _atoms_at_rows(self) -> np.ndarray | None:
        """The atoms at few rows, (n, B), where one dense product is quicker than two sparse ones; None elsewhere."""
        if self.atoms is None or self.smoother is not None or not sparse.issparse(self.rows):
            return None
        if self.rows.shape[0] * self.size > DENSE:
            return None
        return to_numpy(self.rows @ self.atoms)

    @property
    def size(self) -> int:
        """The number of atoms B."""
        return self.rows.shape[1] if self.atoms is None else self.atoms.shape[1]

    def density(self, coefficients: np.ndarray) -> Any:
        """p(x_i | h), (n, k); one where the view is missing."""
        if self._atoms_at_rows is not None:
            values = np.maximum(self._atoms_at_rows @ coefficients, FLOOR)
            return values if self.present is None else np.where(self.present[:, None], values, 1.0)
        table = coefficients if self.atoms is None else self.atoms @ coefficients
        if self.smoother is None and sparse.issparse(self.rows):  # a row's shares sum to one, and cells are fewer
            values = self.rows @ np.maximum(table, FLOOR)
        elif self.smoother is None:
            values = at_least(self.rows @ in_library_of(table, self.rows), FLOOR)
        else:  # rows share their logs between cells too, or steps would be no ascent
            logs = self.rows @ in_library_of(self.smoother @ np.log(np.maximum(table, TINY)), self.rows)
            values = at_least(namespace(logs).exp(logs), FLOOR)
        return values if self.present is None else namespace(values).where(self.present[:, None], values, 1.0)

    def cell_sums(self, values: Any) -> Any:
        """Σ_i atom_b(x_i) values_ih, (B, k)."""
        if self._atoms_at_rows is not None:
            return self._atoms_at_rows.T @ (values if self.present is None else where_present(values, self.present))
        sums = self.shares(values)
        return sums if self.atoms is None else self._transposed_atoms @ to_numpy(sums)

    def shares(self, posteriors: Any) -> Any:
        """Σ_i posteriors_ih over the rows in a cell, (C, k)."""
        if self.present is not None:
            posteriors = where_present(posteriors, self.present)
        return self._transposed @ posteriors

    def mass(self, posteriors: Any, every: Any) -> Any:
        """Σ_i posteriors_ih over the rows that have the view, (k,); ``every`` is the same over all rows."""
        return every if self.present is None else column_sums(where_present(posteriors, self.present))


class SieveParameters(NamedTuple):
    """Parameters of a sieve: the weights of the classes, and coefficients for every block of views, (b, k)."""

    weights: np.ndarray  # (k,), or a column for each of several laws
    coefficients: tuple[np.ndarray, ...]  # (B, k), one per block

    def combine(self, other: "SieveParameters", curve: "SieveParameters", step: float) -> "SieveParameters":
        """Self - 2·step·other + step²·curve, brought back to probabilities."""
        return _map(lambda a, b, c: as_probabilities(a - 2 * step * b + step**2 * c), self, other, curve)

    def take(self, order: np.ndarray) -> "SieveParameters":
        """The classes in another order."""
        return SieveParameters(self.weights[order], tuple(part[:, order] for part in self.coefficients))

    def minus(self, other: "SieveParameters") -> "SieveParameters":
        """The difference."""
        return _map(np.subtract, self, other)

    def norm(self) -> float:
        """The Euclidean norm of all parameters."""
        return float(np.sqrt(sum(np.sum(part**2) for part in (self.weights, *self.coefficients))))


def _map(f: Callable[..., np.ndarray], *several: SieveParameters) -> SieveParameters:
    blocks = zip(*(each.coefficients for each in several), strict=True)
    return SieveParameters(f(*(each.weights for each in several)), tuple(f(*block) for block in blocks))


def as_probabilities(values: np.ndarray) -> np.ndarray:
    """Columns clipped to be positive and scaled to sum one."""
    values = np.maximum(values, 1e-12 / len(values))
    return values / values.sum(axis=0)


def posterior(
    cells: Sequence[SieveRows], parameters: SieveParameters, allowed: Any = None
) -> tuple[Any, list[Any], Any]:
    """The E-step: P(h | row), the densities of every view, and the log-likelihood of every row.

    ``allowed`` (n, k) is zero for classes that a row is known not to be in.
    """
    densities = [view.density(parameters.coefficients[view.block]) for view in cells]
    xp, joint = namespace(densities[0]), scaled_columns(densities[0], in_library_of(parameters.weights, densities[0]))
    if allowed is not None:
        joint *= in_library_of(allowed, joint)
    log_scale = sum(view.log_units for view in cells)
    for i, density in enumerate(densities[1:], 1):
        joint *= density
        if i % 2 == 0 and i + 1 < len(densities):  # many views would underflow
            largest = at_least(xp.max(joint, axis=1), TINY)
            joint /= largest[:, None]
            log_scale = log_scale + xp.log(largest)
    total = at_least(row_sums(joint), TINY)
    joint /= total[:, None]
    return joint, densities, xp.log(total) + log_scale


def em_sums(
    cells: Sequence[SieveRows],
    parameters: SieveParameters,
    weights: np.ndarray | None = None,
    allowed: np.ndarray | None = None,
) -> tuple[np.ndarray, ...]:
    """What some rows add to a step of EM: log-likelihood, class shares, then mass and gathered atoms per block."""
    posteriors, densities, log_likelihood = posterior(cells, parameters, allowed)
    if weights is not None:
        weights = in_library_of(weights, posteriors)
        posteriors *= weights[:, None]
        log_likelihood = log_likelihood * weights
    gathered = gathered_sums(cells, parameters, posteriors, densities)
    return (namespace(log_likelihood).sum(log_likelihood), column_sums(posteriors), *gathered)


def gathered_sums(
    cells: Sequence[SieveRows], parameters: SieveParameters, posteriors: Any, densities: Sequence[Any]
) -> list[Any]:
    """The classes' mass in every block, then their gathered atoms."""
    masses: list[Any] = [0.0 for _ in parameters.coefficients]
    gathered: list[Any] = [0.0 for _ in parameters.coefficients]
    every = column_sums(posteriors)
    for view, density in zip(cells, densities, strict=True):
        masses[view.block] = masses[view.block] + view.mass(posteriors, every)
        gathered[view.block] = gathered[view.block] + view.cell_sums(posteriors / density)
    return masses + gathered


def em_update(parameters: SieveParameters, sums: Sequence[np.ndarray]) -> tuple[SieveParameters, float]:
    """The parameters after a step of EM with these sums, and the mean log-likelihood before it."""
    log_likelihood, share, *rest = sums
    total = share.sum()
    return SieveParameters(share / total, updated_coefficients(parameters, rest)), float(log_likelihood / total)


def updated_coefficients(parameters: SieveParameters, gathered: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The coefficients after a step, from what `gathered_sums` gives."""
    n_blocks = len(parameters.coefficients)
    return tuple(
        a * atoms / np.maximum(mass, TINY)
        for a, mass, atoms in zip(parameters.coefficients, gathered[:n_blocks], gathered[n_blocks:], strict=True)
    )


def smoothing_step(
    cells: Sequence[SieveRows],
    parameters: SieveParameters,
    weights: np.ndarray | None = None,
    allowed: np.ndarray | None = None,
) -> tuple[SieveParameters, float]:
    """One step of nonparametric EM, whose M-step is a weighted KDE, and the mean log-likelihood before it.

    Benaglia, Chauveau & Hunter (2009). The atoms sit on the cells, so coefficients are the classes' shares of cells.
    It is no ascent of the likelihood; with ``smoother`` set in the cells it is one of the smoothed likelihood (npMSL:
    Levine, Hunter & Chauveau 2011).
    """
    posteriors, _, log_likelihood = posterior(cells, parameters, allowed)
    if weights is not None:
        posteriors *= weights[:, None]
    sums = [np.zeros_like(coefficients) for coefficients in parameters.coefficients]
    for view in cells:
        sums[view.block] += view.shares(posteriors)
    coefficients = tuple(as_shares(part, axis=0) for part in sums)
    share = column_sums(posteriors)
    return SieveParameters(share / share.sum(), coefficients), float(np.average(log_likelihood, weights=weights))


def em_step(
    cells: Sequence[SieveRows],
    parameters: SieveParameters,
    weights: np.ndarray | None = None,
    allowed: np.ndarray | None = None,
) -> tuple[SieveParameters, float]:
    """One step of exact EM, and the mean log-likelihood before it."""
    return em_update(parameters, em_sums(cells, parameters, weights, allowed))


def initial_parameters(
    cells: Sequence[SieveRows], posteriors: np.ndarray, weights: np.ndarray | None = None
) -> SieveParameters:
    """Parameters from a guess of the posteriors: every atom's share of each class."""
    if weights is not None:
        posteriors = posteriors * weights[:, None]
    n_blocks = 1 + max(view.block for view in cells)
    sums = [sum(view.cell_sums(posteriors) for view in cells if view.block == b) for b in range(n_blocks)]
    return SieveParameters(
        as_probabilities(posteriors.sum(axis=0)), tuple(as_probabilities(np.asarray(total)) for total in sums)
    )


def moves_little(before: SieveParameters, after: SieveParameters, n_rows: int, share: float) -> bool:
    """Whether a step moves every class weight by less than a ``share`` of the standard error of one of so many rows."""
    errors = np.sqrt(np.maximum(after.weights * (1 - after.weights), 1 / n_rows) / n_rows)
    return bool(np.all(np.abs(after.weights - before.weights) < share * errors))


def at_rest(n_rows: int, share: float) -> Callable[[SieveParameters, SieveParameters, bool], bool]:
    """When to end: where the gain is small and weights rest, which of overlapping classes move for longer.

    Those of more classes than there are may never rest, so they are waited for no longer than ``PATIENCE`` times. Laws
    in several columns, of chains, are not asked: that of the first state of few sequences never rests.
    """
    waits = iter(range(PATIENCE))

    def ends(before: SieveParameters, after: SieveParameters, small: bool) -> bool:
        rests = after.weights.ndim > 1 or moves_little(before, after, n_rows, share)
        return small and (rests or next(waits, None) is None)

    return ends


class EMFit(NamedTuple):
    """Where EM ended."""

    parameters: SieveParameters
    objective: float  # mean log-likelihood
    n_iter: int  # EM steps taken
    converged: bool


def accelerated_em(
    step: Callable[[SieveParameters], tuple[SieveParameters, float]],
    start: SieveParameters,
    max_iter: int,
    tol: float,
    report: Callable[[int, float], bool] = lambda n_iter, objective: False,
    ends: Callable[[SieveParameters, SieveParameters, bool], bool] = lambda before, after, small: small,
) -> EMFit:
    """EM sped up by squared extrapolation (Varadhan & Roland 2008); the likelihood never falls.

    A gain is small where a step of plain EM, scaled to a hundred of them, gains less than ``tol`` per row. It stops
    where ``ends`` says so of a step and of whether its gain is small (by default, where it is), or where ``report``
    says so.
    """
    current, (first, objective) = start, step(start)
    n_iter, longest = 0, 4.0
    while n_iter < max_iter:
        if n_iter:
            first, objective = step(current)
        second, after = step(first)
        n_iter += 2
        stop = report(n_iter, objective)
        if stop or ends(first, second, 100 * abs(after - objective) < tol):
            return EMFit(second, after, n_iter, not stop)
        change = first.minus(current)
        bend = second.minus(first).minus(change)
        length = min(max(change.norm() / max(bend.norm(), TINY), 1.0), longest)
        current, reached = _extrapolate(step, current, change, bend, second, after, length)
        n_iter += 1
        if reached and length == longest:
            longest *= 4
        elif not reached:
            longest = max(longest / 2, 1.0)
    return EMFit(current, objective, n_iter, False)


def _extrapolate(
    step: Callable[[SieveParameters], tuple[SieveParameters, float]],
    current: SieveParameters,
    change: SieveParameters,
    bend: SieveParameters,
    second: SieveParameters,
    objective: float,
    length: float,
) -> tuple[SieveParameters, bool]:
    """The leap and an EM step after it, or the two plain steps where the leap lost likelihood."""
    leap = current.combine(change, bend, -length)
    landed, reached = step(leap)
    return (landed, True) if reached >= objective else (second, False)
