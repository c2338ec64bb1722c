"""Forecasts from predictive states: what the past says of the future, with no latent states behind it."""

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator, clone
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY
from latentviews._parameters import Ability, Constraint, Count, NoneOr, Seed, Share, WithData, check_parameters
from latentviews._validation import all_or_nothing, check_count, check_range, check_rows
from latentviews.core.features.fourier import FourierFeatures
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.real import Gaussian
from latentviews.core.tables import check_column
from latentviews.sequences.dynamics import Dynamics, Series, run, unit_of
from latentviews.sequences.sample_forecast import SampleForecast
from latentviews.sequences.stretches import check_lengths, check_origins
from latentviews.sequences.two_stage import TwoStageRegression

ANCHORS = 1000  # held-out residuals that forecasts are spread by
FARTHEST = float(np.finfo(float).max) / 4  # a forecast, so that residuals can be added to it
NEIGHBOURS = 100  # of them, those nearest in state that count
WARM_UP = 500  # fitted rows before a held-out stretch over which the filter runs first
FEWEST = 3.0  # errors that a spread is taken to rest on
COMPONENTS = 30  # directions of the features that are kept


class PredictiveStateModel(BaseEstimator):
    r"""Forecasts of a series from what its past says of its future, with no latent states.

    The predictive state q_t is what rows before t say of those from t on, as a vector; row t moves it to the next, and
    forecasts are read off it,

    .. math:: q_{t+1} = W (q_t \otimes \varphi(x_t)) \quad \text{or} \quad
              q_{t+1} = \frac{B_{x_t} q_t}{b^\top B_{x_t} q_t}, \qquad \hat x_{t+h} = R_h\, q_{t+1} .

    How it moves is learned from feature vectors φ of the rows: by two-stage regression, which is stable (the first;
    Hefny, Downey & Gordon 2015), or by the observable operators of the Hilbert-space HMM (the second, with the mass
    bᵀq of a state; Song, Boots, Siddiqi, Gordon & Smola 2010). Forecasts of the first see the last rows beside the
    state. There is nothing to identify, so any series will do.

    Parameters
    ----------
    dynamics : TwoStageRegression or ObservableOperators, default=TwoStageRegression()
        How the state moves. Its size and regularisation are chosen by validation.
    kernel : Kernel, default=Gaussian("median")
        The kernel of the random features, for standardised columns.
    features : transformer or None
        The feature map of a row, in place of ``kernel``.
    horizon : int, default=10
        The most steps ahead that will be asked for.
    validation : float, default=0.2
        The share of the rows, the last ones, by which choices are made; residuals come from these and, with the choice
        made, from earlier parts of the same size.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    dynamics_ : OperatorDynamics or BilinearDynamics
        What was learned, with ``start`` and ``step``.
    choice_ : tuple
        The size of the state and the penalty that held-out rows preferred.
    validation_errors_ : dict
        The mean squared error of held-out forecasts for every choice, one per step ahead, in standard deviations of
        the columns.
    center_, scale_ : arrays of shape (n_features,)
        Mean and standard deviation of the columns.
    features_ : transformer
        The map from rows, in these units unless it was given, to feature vectors.
    offset_ : array
        The mean of the feature vectors; without ``features``.
    directions_ : array or None
        The leading principal directions of the feature vectors, which are kept; None with ``features``.
    residuals_ : array of shape (m, horizon, n_features)
        What held-out forecasts missed by, made wider for the few rows that they are.
    anchors_ : array of shape (m, p)
        The states from which these forecasts were made.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import PredictiveStateModel
    >>> X = np.sin(np.arange(600) / 5)[:, None] + 0.1 * np.random.default_rng(0).normal(size=(600, 1))
    >>> model = PredictiveStateModel(horizon=5, random_state=0).fit(X)
    >>> bool(np.abs(model.forecast(X, 5).mean()[:, 0] - np.sin(np.arange(600, 605) / 5)).max() < 0.2)
    True
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "dynamics": NoneOr(Ability("learn")),
        "kernel": WithData(),
        "features": NoneOr(Ability("transform")),
        "horizon": Count(),
        "validation": Share("a share between 0 and 1"),
        "random_state": Seed(),
    }

    def __init__(
        self,
        dynamics: Any = None,
        *,
        kernel: Kernel | None = None,
        features: Any = None,
        horizon: int = 10,
        validation: float = 0.2,
        random_state: Any = None,
    ):
        self.dynamics = dynamics
        self.kernel = kernel
        self.features = features
        self.horizon = horizon
        self.validation = validation
        self.random_state = random_state

    def __getstate__(self) -> dict[str, Any]:
        """What pickle and skops keep: pairs in place of a dict whose keys, choices, are no text."""
        state = super().__getstate__()
        errors = state.get("validation_errors_")
        return state if errors is None else state | {"validation_errors_": list(errors.items())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        errors = state.get("validation_errors_")
        super().__setstate__(state if errors is None else state | {"validation_errors_": dict(errors)})

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, *, lengths: Any = None) -> Self:
        """Learn how the state of a series moves.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
            Sequences one under the other, without missing values.
        y : ignored
        lengths : list of ints or None
            How long every sequence is; by default all rows are one.

        Returns
        -------
        self
        """
        check_parameters(self)
        rng, horizon = np.random.default_rng(self.random_state), int(self.horizon)
        learner = TwoStageRegression() if self.dynamics is None else self.dynamics
        table = self._read(X, reset=True)
        lengths = check_lengths(lengths, len(table), y)
        split, *others = _folds(lengths, self.validation, horizon)
        for label, column in zip(getattr(self, "feature_names_in_", range(table.shape[1])), table.T, strict=True):
            check_column(column, label, "what comes next")
        self._fit_features(table, rng)
        series = self._series(table, lengths)
        self.validation_errors_: dict[Any, np.ndarray] = {}
        best: tuple[float, Any, np.ndarray] | None = None
        for choice in learner.candidates():
            missed = _missed(learner, choice, series, split, horizon)
            error = float(np.mean(missed**2))
            self.validation_errors_[choice] = np.mean(missed**2, axis=(0, 2))
            if best is None or not error >= best[0]:
                best = error, choice, missed
        assert best is not None
        _, self.choice_, missed = best
        self.dynamics_: Dynamics = learner.learn(series, self.choice_, horizon)
        errors = [missed, *(_missed(learner, self.choice_, series, fold, horizon) for fold in others)]
        self._keep_residuals(series, np.concatenate([fold.judged_rows for fold in (split, *others)]), errors, rng)
        return self

    def _read(self, X: Any, *, reset: bool) -> np.ndarray:
        return to_numpy(check_rows(self, X, reset=reset)).astype(float, copy=False)

    def _fit_features(self, table: np.ndarray, rng: np.random.Generator) -> None:
        """Standard units of the columns, and a map from them to feature vectors."""
        self.center_, self.scale_ = table.mean(axis=0), table.std(axis=0)
        if self.kernel is not None and self.features is not None:
            raise ValueError("kernel is shorthand for features: pass one of them, not both.")
        if self.features is None:
            kernel = Gaussian("median") if self.kernel is None else self.kernel
            self.features_ = FourierFeatures(kernel, 200, random_state=int(rng.integers(2**31)))
            rows = (table - self.center_) / self.scale_
            phi = self.features_.fit(rows).transform(rows)
            self.offset_ = phi.mean(axis=0)
            spread, vectors = np.linalg.eigh(np.cov(phi.T))
            # as long as the standardised columns: a kernel that is a density has any height
            height = unit_of(spread[-1], np.sum(phi**2) / len(phi))
            self.directions_: np.ndarray | None = vectors[:, ::-1][:, :COMPONENTS] / height
        else:
            self.features_ = clone(self.features).fit(table)
            self.directions_ = None

    def _series(self, table: np.ndarray, lengths: np.ndarray) -> Series:
        """Rows in standard units and their features; a constant is among these, so that moments hold the means."""
        x = (table - self.center_) / self.scale_
        if self.directions_ is None:
            return Series(x, _products_in_range(self.features_.transform(table)), lengths)
        phi = (self.features_.transform(x) - self.offset_) @ self.directions_
        return Series(x, np.concatenate([phi, np.ones((len(x), 1))], axis=1), lengths)

    def _keep_residuals(
        self, series: Series, rows: np.ndarray, missed: list[np.ndarray], rng: np.random.Generator
    ) -> None:
        """What forecasts from some of these rows missed by, and the states there."""
        states, some = run(self.dynamics_, series.phi, series.lengths), rng.permutation(len(rows))[:ANCHORS]
        errors = np.concatenate(missed)[some]
        wider = _wider_tails(len(rows) * min(NEIGHBOURS / len(some), 1.0) / np.arange(1, errors.shape[1] + 1))
        self.residuals_, self.anchors_ = errors * wider[:, None] * self.scale_, states[rows[some]]

    def filter(self, X: Any, *, lengths: Any = None) -> np.ndarray:
        """The predictive state after every row, (n_samples, p).

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        lengths : list of ints or None
            How long every sequence is; by default all rows are one.

        Returns
        -------
        array of shape (n_samples, p)
        """
        return self._states(X, lengths)[0]

    def forecast(self, X: Any, horizon: int = 1, *, lengths: Any = None, origins: Any = None) -> SampleForecast:
        """The distribution of the ``horizon`` rows after ``X``; after each sequence, where ``lengths`` are given.

        ``origins`` are numbers of rows to forecast from instead, each from what comes up to it.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        horizon : int, default=1
            How many steps ahead.
        lengths : list of ints or None
            How long every sequence is; by default all rows are one.
        origins : array of ints or None
            Rows to forecast from, each from what comes up to it; by default the last of every sequence.

        Returns
        -------
        SampleForecast
        """
        horizon = check_count("horizon", horizon)
        check_is_fitted(self)
        if horizon > self.horizon:
            raise ValueError(
                f"This model was fitted for {self.horizon} step(s) ahead; got horizon={horizon}. Fit it with more."
            )
        after, series = self._states(X, lengths)
        last = np.cumsum(series.lengths) - 1 if origins is None else check_origins(origins, len(after))
        states = after[last]
        recent = series.recent(last, self.dynamics_.memory, upto=True)
        with np.errstate(over="ignore"):  # so far out, all is equally far
            center = self.center_ + self.scale_ * self.dynamics_.forecast(states, recent, horizon)
        center = np.clip(center, -FARTHEST, FARTHEST)
        squares = euclidean_distances(states, self.anchors_, squared=True)
        squares -= squares.min(axis=1, keepdims=True)
        place = min(NEIGHBOURS, squares.shape[1] - 1)
        reach = np.partition(squares, place, axis=1)[:, [place]]
        reach = np.maximum(reach, np.finfo(float).eps * squares.max(axis=1, keepdims=True))  # anchors may coincide
        weights = np.exp(-2 * squares / np.maximum(reach, TINY))
        weights /= weights.sum(axis=1, keepdims=True)
        if lengths is None and origins is None:
            center, weights = center[0], weights[0]
        return SampleForecast(center, self.residuals_[:, :horizon], weights)

    def score(self, X: Any, y: Any = None, *, lengths: Any = None) -> float:
        """Minus the mean squared error of forecasts a step ahead, in the columns' standard deviations.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored
        lengths : list of ints or None
            How long every sequence is; by default all rows are one.

        Returns
        -------
        float
            Higher is better.
        """
        series, before = self._run(X, lengths)
        n = len(series.x)
        recent = series.recent(np.arange(n), self.dynamics_.memory)
        errors = self.dynamics_.forecast(before[:n], recent, 1)[:, 0] - series.x
        with np.errstate(over="ignore"):  # minus infinity is the right score of rows so far away
            return -float(np.mean(errors**2))

    def _run(self, X: Any, lengths: Any) -> tuple[Series, np.ndarray]:
        check_is_fitted(self)
        table = self._read(X, reset=False)
        series = self._series(table, check_lengths(lengths, len(table)))
        return series, run(self.dynamics_, series.phi, series.lengths)

    def _states(self, X: Any, lengths: Any) -> tuple[np.ndarray, Series]:
        """The states after every row, and the rows."""
        series, states = self._run(X, lengths)
        n, ends = len(series.x), np.cumsum(series.lengths)
        after = np.concatenate([states[1:n], states[:1]])
        after[ends - 1] = states[n:]
        return after, series


def _products_in_range(phi: Any) -> np.ndarray:
    """Feature vectors in floats, if squares of products of two, which regressions sum, are in range."""
    phi = np.asarray(phi, dtype=float)
    with np.errstate(over="ignore"):  # told in a sentence
        check_range(np.sum(phi**4))
    return phi


def _wider_tails(n_errors: np.ndarray) -> np.ndarray:
    """How much wider 90 % intervals are where the spread is that of so many errors: Student's quantile over the normal.

    Errors h steps ahead overlap, so that h rows have about one between them.
    """
    return stats.t.isf(0.05, np.maximum(n_errors, FEWEST)) / stats.norm.isf(0.05)


class HeldOutRows(NamedTuple):
    """Rows that are fitted, and rows that are held out, behind some others over which a filter warms up."""

    fitted: np.ndarray  # row numbers
    fitted_lengths: np.ndarray
    followed: np.ndarray  # row numbers, of rows to warm up on and of held-out rows
    followed_lengths: np.ndarray
    judged: np.ndarray  # whether each of these is held out and has all rows ahead, so that a forecast can be judged

    @property
    def judged_rows(self) -> np.ndarray:
        """The numbers of the rows that are judged."""
        return self.followed[self.judged]


def _folds(lengths: np.ndarray, share: float, horizon: int) -> list[HeldOutRows]:
    """What is fitted and what is held out: first the last rows, then those before; the earliest are always fitted."""
    last = _held_out(lengths, share, horizon)
    if not _long_enough(last, horizon):
        raise ValueError(
            f"Forecasts of {horizon} step(s) need sequences whose held-out part ({share:g} of the rows) is as long, "
            f"and as many rows, at least three, beside it; got n_samples = {lengths.sum()}, the longest sequence of "
            f"{lengths.max()} row(s). Pass more rows or ask for a shorter horizon."
        )
    earlier = (_held_out(lengths, share, horizon, back) for back in range(1, round(1 / share) - 1))
    return [last, *(fold for fold in earlier if _long_enough(fold, horizon))]


def _long_enough(fold: HeldOutRows, horizon: int) -> bool:
    return bool(fold.judged.any()) and fold.fitted_lengths.max(initial=0) >= max(3, horizon)


def _held_out(lengths: np.ndarray, share: float, horizon: int, back: int = 0) -> HeldOutRows:
    """A share of the sequences, or of the rows of a few, held out: the last, or those so many shares before."""
    ends = np.cumsum(lengths)
    begins = ends - lengths
    if len(lengths) >= 5:
        size = max(round(share * len(lengths)), 1)
        number = np.arange(len(lengths)) + size * back - len(lengths)
        low, high = begins, np.where((number >= -size) & (number < 0), ends, begins)
    else:
        size = np.maximum((share * lengths).astype(int), 1)
        high = np.maximum(ends - back * size, begins)
        low = np.maximum(high - size, begins)
    fitted, sizes = _joined(np.stack([begins, high], axis=1).ravel(), np.stack([low, ends], axis=1).ravel())
    warm = np.where(low < high, np.maximum(low - WARM_UP, begins), high)
    followed, followed_sizes = _joined(warm, high)
    judged = (followed >= np.repeat(low, high - warm)) & (followed + horizon <= np.repeat(high, high - warm))
    return HeldOutRows(fitted, sizes, followed, followed_sizes, judged)


def _joined(begins: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of stretches one after the other, and how long each is; empty ones are left out."""
    pieces = [np.arange(begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end]
    none = np.empty(0, dtype=int)
    return np.concatenate([none, *pieces]), np.array([len(piece) for piece in pieces], dtype=int)


def _missed(learner: Any, choice: Any, series: Series, fold: HeldOutRows, horizon: int) -> np.ndarray:
    """What forecasts of the judged rows miss by, (n, horizon, d), where the fold's other rows are fitted."""
    dynamics = learner.learn(series.take(fold.fitted, fold.fitted_lengths), choice, horizon)
    rest, rows = series.take(fold.followed, fold.followed_lengths), np.flatnonzero(fold.judged)
    states = run(dynamics, rest.phi, rest.lengths)[rows]
    missed = rest.ahead(horizon)[0][rows] - dynamics.forecast(states, rest.recent(rows, dynamics.memory), horizon)
    return np.where(np.isfinite(missed), missed, 1e6)
