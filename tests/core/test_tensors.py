from itertools import combinations, permutations

import numpy as np
import pytest
from sklearn.base import clone

from catalogue import SOLVERS
from latentviews.core.tensors import JointDiagonalization, PowerMethod, _rotate

pytestmark = pytest.mark.cheap

solvers = pytest.mark.parametrize("solver", SOLVERS, ids=repr)


def orthogonal(values, rng):
    """A tensor with these eigenvalues, and its eigenvectors in columns."""
    vectors, _ = np.linalg.qr(rng.normal(size=(len(values), len(values))))
    return np.einsum("r,ir,jr,lr->ijl", values, vectors, vectors, vectors), vectors


def symmetric_noise(k, rng):
    """A symmetric tensor of Frobenius norm one."""
    noise = rng.normal(size=(k, k, k))
    noise = sum(np.transpose(noise, order) for order in permutations(range(3)))
    return noise / np.linalg.norm(noise)


@solvers
@pytest.mark.parametrize("k", [1, 2, 5, 10])
def test_solver_recovers_an_orthogonal_tensor(solver, k, rng):
    values = np.sort(rng.uniform(1, 3, size=k))[::-1]
    tensor, vectors = orthogonal(values, rng)

    found = solver.decompose(tensor, rng)

    np.testing.assert_allclose(found.values, values, rtol=1e-10)
    np.testing.assert_allclose(found.vectors, vectors, atol=1e-10)
    assert found.residual < 1e-10


@solvers
@pytest.mark.parametrize("k", [2, 5])
def test_solver_handles_equal_eigenvalues(solver, k, rng):
    tensor, vectors = orthogonal(np.full(k, 2.0), rng)

    found = solver.decompose(tensor, rng)

    overlaps = vectors.T @ found.vectors  # the eigenvectors are unique but for their order
    np.testing.assert_allclose(found.values, 2.0, rtol=1e-10)
    np.testing.assert_allclose(np.sort(overlaps, axis=0)[-1], 1, atol=1e-10)
    assert len(set(overlaps.argmax(axis=0))) == k


@solvers
def test_values_are_positive_whatever_the_sign_of_the_vectors(solver, rng):
    tensor, vectors = orthogonal(np.array([-3.0, 2.0, -1.0]), rng)

    found = solver.decompose(tensor, rng)

    np.testing.assert_allclose(found.values, [3, 2, 1], rtol=1e-10)
    np.testing.assert_allclose(found.vectors, vectors * [-1, 1, -1], atol=1e-10)


@solvers
@pytest.mark.parametrize("size", [1e-6, 1e-3])
def test_error_is_of_the_order_of_the_perturbation(solver, size, rng):
    values = np.array([3.0, 2.5, 2.0, 1.5, 1.0])
    tensor, vectors = orthogonal(values, rng)

    found = solver.decompose(tensor + size * symmetric_noise(5, rng), rng)

    # Anandkumar et al. (2014), theorem 5.1
    assert np.all(np.abs(found.values - values) <= 5 * size)
    assert np.all(np.linalg.norm(found.vectors - vectors, axis=0) <= 8 * size / values)
    assert found.residual <= 10 * size
    assert np.all(np.diff(found.values) <= 0)


@solvers
def test_residual_is_what_the_eigenpairs_leave(solver, rng):
    tensor = symmetric_noise(4, rng)

    values, vectors, residual = solver.decompose(tensor, rng)

    rest = tensor - np.einsum("r,ir,jr,lr->ijl", values, vectors, vectors, vectors)
    assert residual == pytest.approx(np.linalg.norm(rest), rel=1e-12)
    assert residual > 0.1  # a generic tensor is far from orthogonal


@solvers
def test_vectors_have_length_one(solver, rng):
    found = solver.decompose(symmetric_noise(4, rng), rng)

    np.testing.assert_allclose(np.linalg.norm(found.vectors, axis=0), 1, rtol=1e-12)
    assert np.all(found.values >= 0)
    assert np.all(np.diff(found.values) <= 0)


def test_joint_diagonalization_gives_orthogonal_vectors(rng):
    found = JointDiagonalization().decompose(symmetric_noise(6, rng), rng)

    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(6), atol=1e-12)


@solvers
def test_a_solver_is_a_function_of_tensor_and_generator(solver):
    tensor = symmetric_noise(4, np.random.default_rng(0))

    first, again = (clone(solver).decompose(tensor.copy(), np.random.default_rng(7)) for _ in range(2))

    np.testing.assert_array_equal(first.vectors, again.vectors)
    np.testing.assert_array_equal(first.values, again.values)


@solvers
def test_a_solver_leaves_the_tensor_alone(solver, rng):
    tensor = symmetric_noise(4, rng)
    before = tensor.copy()

    solver.decompose(tensor, rng)

    np.testing.assert_array_equal(tensor, before)


def test_a_threshold_above_every_overlap_turns_deflation_off(rng):
    tensor, vectors = orthogonal(np.array([3.0, 1.0]), rng)

    found = PowerMethod(threshold=np.inf).decompose(tensor, rng)

    np.testing.assert_allclose(found.vectors, vectors[:, [0, 0]], atol=1e-10)


def test_the_power_method_starts_from_given_vectors(rng):
    tensor, vectors = orthogonal(np.array([3.0, 2.0, 1.0]), rng)

    found = PowerMethod(starts=vectors.T + 0.1 * rng.normal(size=(3, 3)), n_iter=10).decompose(tensor, rng)
    second = PowerMethod(starts=vectors[:, [1]].T, n_iter=3, threshold=np.inf).decompose(tensor, rng)

    np.testing.assert_allclose(found.vectors, vectors, atol=1e-10)
    np.testing.assert_allclose(second.vectors, vectors[:, [1, 1, 1]], atol=1e-10)  # random starts find the first


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (PowerMethod(starts=np.ones((2, 4))), r"starts must be finite vectors of 3 coordinates.*got shape \(2, 4\)"),
        (PowerMethod(starts=[[np.nan] * 3]), r"starts must be finite vectors of 3 coordinates"),
        (PowerMethod(n_restarts=0), "n_restarts must be an integer of at least 1; got 0"),
        (PowerMethod(n_iter=-1), "n_iter must be an integer of at least 1; got -1"),
        (PowerMethod(n_restarts=1.5), "n_restarts must be an integer of at least 1; got 1.5"),
        (JointDiagonalization(max_sweeps=0), "max_sweeps must be an integer of at least 1; got 0"),
    ],
    ids=repr,
)
def test_bad_parameters_get_a_sentence(solver, message, rng):
    with pytest.raises(ValueError, match=message):
        solver.decompose(symmetric_noise(3, rng), rng)


def off_diagonal(slices):
    """The sum of squares off the diagonals of all slices."""
    return np.sum(slices**2) - np.sum(np.diagonal(slices, axis1=1, axis2=2) ** 2)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_rotation_is_by_the_angle_that_leaves_least_off_the_diagonals(sign, rng):
    slices = rng.normal(size=(4, 2, 2))
    slices = slices + np.swapaxes(slices, 1, 2)
    slices[:, 0, 1] = slices[:, 1, 0] = slices[:, 0, 1] * (3.0 if sign < 0 else 0.3)  # far from diagonal, or near

    def turned(angle):
        rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        return rotation.T @ slices @ rotation

    best = min(off_diagonal(turned(angle)) for angle in np.linspace(-np.pi / 4, np.pi / 4, 4001))

    found, vectors = slices.copy(), np.eye(2)
    angle = _rotate(found, vectors, 0, 1)

    assert off_diagonal(found) <= best + 1e-9
    np.testing.assert_allclose(found, turned(angle), atol=1e-12)
    np.testing.assert_allclose(vectors.T @ slices @ vectors, found, atol=1e-12)


def test_what_is_diagonal_is_not_turned(rng):
    slices, vectors = rng.normal(size=(3, 1, 2)) * np.eye(2), np.eye(2)
    slices[:, 0, 0] += 10.0  # the larger first, or the axes would change places

    assert _rotate(slices, vectors, 0, 1) == 0.0
    np.testing.assert_array_equal(vectors, np.eye(2))


def test_joint_diagonalisation_goes_on_until_no_rotation_is_left(rng):
    tensor = symmetric_noise(5, rng)

    vectors = JointDiagonalization().decompose(tensor, rng).vectors

    turned = np.einsum("ijl,ia,jb->lab", tensor, vectors, vectors)
    angles = [_rotate(turned.copy(), np.eye(5), p, q) for p, q in combinations(range(5), 2)]
    assert np.max(np.abs(angles)) < 1e-6


@pytest.mark.parametrize("k", [1, 3])
def test_sweeps_end_where_nothing_is_left_to_turn(k, rng):
    tensor, vectors = orthogonal(np.arange(k, 0, -1.0), rng)

    found = JointDiagonalization(max_sweeps=10**9, tol=1e-12).decompose(tensor, rng)  # or this would take hours

    np.testing.assert_allclose(found.vectors, vectors, atol=1e-10)
