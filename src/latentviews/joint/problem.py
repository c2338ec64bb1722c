"""What a fit of a joint density is given, and what it finds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from latentviews._progress import Report
from latentviews.core.kernels.base import Kernel
from latentviews.core.tables import TrainingRows
from latentviews.joint.trees import Tree

FEW_PER_COMPONENT = 20  # rows: ranks that leave fewer to a component are not tried


@dataclass(frozen=True, eq=False)
class JointProblem(TrainingRows):
    """What a fit is given, read and checked."""

    kernels: Mapping[int, Kernel]  # of every column that varies
    rank: Any  # a number, "auto", or one per edge
    tree: Any
    names: list[str] | None  # of all columns
    rng: np.random.Generator
    report: Report

    @property
    def everything(self) -> Any:
        """All rows, where there are more than the pilot's; else None."""
        return self.data if self.partial else None

    def ranks(self, choices: Sequence[int]) -> list[Any]:
        """The ranks to try."""
        if not isinstance(self.rank, str):
            return [self.rank]
        return [r for r in choices if r == 1 or r * FEW_PER_COMPONENT <= len(self.pilot)] or [1]


class JointEstimate(NamedTuple):
    """A density, its rank, and the tree behind it if any."""

    density: Any
    rank: Any
    tree: Tree | None
