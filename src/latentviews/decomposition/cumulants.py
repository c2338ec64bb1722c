"""Fourth cumulants of whitened coordinates, and the rotation that makes them those of independent sources."""

import numpy as np

from latentviews.core.tensors import rotated_to_diagonal

ROWS = 4096  # of products of coordinates at a time
TURN = 1e-9  # radians: rotations end after a sweep that turns no pair by more, and converge quadratically
SWEEPS = 30
MATRICES = 200  # at most that are made diagonal together: all of them for up to 19 sources


def fourth_cumulants(z: np.ndarray) -> np.ndarray:
    """The fourth cumulants (k, k, k, k) of coordinates with mean zero and the identity as covariance.

    K_abcd = E[z_a z_b z_c z_d] − δ_ab δ_cd − δ_ac δ_bd − δ_ad δ_bc: zero for a Gaussian, Σ_h κ_h u_h⁴ for z = U s with
    independent sources s of kurtoses κ_h.
    """
    k, total = z.shape[1], np.zeros((z.shape[1] ** 2,) * 2)
    for start in range(0, len(z), ROWS):
        part = z[start : start + ROWS]
        squares = (part[:, :, None] * part[:, None, :]).reshape(len(part), -1)
        total += squares.T @ squares
    one = np.eye(k)
    gaussian = (
        np.einsum("ab,cd->abcd", one, one) + np.einsum("ac,bd->abcd", one, one) + np.einsum("ad,bc->abcd", one, one)
    )
    return total.reshape(k, k, k, k) / len(z) - gaussian


def rotation_of(cumulants: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The directions u_h in columns, and their kurtoses, from the cumulants Σ_h κ_h u_h ⊗ u_h ⊗ u_h ⊗ u_h.

    All contractions K(·, ·, c, d) are diagonal in the basis of the u_h, whatever the signs of the κ_h, so they are made
    diagonal together (Cardoso & Souloumiac 1993): no root of an indefinite matrix is taken.
    """
    vectors = rotated_to_diagonal(eigenmatrices(cumulants), rng, SWEEPS, TURN)
    kurtoses = np.einsum("abcd,ah,bh,ch,dh->h", cumulants, vectors, vectors, vectors, vectors, optimize=True)
    order = np.argsort(-np.abs(kurtoses), kind="stable")
    return vectors[:, order], kurtoses[order]


def eigenmatrices(cumulants: np.ndarray) -> np.ndarray:
    """Matrices (m, k, k) that are diagonal where all contractions K(·, ·, c, d) are, and as far from it elsewhere.

    They are the eigenvectors of K as a symmetric matrix (k², k²), times its eigenvalues, of which k (k + 1) / 2 may
    differ from zero. Of many the largest are taken: k sources have k, and the others are noise.
    """
    k = len(cumulants)
    values, vectors = np.linalg.eigh(cumulants.reshape(k * k, k * k))
    large = np.argsort(-np.abs(values))[: min(k * (k + 1) // 2, MATRICES)]
    return (values[large] * vectors[:, large]).T.reshape(-1, k, k)
