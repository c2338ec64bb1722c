"""What kernel classifiers and regressors share: their settings, and the ways to learn from rows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import in_library_of, namespace, on_host, take_rows, to_numpy
from latentviews._parameters import (
    Ability,
    AutoOr,
    Constraint,
    Count,
    Flag,
    NoneOr,
    Nonnegative,
    OneOf,
    Positive,
    Seed,
    Share,
    Verbosity,
    WithData,
)
from latentviews._progress import CallbackSupportMixin, reporter
from latentviews._validation import (
    check_range,
    check_rows,
    is_auto,
)
from latentviews.core import streams
from latentviews.core.features.fourier import check_shift_invariant
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.real import Gaussian
from latentviews.losses import Loss
from latentviews.stochastic import choice, direct
from latentviews.stochastic.expansions import BLOCK_SELECTIONS, RandomBlocks
from latentviews.stochastic.gradients import GradientFit, start_gradient
from latentviews.stochastic.targets import stream_epochs

KEEP = 2**24  # numbers of frequencies that stay in memory where their number is fixed
PILOT = 2048  # rows that bandwidths, steps and eigenfunctions are read off
FEW_ROWS, MOST_SMALL = 16, 200  # batches of fewer rows, of which a growing function takes at most so many
EPOCHS, PENALTY = 20, 1e-6  # of steps, where they are left to the model
SHARE, CHOICE = 12, (500, 1000)  # bandwidth and penalty are chosen on a twelfth of the rows, but on no less and no more
FACTORS = [2.0 ** (k / 2) for k in range(-5, 8)]  # bandwidths to choose from, in median distances
Step = Callable[[Any, Any], None]


class KernelMachine(CallbackSupportMixin, BaseEstimator):
    """The parameters that both models share, and the two ways to a function of least loss: steps, and at once."""

    fit_: Any  # a GradientFit, or a DirectFit

    _parameters: ClassVar[dict[str, Constraint]] = {
        "loss": NoneOr(Ability("gradient")),
        "kernel": WithData(),
        "penalty": AutoOr(Nonnegative()),
        "batch_size": Count(),
        "n_frequencies": Count(),
        "selection": OneOf(lambda: BLOCK_SELECTIONS),
        "n_blocks": NoneOr(Count()),
        "n_directions": Count(0),
        "n_epochs": AutoOr(Count()),
        "step_size": Positive(),
        "decay": NoneOr(Positive()),
        "early_stopping": Flag(),
        "validation_fraction": Share(),
        "n_iter_no_change": Count(),
        "verbose": Verbosity(),
        "random_state": Seed(),
    }

    def __init__(
        self,
        *,
        loss: Loss | None = None,
        kernel: Kernel | None = None,
        penalty: float | str = "auto",
        batch_size: int = 256,
        n_frequencies: int = 128,
        selection: str = "auto",
        n_blocks: int | None = 16,
        n_directions: int = 128,
        n_epochs: int | str = "auto",
        step_size: float = 1.0,
        decay: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.loss = loss
        self.kernel = kernel
        self.penalty = penalty
        self.batch_size = batch_size
        self.n_frequencies = n_frequencies
        self.selection = selection
        self.n_blocks = n_blocks
        self.n_directions = n_directions
        self.n_epochs = n_epochs
        self.step_size = step_size
        self.decay = decay
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.verbose = verbose
        self.random_state = random_state

    def _n_epochs(self) -> int:
        return EPOCHS if is_auto(self.n_epochs) else int(self.n_epochs)

    def _at_once(self, n_rows: int, loss: Any) -> bool:
        """Whether nothing asks for steps, and the kernel between all rows may be kept."""
        asked = not is_auto(self.n_epochs) or self.early_stopping or self.n_blocks is None
        return not asked and getattr(loss, "smooth", False) and direct.fits_in_memory(n_rows)

    def _solve(self, x: Any, targets: np.ndarray, loss: Any) -> None:
        """The function of least loss on all rows, with the bandwidth and penalty that rows left out prefer."""
        rng, rows = np.random.default_rng(self.random_state), to_numpy(x)
        self.kernel_, ridge = self._chosen(rows, targets, loss, rng)
        report, finish = reporter(self, self.verbose, of_loss=True)
        self.fit_, self.n_iter_ = direct.least_loss(self.kernel_, on_host(x), targets, loss, ridge, rng, report)
        self.penalty_ = loss.curvature * ridge / len(rows)
        finish()

    def _chosen(self, x: np.ndarray, targets: np.ndarray, loss: Any, rng: np.random.Generator) -> tuple[Any, float]:
        """The kernel and the ridge λ = nν/w, with w the curvature of the loss; what was given stays as it is."""
        some = rng.permutation(len(x))[: int(np.clip(len(x) // SHARE, *CHOICE))]
        ridges, kernels, start = choice.RIDGES, [self._kernel(x)], 0
        if not is_auto(self.penalty):
            ridges = np.array([float(self.penalty) * len(x) / loss.curvature])
        if self.kernel is None:
            kernels = [Gaussian(factor * kernels[0].bandwidth) for factor in FACTORS]
            start = FACTORS.index(1.0)
        if len(kernels) == len(ridges) == 1:
            return kernels[0], max(float(ridges[0]), direct.least_ridge(len(x)))
        kernel, ridge = choice.choose(kernels, start, x[some], targets[some], ridges)
        return kernel, max(ridge, direct.least_ridge(len(x)))

    def _kernel(self, x: Any) -> Any:
        """The kernel with its rules resolved; where none is given, a Gaussian as wide as the median distance."""
        kernel = Gaussian("median") if self.kernel is None else self.kernel
        return check_shift_invariant(type(self).__name__, kernel).adapt(to_numpy(x))

    def _stepping(self) -> bool:
        """Whether steps have begun."""
        return isinstance(getattr(self, "fit_", None), GradientFit)

    def _start(self, x: Any, targets: np.ndarray, loss: Any) -> None:
        """A constant function, or what was found at once, with blocks and step sizes that the first rows suggest."""
        base = getattr(self, "fit_", None)
        self.kernel_ = self._kernel(x) if base is None else self.kernel_
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        keep = 0 if self.n_blocks is None else KEEP
        blocks = RandomBlocks(self.kernel_, x.shape[1], self.n_frequencies, seed, keep, self.selection)
        constant = loss.constant(targets) if base is None else np.zeros(targets.shape[1])
        steepness = loss.steepness(targets) if hasattr(loss, "steepness") else loss.curvature
        scale = float(np.abs(targets - constant).max()) or 1.0
        limits = self.batch_size, self._penalty(), steepness, scale
        start = start_gradient(blocks, x, in_library_of(constant, x), self.n_blocks, self.n_directions, *limits)
        self.fit_ = replace(start, base=base)

    def _penalty(self) -> float:
        return PENALTY if is_auto(self.penalty) else float(self.penalty)

    def _step(self, x: Any, targets: Any, loss: Any) -> None:
        if self.n_blocks is None and x.shape[0] < FEW_ROWS and self.fit_.n_steps >= MOST_SMALL:
            raise ValueError(
                f"n_blocks=None adds a block of features with every batch, and the next takes as long as all blocks "
                f"before it; {MOST_SMALL} batches as small as {x.shape[0]} row(s) are enough. Take {FEW_ROWS} rows or "
                "more in a batch, or a number for n_blocks."
            )
        size = float(self.step_size)
        if self.decay is not None:
            size /= 1 + self.fit_.n_steps / self.decay
        self.fit_ = self.fit_.step(x, targets, loss, size, self._penalty())

    def _scores(self, X: Any) -> Any:
        check_is_fitted(self)
        x = check_rows(self, X, reset=False)
        return check_range(namespace(x).concat([self.fit_(rows) for rows, _ in streams.batches(x)], axis=0))

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _fit_stream(self, batches: Any, y: Any, learn: Step) -> Self:
        """``learn`` from every batch of an iterable, epoch after epoch."""
        if y is not None:
            raise TypeError("A stream yields pairs (rows, targets); y goes with an array.")
        if self.early_stopping:
            raise ValueError(
                "early_stopping sets rows apart, and of a stream none are kept; pass an array, or do without."
            )
        for epoch, rows, targets in stream_epochs(batches, self._n_epochs()):
            learn(rows, targets)
            self.n_iter_ = epoch
        if not hasattr(self, "fit_"):
            raise ValueError("The stream holds no batch; at least one is needed.")
        return self

    def _epochs(self, x: Any, y: Any, begin: Step, step: Step, loss_of: Callable[[Any, Any], float]) -> None:
        """Steps through all rows in random order, epoch after epoch, until enough or no longer better."""
        rng, size = np.random.default_rng(self.random_state), self.batch_size
        report, finish = reporter(self, self.verbose, of_loss=True)
        kept, held = self._split(x.shape[0], rng)
        best, waited = (np.inf, getattr(self, "fit_", None)), 0
        for epoch in range(1, self._n_epochs() + 1):
            order = rng.permutation(kept)
            for start in range(0, len(order), size):
                rows = order[start : start + size]
                if not hasattr(self, "fit_"):
                    begin(take_rows(x, order[:PILOT]), y[order[:PILOT]])
                step(take_rows(x, rows), y[rows])
            self.n_iter_ = epoch
            judged = held if len(held) else rows
            value = loss_of(take_rows(x, judged), y[judged])
            waited = 0 if value < best[0] else waited + 1
            if value < best[0]:
                best = value, self.fit_
            if report("epoch", epoch, -value) or (len(held) and waited >= self.n_iter_no_change):
                break
        if len(held) and best[1] is not None:
            self.fit_, self.validation_loss_ = best[1], float(best[0])
        finish()

    def _split(self, n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Rows to learn from, and rows to tell when to stop."""
        if not self.early_stopping:
            return np.arange(n_rows), np.arange(0)
        share = self.validation_fraction
        order, size = rng.permutation(n_rows), int(np.ceil(share * n_rows))
        if size >= n_rows:
            raise ValueError(f"validation_fraction={share} leaves none of {n_rows} rows to learn from.")
        return order[size:], order[:size]
