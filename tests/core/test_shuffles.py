"""Permuted cross-covariances: all pairs of a side at once are what each is alone."""

import numpy as np
import pytest

from latentviews._numbers import largest_singular_value, sketched_svd
from latentviews.core.shuffles import PairedDirections, permuted_norms

pytestmark = pytest.mark.cheap


def test_the_largest_singular_values_are_those_of_every_pair_alone(rng):
    n = 50
    first, other, *seconds = (rng.normal(size=(n, width)) for width in (4, 3, 5, 2, 6))
    kept = rng.random(n) < 0.8
    pairs = [PairedDirections(first, second, None) for second in seconds] + [PairedDirections(other, seconds[0], None)]
    pairs.append(PairedDirections(other[kept], seconds[1][kept], kept))
    order = rng.permutation(n)

    found = permuted_norms(pairs, [order])

    for value, (one, two, some) in zip(found[0], pairs, strict=True):
        own = order if some is None else np.argsort(order[some])
        np.testing.assert_allclose(value, np.linalg.norm(one[own].T @ two / len(one), 2), rtol=1e-10)


@pytest.mark.parametrize("shape", [(3, 8), (8, 3), (1, 1)])
@pytest.mark.parametrize("scale", [1e-120, 1.0, 1e150])
def test_the_largest_singular_value_is_the_norm(shape, scale, rng):
    matrix = scale * rng.normal(size=shape)
    np.testing.assert_allclose(largest_singular_value(matrix), np.linalg.norm(matrix, 2), rtol=1e-12)


def test_no_matrix_has_a_norm_of_zero_but_zero(rng):
    assert largest_singular_value(np.zeros((3, 2))) == 0.0


@pytest.mark.parametrize("rank", [40, 700])
def test_a_sketch_has_all_singular_values_of_a_large_matrix(rank, rng):
    matrix = rng.normal(size=(600, rank)) @ rng.normal(size=(rank, 620))
    u, values, vt = sketched_svd(matrix)
    np.testing.assert_allclose((u * values) @ vt, matrix, atol=1e-9 * np.abs(matrix).max())
    np.testing.assert_allclose(values[:40], np.linalg.svd(matrix, compute_uv=False)[:40], rtol=1e-10)
    np.testing.assert_allclose(u.T @ u, np.eye(u.shape[1]), atol=1e-10)
