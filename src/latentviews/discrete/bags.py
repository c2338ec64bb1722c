"""Moments of bags: what two and three different draws of one bag have in common, without a matrix of words by words.

A bag is a row of a sparse table of counts, bags by atoms: the words of a document, or the draws of a group, each an
atom of its own. An atom has a vector y (its word's row of a projection, or features of a draw); m, P and T are the
means over bags of E[y], E[y₁ ⊗ y₂] and E[y₁ ⊗ y₂ ⊗ y₃] over draws without replacement (Anandkumar et al. 2012).
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from latentviews._numbers import TINY

LEAST = 3.0  # draws that a bag needs to enter the moments
OVERSAMPLED, POWERS = 10, 4  # of the randomised subspace iteration


@dataclass(frozen=True, eq=False)
class BagMoments:
    """Sums over bags, and how many they are; those of several batches are added."""

    n_bags: float
    first: np.ndarray  # (r,)
    second: np.ndarray  # (r, r)
    third: np.ndarray  # (r, r, r)
    carried: np.ndarray  # (n_atoms or D, r), pair moments with the atoms themselves on one side
    mean: np.ndarray  # (n_atoms or D,), the mean of the atoms themselves

    def __add__(self, other: "BagMoments") -> "BagMoments":
        """The sums over both lots of bags."""
        return BagMoments(*(getattr(self, name) + getattr(other, name) for name in vars(self)))

    def means(self) -> "BagMoments":
        """The same per bag."""
        return BagMoments(1.0, *(getattr(self, name) / self.n_bags for name in list(vars(self))[1:]))

    def projected(self, down: np.ndarray) -> "BagMoments":
        """The moments of y @ down."""
        return replace(
            self,
            first=self.first @ down,
            second=down.T @ self.second @ down,
            third=np.einsum("abc,ai,bj,cl->ijl", self.third, down, down, down, optimize=True),
            carried=self.carried @ down,
        )


def long_enough(bags: sparse.csr_array) -> np.ndarray:
    """Which bags have the three draws that a third moment needs."""
    return np.asarray(bags.sum(axis=1)).ravel() >= LEAST


def bag_moments(bags: sparse.csr_array, vectors: np.ndarray, features: np.ndarray | None = None) -> BagMoments:
    """Sums of moments over bags of at least three draws; ``vectors`` (n_atoms, r) are those of the atoms.

    With s the sum of a bag's vectors and n its draws, its third moment is (s⊗s⊗s − Σ_i y_i⊗y_i⊗s in its three
    placements + 2 Σ_i y_i⊗y_i⊗y_i) / (n(n−1)(n−2)). ``features`` (n_atoms, D) are what pairs are carried to; atoms are
    themselves without.
    """
    bags = bags[long_enough(bags)]
    n = np.asarray(bags.sum(axis=1)).ravel()
    totals = bags @ vectors
    single, pair, triple = 1 / n, 1 / (n * (n - 1)), 1 / (n * (n - 1) * (n - 2))
    seen = {1: bags.T @ single, 2: bags.T @ pair, 3: bags.T @ triple}
    carried = bags.T @ (totals * pair[:, None]) - vectors * seen[2][:, None]
    beside = bags.T @ (totals * triple[:, None])
    crossed = np.einsum("wi,wj,wl->ijl", vectors, vectors, beside, optimize=True)
    placements = crossed + crossed.transpose(0, 2, 1) + crossed.transpose(2, 1, 0)
    alone = np.einsum("w,wi,wj,wl->ijl", seen[3], vectors, vectors, vectors, optimize=True)
    whole = np.einsum("d,di,dj,dl->ijl", triple, totals, totals, totals, optimize=True)
    return BagMoments(
        n_bags=float(len(n)),
        first=single @ totals,
        second=vectors.T @ carried,
        third=whole - placements + 2 * alone,
        carried=carried if features is None else features.T @ carried,
        mean=seen[1] if features is None else features.T @ seen[1],
    )


def word_projection(bags: sparse.csr_array, rank: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A projection of words whose span is that of the topics, (n_words, rank), and the spectrum it was cut from.

    The ``rank`` leading eigenvectors of the pair moment, by randomised subspace iteration: the moment is applied, never
    formed. Words are scaled by the root of their frequency, which makes the noise of all entries alike.
    """
    bags = bags[long_enough(bags)]
    n = np.asarray(bags.sum(axis=1)).ravel()
    mean, pair = bags.T @ (1 / n) / len(n), 1 / (n * (n - 1) * len(n))
    scale = np.where(mean > 0, 1 / np.sqrt(np.maximum(mean, TINY)), 0.0)
    scaled = (bags * scale).tocsr()
    own = (bags.T @ pair) * scale**2  # pairs of a word with itself
    size = min(rank + OVERSAMPLED, bags.shape[1])

    def applied(block: np.ndarray) -> np.ndarray:
        return scaled.T @ ((scaled @ block) * pair[:, None]) - own[:, None] * block

    basis = np.linalg.qr(rng.normal(size=(bags.shape[1], size)))[0]
    for _ in range(POWERS):
        basis = np.linalg.qr(applied(basis))[0]
    values, vectors = np.linalg.eigh(basis.T @ applied(basis))
    leading = np.argsort(-values)[:rank]
    return (basis @ vectors[:, leading]) * scale[:, None], np.sort(values)[::-1]
