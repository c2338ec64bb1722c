"""Where a series changes its distribution: segments of least kernel cost, by dynamic programming."""

import itertools
import math
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import to_numpy
from latentviews._parameters import (
    Ability,
    AutoOr,
    Constraint,
    Count,
    NoneOr,
    Nonnegative,
    Seed,
    Share,
    check_parameters,
)
from latentviews._sentences import counted
from latentviews._validation import all_or_nothing, check_rows
from latentviews.comparison.features import fitted_map, middle_gaussian, some_rows
from latentviews.core.kernels.base import Kernel, UnitHeight
from latentviews.core.kernels.real import Gaussian

WIDTH = 0.5  # the bandwidth where no kernel is named, in median distances
SWEEPS = 3  # times that every change is moved to its best place between its neighbours


class ChangePoints(BaseEstimator):
    r"""Segments of a series, each of one distribution (Arlot, Celisse & Harchaoui 2019).

    The cost of a segment is the spread of its rows in the kernel's space,

    .. math:: c(s, t) = \sum_{i=s}^{t-1} \|\varphi(x_i) - \bar\varphi_{s:t}\|^2
              = \sum_i k(x_i, x_i) - \frac{1}{t - s} \sum_{i,j} k(x_i, x_j),

    and the segments are those of least total cost, for a number of changes or with a penalty for each of them. Features
    from landmarks make a cost a difference of running sums. Changes are sought at ``n_candidates`` evenly spaced rows
    by dynamic programming and then moved to their best rows: exact where there are no more rows than that.

    Parameters
    ----------
    n_changes : int or "auto", default="auto"
        "auto" lets ``penalty`` decide.
    kernel : Kernel or None
        None is the Gaussian of half the median distance in standard deviations of the columns.
    penalty : float or "auto", default="auto"
        What a change must save. "auto" is what the best change of a series without any saves with probability
        ``false_alarm``, from the rows in random order.
    false_alarm : float, default=0.05
        The probability of finding a change in a series without any.
    block_size : int, default=1
        Rows that stay together when the order is drawn: for series whose neighbours depend on each other, a few times
        as many rows as that dependence lasts. Eight blocks are the fewest that tell a change at 5 %.
    min_size : int, default=2
        The fewest rows of a segment.
    n_landmarks : int, default=100
    n_candidates : int, default=2000
    n_permutations : int, default=200
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    changes_ : array of int
        The first row of every segment but the first.
    penalty_ : float or None
    cost_ : float
        The total cost of the segments.
    n_samples_ : int

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> series = np.concatenate([rng.normal(size=100), rng.normal(size=80) * 3, rng.normal(size=120) + 2])
    >>> changes = ChangePoints(random_state=0).fit(series[:, None]).changes_
    >>> bool(np.all(np.abs(changes - [100, 180]) <= 5))
    True
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_changes": AutoOr(Count(0)),
        "kernel": NoneOr(Ability("gram")),
        "penalty": AutoOr(Nonnegative()),
        "false_alarm": Share(),
        "block_size": Count(),
        "min_size": Count(),
        "n_landmarks": Count(),
        "n_candidates": Count(10),
        "n_permutations": Count(),
        "random_state": Seed(),
    }

    def __init__(
        self,
        n_changes: int | str = "auto",
        *,
        kernel: Kernel | None = None,
        penalty: float | str = "auto",
        false_alarm: float = 0.05,
        block_size: int = 1,
        min_size: int = 2,
        n_landmarks: int = 100,
        n_candidates: int = 2000,
        n_permutations: int = 200,
        random_state: Any = None,
    ):
        self.n_changes = n_changes
        self.kernel = kernel
        self.penalty = penalty
        self.false_alarm = false_alarm
        self.block_size = block_size
        self.min_size = min_size
        self.n_landmarks = n_landmarks
        self.n_candidates = n_candidates
        self.n_permutations = n_permutations
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the changes.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            The rows in the order of time.
        y : ignored

        Returns
        -------
        ChangePoints
        """
        check_parameters(self)
        x = to_numpy(check_rows(self, X, reset=True))
        rng = np.random.default_rng(self.random_state)
        most = len(x) // self.min_size - 1
        if self.n_changes != "auto" and int(self.n_changes) > max(most, 0):
            raise ValueError(
                f"{len(x)} rows in segments of at least {self.min_size} have room for {max(most, 0)} changes; "
                f"n_changes asks for {self.n_changes}."
            )
        sums = RunningSums(self._features(x, rng), max(1, -(-len(x) // self.n_candidates)), self.min_size)
        self.penalty_ = None
        if self.n_changes == "auto":
            self.penalty_ = self._penalty(sums, rng) if self.penalty == "auto" else float(self.penalty)
            changes = _best_penalised(sums.costs(), self.penalty_)
        else:
            if int(self.n_changes) > sums.room:
                raise ValueError(
                    f"The {len(sums.places) - 2} places that n_candidates={self.n_candidates} leaves have room for "
                    f"{sums.room} changes with segments of at least {self.min_size} rows; n_changes asks for "
                    f"{self.n_changes}. Take more candidates."
                )
            changes = _best_of_number(sums.costs(), int(self.n_changes))
        self.changes_ = sums.settled(sums.places[changes], self.penalty_)
        self.cost_ = sums.total(self.changes_)
        self.n_samples_ = len(x)
        return self

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Find the changes, and give every row the number of its segment.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
        y : ignored

        Returns
        -------
        array of int of shape (n_rows,)
        """
        return self.fit(X).segments(X)

    def segments(self, X: Any) -> np.ndarray:
        """The number of the segment that every row of the series is in.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            The series that was fitted, or its beginning.

        Returns
        -------
        array of int of shape (n_rows,)
        """
        check_is_fitted(self)
        n_rows = check_rows(self, X, reset=False).shape[0]
        if n_rows > self.n_samples_:
            raise ValueError(f"X must be the series that was fitted, of {self.n_samples_} rows; got {n_rows}.")
        return np.searchsorted(self.changes_, np.arange(n_rows), side="right")

    def _features(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Centred features of the rows; one zero where nothing varies."""
        if not np.ptp(x, axis=0).any():
            return np.zeros((len(x), 1))
        some = some_rows(x, rng)
        half = Gaussian(WIDTH * np.asarray(middle_gaussian(some).bandwidth))
        kernel = half if self.kernel is None else self.kernel
        phi = fitted_map(UnitHeight(kernel.adapt(some)), some, self.n_landmarks, rng).transform(x)
        return phi - phi.mean(axis=0)

    def _penalty(self, sums: "RunningSums", rng: np.random.Generator) -> float:
        """What the best change saves, with the probability of a false alarm, in rows whose order means nothing."""
        blocks = np.array_split(np.arange(len(sums.phi)), self._n_blocks(len(sums.phi)))
        gains = []
        for _ in range(self.n_permutations):
            order = np.concatenate([blocks[i] for i in rng.permutation(len(blocks))])
            gains.append(RunningSums(sums.phi[order], sums.stride, self.min_size).best_gain())
        return float(np.quantile(gains, 1 - self.false_alarm, method="higher"))

    def _n_blocks(self, n_rows: int) -> int:
        """How many blocks there are to order, enough to tell a change in the middle.

        A random order of b blocks puts the same b/2 together with probability 2 / C(b, b/2), and a change saves as much
        in it as in the series.
        """
        found = max(1, n_rows // self.block_size)
        fewest = next(size for size in itertools.count(2) if 2 / math.comb(size, size // 2) < self.false_alarm)
        if self.block_size > 1 and found < fewest:
            raise ValueError(
                f"block_size={self.block_size} makes {counted(found, 'block')} of {counted(n_rows, 'row')}, too few to "
                "shuffle: random orders would often look like the series itself. With "
                f"false_alarm={self.false_alarm:g} take a block_size of at most {max(n_rows // fewest, 1)}, or pass "
                "penalty or n_changes."
            )
        return found


class RunningSums:
    """Sums of features from the first row to any of some evenly spaced places, from which costs are differences."""

    def __init__(self, phi: np.ndarray, stride: int, min_size: int):
        self.phi, self.stride, self.min_size = phi, stride, min_size
        self.places = np.append(np.arange(0, len(phi), stride), len(phi))
        parts = np.add.reduceat(phi, self.places[:-1], axis=0)
        squares = np.add.reduceat(np.sum(phi**2, axis=1), self.places[:-1])
        self.sums = np.vstack([np.zeros(phi.shape[1]), np.cumsum(parts, axis=0)])
        self.squares = np.append(0.0, np.cumsum(squares))

    def costs(self) -> np.ndarray:
        """c(s, t) for all pairs of places s < t, infinite where a segment is too short."""
        norms = np.sum(self.sums**2, axis=1)
        length = self.places[None, :] - self.places[:, None]
        spread = norms[None, :] + norms[:, None] - 2 * self.sums @ self.sums.T
        cost = self.squares[None, :] - self.squares[:, None] - spread / np.maximum(length, 1)
        return np.where(length >= self.min_size, np.maximum(cost, 0.0), np.inf)

    @property
    def room(self) -> int:
        """The most changes that segments leave room for."""
        count, place, last = -1, 0, self.places[-1] - self.min_size
        while place <= last:
            place = self.places[np.searchsorted(self.places, place + self.min_size)]
            count += 1
        return max(count, 0)

    def best_gain(self) -> float:
        """What the best single change saves, |S_t − (t/n) S_n|² n / (t (n − t)) at its largest."""
        n = self.places[-1]
        inside = (self.places >= self.min_size) & (n - self.places >= self.min_size)
        if not inside.any():
            return 0.0
        t, sums = self.places[inside], self.sums[inside]
        return float(np.max(np.sum((sums - np.outer(t / n, self.sums[-1])) ** 2, axis=1) * n / (t * (n - t))))

    def total(self, changes: np.ndarray) -> float:
        """The cost of the segments between these changes."""
        ends = [0, *changes.tolist(), len(self.phi)]
        return float(sum(np.sum(part**2) - np.sum(part.sum(axis=0) ** 2) / len(part) for part in self._between(ends)))

    def _between(self, ends: list[int]) -> list[np.ndarray]:
        return [self.phi[start:end] for start, end in itertools.pairwise(ends)]

    def settled(self, changes: np.ndarray, penalty: float | None) -> np.ndarray:
        """The changes at their best rows, where a change between two places may have been taken for two changes.

        The one that saves least goes if that is less than the penalty; without one, it moves to where it saves more.
        """
        found = self._refined(changes)
        for _ in range(len(changes) if self.stride > 1 else 0):
            least, saved = self._least(found)
            others = self._refined(np.delete(found, least))
            if penalty is not None:
                if saved >= penalty:
                    break
                found = others
            else:
                place, gain = self._best_split(others)
                if gain <= saved:
                    break
                found = self._refined(np.sort(np.append(others, place)))
        return found

    def _least(self, changes: np.ndarray) -> tuple[int, float]:
        """The change that saves least, and what it saves."""
        ends = [0, *changes.tolist(), len(self.phi)]
        saved = [self._gain(ends[i], ends[i + 1], ends[i + 2]) for i in range(len(changes))]
        return int(np.argmin(saved)), float(min(saved, default=0.0))

    def _gain(self, start: int, middle: int, end: int) -> float:
        """What the change at ``middle`` saves; nothing where it is at an end."""
        if not start < middle < end:
            return 0.0
        first, second = self.phi[start:middle].mean(axis=0), self.phi[middle:end].mean(axis=0)
        return float(np.sum((first - second) ** 2) * (middle - start) * (end - middle) / (end - start))

    def _best_split(self, changes: np.ndarray) -> tuple[int, float]:
        """The row at which one more change would save most, and what it would."""
        ends = [0, *changes.tolist(), len(self.phi)]
        best = (0, 0.0)
        for start, end in itertools.pairwise(ends):
            if end - start >= 2 * self.min_size:
                place = self._best_in(start, start + self.min_size, end - self.min_size, end)
                best = max(best, (place, self._gain(start, place, end)), key=lambda pair: pair[1])
        return best

    def _refined(self, changes: np.ndarray) -> np.ndarray:
        """Every change at the best row near its place, given its neighbours."""
        found = changes.copy()
        if self.stride == 1 or not len(changes):
            return found
        for _ in range(SWEEPS):
            before = found.copy()
            for place in range(len(found)):
                start = int(found[place - 1]) if place else 0
                end = int(found[place + 1]) if place + 1 < len(found) else len(self.phi)
                low = max(start + self.min_size, int(found[place]) - self.stride)
                high = min(end - self.min_size, int(found[place]) + self.stride)
                if low <= high:
                    found[place] = self._best_in(start, low, high, end)
            if np.array_equal(before, found):
                break
        return found

    def _best_in(self, start: int, low: int, high: int, end: int) -> int:
        """The row from ``low`` to ``high`` at which a change saves most, between ``start`` and ``end``."""
        first = self.phi[start:low].sum(axis=0)
        ahead = np.vstack([first, first + np.cumsum(self.phi[low:high], axis=0)])
        whole, size = ahead[-1] + self.phi[high:end].sum(axis=0), end - start
        t = np.arange(low, high + 1) - start
        gain = np.sum((ahead - np.outer(t / size, whole)) ** 2, axis=1) * size / (t * (size - t))
        return low + int(np.argmax(gain))


def _best_penalised(costs: np.ndarray, penalty: float) -> np.ndarray:
    """The places of the changes of least cost plus ``penalty`` for each: V(t) = min_s V(s) + c(s, t) + penalty."""
    n_places = len(costs)
    value, last = np.full(n_places, np.inf), np.zeros(n_places, dtype=int)
    value[0] = -penalty  # the first segment is no change
    for t in range(1, n_places):
        through = value[:t] + costs[:t, t]
        last[t] = int(np.argmin(through))
        value[t] = through[last[t]] + penalty
    return _traced(last, n_places - 1)


def _traced(last: np.ndarray, end: int) -> np.ndarray:
    """The places that lead to the end."""
    found = []
    while last[end] > 0:
        end = int(last[end])
        found.append(end)
    return np.array(found[::-1], dtype=int)


def _best_of_number(costs: np.ndarray, n_changes: int) -> np.ndarray:
    """The places of so many changes of least cost: V_k(t) = min_s V_{k-1}(s) + c(s, t)."""
    value, lasts = costs[0].copy(), []
    for _ in range(n_changes):
        through = value[:, None] + costs
        last = np.argmin(through, axis=0)
        lasts.append(last)
        value = through[last, np.arange(len(costs))]
    found, end = [], len(costs) - 1
    for last in reversed(lasts):
        end = int(last[end])
        found.append(end)
    return np.array(found[::-1], dtype=int)
