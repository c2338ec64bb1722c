"""Functions of least loss by gradient steps in random features, doubly stochastic or in a fixed number of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import device

from latentviews._arrays import in_library_of, moved_to, namespace, to_numpy
from latentviews._numbers import TINY
from latentviews._validation import DivergenceError
from latentviews.losses import Loss
from latentviews.stochastic.expansions import Expansion, RandomBlocks

DECAY = 3  # later iterates count for more in averages
KEPT = 2**24  # features of a batch that are kept through a step
ALIKE = 1e-4  # rows of less spread in the kernel's space are the same to it


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """Eigenfunctions of the centred kernel, along which steps are shortened so that all can be longer.

    A gradient step moves along the i-th by its eigenvalue λ_i. Once the few large ones are out of the way, functions
    that need many small ones are found much sooner (Ma & Belkin 2017).
    """

    functions: Expansion  # (q outputs), of unit length
    damping: np.ndarray  # (q,), the share of a step that is taken back
    largest: float  # the largest eigenvalue that is left
    height: float  # the largest k(x, x) that is left

    def curvature(self, n_rows: int) -> float:
        """How steep a squared loss can be along a step, given that a batch of so many rows speaks for all."""
        return (self.height + (n_rows - 1) * self.largest) / n_rows

    def parts(self, x: Any) -> list[Any]:
        """The coefficients of the functions where ``x`` lives; none without functions."""
        return [moved_to(part, x) for part in self.functions.coefficients]

    def shortened(self, step: Sequence[Any]) -> list[Any]:
        """Coefficients of a step, ``step`` over the number of blocks, less what is taken back along the functions."""
        if not len(self.damping):
            return [part / len(step) for part in step]
        parts = self.parts(step[0])
        along = sum(part.T @ total for part, total in zip(parts, step, strict=True))
        along = in_library_of(self.damping, along)[:, None] * along
        return [total / len(step) - part @ along for part, total in zip(parts, step, strict=True)]

    def shrink(self, coefficients: Sequence[Any], factor: float) -> list[Any]:
        """Coefficients less ``factor`` times themselves, as much of it as is not taken back."""
        if not len(self.damping):
            return [a * (1 - factor) for a in coefficients]
        count, parts = len(coefficients), self.parts(coefficients[0])
        along = sum(part.T @ a for part, a in zip(parts, coefficients, strict=True)) * (factor * count)
        along = in_library_of(self.damping, along)[:, None] * along
        return [a * (1 - factor) + part @ along for part, a in zip(parts, coefficients, strict=True)]


def precondition(
    blocks: RandomBlocks, count: int, x: Any, most: int, batch_size: int = 256, penalty: float = 0.0
) -> Preconditioner:
    """At most ``most`` eigenfunctions in ``count`` blocks, found on half of the rows and judged on the other half.

    Eigenvalues are brought down to the next one, but not below what batches or the penalty limit steps by anyway.
    """
    n = (x.shape[0] + 1) // 2
    gram = to_numpy(sum(phi @ phi.T for phi in (blocks(x, j) for j in range(count)))) / count
    means = gram[:, :n].mean(axis=1)
    gram = gram - means[:, None] - means[None, :] + means[:n].mean()
    if np.diag(gram).max() < ALIKE:
        raise ValueError(
            f"The first batch, n_samples = {len(gram)}, has to show how rows differ, for steps as long as can be; "
            f"to {blocks.kernel} its rows are all the same. Begin with some different rows, or take a narrower kernel."
        )
    values, vectors = np.linalg.eigh(gram[:n, :n] / n)
    values, vectors = np.maximum(values[::-1], TINY), vectors[:, ::-1]
    q = int(np.sum(values[: min(most, n // 4)] > 0.1 / n))
    judges = slice(n, None) if n < x.shape[0] else slice(None)
    weights = vectors[:, :q] / np.sqrt(n * values[:q])
    along, own = gram[judges, :n] @ weights, gram[judges, judges]
    height = (np.diag(own) - (along**2).sum(axis=1)).max() if q else 0.0
    damping = np.maximum(0.0, 1 - max(values[min(q, n - 1)], height / batch_size, penalty) / values[:q])
    left = own - (along * damping) @ along.T
    centred = in_library_of((weights - weights.mean(axis=0)) / count, x)
    parts = tuple(blocks(x[:n, :], j).T @ centred for j in range(count)) if q else ()
    largest = float(np.linalg.eigvalsh(left)[-1]) / len(left)
    return Preconditioner(Expansion(blocks, parts), damping, largest, float(np.diag(left).max()))


class Features:
    """The features of one batch in some blocks, kept while they are few and made again otherwise."""

    def __init__(self, blocks: RandomBlocks, x: Any, count: int):
        self.blocks, self.x = blocks, x
        few = x.shape[0] * 2 * blocks.size * count <= KEPT
        self.kept = [blocks(x, j) for j in range(count)] if few else None

    def __getitem__(self, block: int) -> Any:
        return self.blocks(self.x, block) if self.kept is None else self.kept[block]

    def times(self, coefficients: Sequence[Any]) -> Any:
        """Σ_j φ_j α_j."""
        total = self[0] @ coefficients[0]
        for j, part in enumerate(coefficients[1:], start=1):
            total = total + self[j] @ part
        return total


@dataclass(frozen=True, eq=False)
class GradientFit:
    """A function f(x) + c on its way to the least loss, and the average of its way.

    Its features are a fixed number of blocks, or one more with every step.
    """

    functions: Expansion
    intercept: Any  # (outputs,)
    average: Expansion
    average_intercept: Any
    preconditioner: Preconditioner
    grows: bool
    steepness: float  # of the loss
    origin: Any  # (outputs,), the constant that it started from
    scale: float = 1.0  # how far from it targets lie, at most
    n_steps: int = 0
    base: Callable[[Any], Any] | None = None  # a function that the steps add to

    def __call__(self, x: Any) -> Any:
        """The averaged scores of rows, (n, outputs)."""
        return self._on_base(x, self.average(x) + moved_to(self.average_intercept, x))

    def _on_base(self, x: Any, scores: Any) -> Any:
        return scores if self.base is None else scores + self.base(x)

    def step(self, x: Any, targets: Any, loss: Any, step_size: float, penalty: float) -> "GradientFit":
        """One gradient step: f ← (1 − γν) f − γ/B P Σ_i (k(x_i, ·) − mean) ∂loss_i, and the constant apart.

        A growing function takes it in a fresh block: that is the doubly stochastic gradient. A single row has no mean
        to be set apart from, so it moves function and constant alike, each half as far.
        """
        xp, n_rows, blocks = namespace(x), x.shape[0], self.functions.blocks
        kept = [moved_to(a, x) for a in self.functions.coefficients]
        features = Features(blocks, x, len(kept))
        scores = self._on_base(x, features.times(kept) + moved_to(self.intercept, x))
        origin = moved_to(self.origin, x)
        scale = max(self.scale, float(xp.max(xp.abs(targets - origin))))
        limit = getattr(loss, "limit", Loss.limit) * scale
        check_bounded(scores - origin, limit)
        effective = min(n_rows, blocks.size) if self.grows else n_rows  # a fresh block knows no more than its features
        curvature, centred = self.preconditioner.curvature(effective), float(n_rows > 1)
        if not centred:
            step_size, curvature = step_size / 2, max(curvature, 1.0)
        rate = step_size / (self.steepness * curvature + penalty)
        gradient = loss.gradient(scores, targets)
        slope = xp.mean(gradient, axis=0)
        constant = moved_to(self.intercept, x) - (step_size / self.steepness) * slope
        gradient = (gradient - centred * slope) * (-rate / n_rows)
        kept = self.preconditioner.shrink(kept, rate * penalty) if penalty else kept
        kept, shift = self._along(kept, features, gradient)
        constant = constant - centred * shift  # the step is centred on the batch
        functions = replace(self.functions, coefficients=tuple(kept))
        share = (DECAY + 1) / (self.n_steps + 1 + DECAY)  # polynomial-decay averaging (Shamir & Zhang 2013)
        after = replace(
            self,
            functions=functions,
            intercept=constant,
            average=self.average.towards(functions, share),
            average_intercept=moved_to(self.average_intercept, x) * (1 - share) + share * constant,
            scale=scale,
            n_steps=self.n_steps + 1,
        )
        if not after.reach(x) < limit:
            check_bounded(functions(x) + constant - origin, limit)
        return after

    def _along(self, kept: list[Any], features: Features, gradient: Any) -> tuple[list[Any], Any]:
        """Coefficients after a step along ``gradient`` (n, outputs), and the mean of the step over the batch."""
        xp = namespace(gradient)
        if self.grows:
            phi = features.blocks(features.x, len(kept))
            change = phi.T @ gradient
            return [*kept, change], xp.mean(phi, axis=0) @ change
        pairs = [(phi.T @ gradient, xp.mean(phi, axis=0)) for phi in (features[j] for j in range(len(kept)))]
        sums, means = zip(*pairs, strict=True)
        changes = self.preconditioner.shortened(sums)
        shift = sum(mean @ change for mean, change in zip(means, changes, strict=True))
        return [a + change for a, change in zip(kept, changes, strict=True)], shift

    def reach(self, x: Any) -> float:
        """How far from the origin scores may lie anywhere: by the lengths of coefficients, and of a row's features."""
        xp, blocks = namespace(x), self.functions.blocks
        length = xp.sqrt(xp.sum(blocks(x[:1, :], 0) ** 2))
        with np.errstate(over="ignore"):  # then it may lie anywhere
            norms = sum(xp.sqrt(xp.sum(moved_to(part, x) ** 2, axis=0)) for part in self.functions.coefficients)
        return float(xp.max(norms * length + xp.abs(moved_to(self.intercept, x) - moved_to(self.origin, x))))


def start_gradient(
    blocks: RandomBlocks,
    x: Any,
    intercept: Any,
    n_blocks: int | None,
    directions: int,
    batch_size: int,
    penalty: float,
    steepness: float,
    scale: float,
) -> GradientFit:
    """The function that is ``intercept`` everywhere, in a fixed number of blocks, or one that grows (None)."""
    grows = n_blocks is None
    preconditioner = precondition(blocks, n_blocks or 4, x, 0 if grows else directions, batch_size, penalty)
    zero = namespace(x).zeros((2 * blocks.size, intercept.shape[0]), dtype=x.dtype, device=device(x))
    start = Expansion(blocks, (zero,) * (n_blocks or 1))
    return GradientFit(start, intercept, start, intercept, preconditioner, grows, steepness, intercept, scale)


def check_bounded(scores: Any, limit: float) -> None:
    """Refuse scores that have grown beyond all targets."""
    largest = float(namespace(scores).max(namespace(scores).abs(scores)))
    if not largest < limit:
        raise DivergenceError(
            f"The steps diverge: scores reach {largest:.3g}, far beyond the targets. Take smaller steps (step_size); "
            "the model is as it was before this call."
        )
