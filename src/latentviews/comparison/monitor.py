"""Whether rows that arrive still come from the distribution of a reference."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import to_numpy
from latentviews._parameters import Ability, Constraint, Count, NoneOr, Seed, Share, check_parameters
from latentviews._validation import all_or_nothing, check_rows
from latentviews.comparison.features import fitted_map, middle_gaussian, some_rows
from latentviews.core.kernels.base import Kernel, UnitHeight

DRAWS = 10_000  # windows of the reference's own rows that the threshold is read off


class DriftMonitor(BaseEstimator):
    r"""An alarm when a stream leaves the distribution of a reference, at a stated rate of false alarms.

    Every ``window`` rows that have arrived are compared with the reference (as in Kifer, Ben-David & Gehrke 2004), by
    the squared distance of their embeddings (MMD, Gretton et al. 2012),

    .. math:: \| \bar\varphi_{\text{window}} - \bar\varphi_{\text{reference}} \|^2,

    and the alarm is raised above what windows of the reference's own rows, drawn without replacement and compared with
    the rest, exceed with probability ``false_alarm``. A stream that does not change so gives one false alarm in
    ``window / false_alarm`` rows on average.

    Parameters
    ----------
    window : int, default=100
        Rows that are judged together: many see small changes, few see changes soon.
    false_alarm : float, default=0.01
        The probability that a window of an unchanged stream raises the alarm, at least 1e-4: the threshold is read off
        10,000 windows, and is off by more the fewer of them exceed it.
    kernel : Kernel or None
        None is the Gaussian of the median distance in standard deviations of the columns.
    n_landmarks : int, default=100
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    threshold_ : float
    statistics_ : array of shape (n_windows,)
    alarms_ : array of int
        The last row of every window that raised the alarm, counted from the first row after the reference.
    drifted_ : bool
        Whether there was an alarm.
    n_rows_seen_ : int
        Rows seen after the reference.
    features_ : the map from rows to features φ
    mean_ : array of shape (n_features,)
        The mean of φ over the reference.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> monitor = DriftMonitor(window=50, random_state=0).fit(rng.normal(size=(1000, 2)))
    >>> monitor.partial_fit(rng.normal(size=(100, 2))).drifted_
    False
    >>> monitor.partial_fit(rng.normal(0.7, size=(100, 2))).drifted_
    True
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "window": Count(2),
        "false_alarm": Share(),
        "kernel": NoneOr(Ability("gram")),
        "n_landmarks": Count(),
        "random_state": Seed(),
    }

    def __init__(
        self,
        window: int = 100,
        *,
        false_alarm: float = 0.01,
        kernel: Kernel | None = None,
        n_landmarks: int = 100,
        random_state: Any = None,
    ):
        self.window = window
        self.false_alarm = false_alarm
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Take a reference, and forget what has been seen.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            At least twice as many rows as a window has.
        y : ignored

        Returns
        -------
        DriftMonitor
        """
        check_parameters(self)
        if self.false_alarm * DRAWS < 1:
            raise ValueError(
                f"false_alarm must be at least {1 / DRAWS:g}, one in the {DRAWS} windows that the threshold is read "
                f"off; got {self.false_alarm:g}."
            )
        x = to_numpy(check_rows(self, X, reset=True))
        if len(x) < 2 * self.window:
            raise ValueError(
                f"A reference needs at least two windows, {2 * self.window} rows; got n_samples={len(x)}. "
                "Pass more rows or a smaller window."
            )
        rng = np.random.default_rng(self.random_state)
        some = some_rows(x, rng)
        kernel = middle_gaussian(some) if self.kernel is None else self.kernel
        self.features_ = fitted_map(UnitHeight(kernel.adapt(some)), some, self.n_landmarks, rng)
        phi = self.features_.transform(x)
        self.mean_ = phi.mean(axis=0)
        self.threshold_ = float(np.quantile(self._own_windows(phi, rng), 1 - self.false_alarm, method="higher"))
        self.statistics_, self.alarms_ = np.empty(0), np.empty(0, dtype=int)
        self.n_rows_seen_, self._waiting = 0, np.empty((0, phi.shape[1]))
        return self

    def _own_windows(self, phi: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The statistics of windows of the reference against its other rows, as if the reference were whole."""
        n, w = phi.shape[0], self.window
        drawn = np.array([phi[rng.choice(n, w, replace=False, shuffle=False)].mean(axis=0) for _ in range(DRAWS)])
        rest = (n * self.mean_ - w * drawn) / (n - w)
        return np.sum((drawn - rest) ** 2, axis=1) * (1 / w + 1 / n) / (1 / w + 1 / (n - w))

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """See more rows; those that fill no window yet wait for the next. Before ``fit``, they are the reference.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
        y : ignored

        Returns
        -------
        DriftMonitor
        """
        if not hasattr(self, "threshold_"):
            return self.fit(X)
        phi = np.vstack([self._waiting, self._features(X)])
        n_windows = len(phi) // self.window
        full = phi[: n_windows * self.window].reshape(n_windows, self.window, phi.shape[1])
        found = np.sum((full.mean(axis=1) - self.mean_) ** 2, axis=1)
        ends = (len(self.statistics_) + 1 + np.arange(n_windows)) * self.window - 1
        self.alarms_ = np.append(self.alarms_, ends[found > self.threshold_])
        self.statistics_ = np.append(self.statistics_, found)
        self._waiting = phi[n_windows * self.window :]
        self.n_rows_seen_ = len(self.statistics_) * self.window + len(self._waiting)
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """How typical rows are of the reference: its embedding at each of them, at most one. They are not remembered.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)

        Returns
        -------
        array of shape (n_rows,)
        """
        check_is_fitted(self, "threshold_")
        return self._features(X) @ self.mean_

    def _features(self, X: Any) -> np.ndarray:
        """The feature vectors of rows, in doubles as those of the reference are."""
        return self.features_.transform(to_numpy(check_rows(self, X, reset=False)))

    @property
    def drifted_(self) -> bool:
        """Whether any window raised the alarm."""
        check_is_fitted(self, "threshold_")
        return len(self.alarms_) > 0
