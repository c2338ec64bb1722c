"""Regressions of features on features: the operator behind conditional embeddings and predictive states."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from latentviews._numbers import ridge_solve


@dataclass(frozen=True, eq=False)
class ConditionalOperator:
    """C_xz (C_zz + λ I)⁻¹ on finite features: it takes ψ(z) to the features of x that are expected there."""

    matrix: np.ndarray  # (D_x, D_z)

    @classmethod
    def of_moments(cls, cross: np.ndarray, square: np.ndarray, penalty: np.ndarray | float) -> Self:
        """From C_xz (D_x, D_z) and C_zz (D_z, D_z), with one penalty λ or one per feature of z."""
        return cls(ridge_solve(square, cross.T, penalty).T)

    @classmethod
    def of_rows(cls, psi: np.ndarray, shares: np.ndarray, penalty: float) -> Self:
        """From features (n, D_z) of rows with shares, where x is which row it is: what x has is a sum over rows."""
        weighed = psi * shares[:, None]
        return cls.of_moments(weighed, weighed.T @ psi, penalty)

    def at(self, psi: np.ndarray) -> np.ndarray:
        """The features of x (m, D_x) that are expected at features (m, D_z) of z."""
        return psi @ self.matrix.T
