import re
from itertools import combinations, permutations

import numpy as np
import pytest
from sklearn.base import clone

from catalogue import SOLVERS
from latentviews.core import tensors
from latentviews.core.tensors import JointDiagonalization, PowerMethod, _ordered, _rotate

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
        (PowerMethod(starts=np.ones(3)), r"starts must be finite vectors of 3 coordinates.*got shape \(3,\)"),
        (
            PowerMethod(starts=np.ones((2, 3, 1))),
            r"starts must be finite vectors of 3 coordinates.*got shape \(2, 3, 1\)",
        ),
        (PowerMethod(starts=np.ones((0, 3))), r"starts must be finite vectors of 3 coordinates.*got shape \(0, 3\)"),
        (PowerMethod(starts=np.ones((2, 2))), r"starts must be finite vectors of 3 coordinates.*got shape \(2, 2\)"),
        (PowerMethod(threshold=-0.5), "threshold must be a number of at least zero; got -0.5"),
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
    angle = _rotate(np.moveaxis(found, 0, -1), vectors, 0, 1)

    assert off_diagonal(found) <= best + 1e-9
    np.testing.assert_allclose(found, turned(angle), atol=1e-12)
    np.testing.assert_allclose(vectors.T @ slices @ vectors, found, atol=1e-12)


def test_what_is_diagonal_is_not_turned(rng):
    slices, vectors = rng.normal(size=(3, 1, 2)) * np.eye(2), np.eye(2)
    slices[:, 0, 0] += 10.0  # the larger first, or the axes would change places

    assert _rotate(np.moveaxis(slices, 0, -1), vectors, 0, 1) == 0.0
    np.testing.assert_array_equal(vectors, np.eye(2))


def test_joint_diagonalisation_goes_on_until_no_rotation_is_left(rng):
    tensor = symmetric_noise(5, rng)

    vectors = JointDiagonalization().decompose(tensor, rng).vectors

    turned = np.einsum("ijl,ia,jb->abl", tensor, vectors, vectors)
    angles = [_rotate(turned.copy(), np.eye(5), p, q) for p, q in combinations(range(5), 2)]
    assert np.max(np.abs(angles)) < 1e-6


@pytest.mark.parametrize("k", [1, 3])
def test_sweeps_end_where_nothing_is_left_to_turn(k, rng):
    tensor, vectors = orthogonal(np.arange(k, 0, -1.0), rng)

    found = JointDiagonalization(max_sweeps=10**9, tol=1e-12).decompose(tensor, rng)  # or this would take hours

    np.testing.assert_allclose(found.vectors, vectors, atol=1e-10)


def deflated(tensor, values, vectors, theta, threshold=0.0):
    """T(I, θ, θ) less λ_j ⟨θ, v_j⟩² v_j for every pair found whose |λ_j ⟨θ, v_j⟩| is above the threshold."""
    found = np.einsum("ijl,j,l->i", tensor, theta, theta)
    for value, vector in zip(values, vectors.T, strict=True):
        if abs(value * (theta @ vector)) > threshold:
            found = found - value * (theta @ vector) ** 2 * vector
    return found


@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
def test_what_was_found_is_removed_where_its_overlap_is_above_the_threshold(threshold, rng):
    tensor, vectors, values = symmetric_noise(4, rng), np.eye(4)[:, :3], np.array([2.0, -1.0, 3.0])
    thetas = np.vstack([np.full(4, 0.5), rng.normal(size=(6, 4)) / 2])  # 2 × 0.5 is a threshold exactly

    found = PowerMethod(threshold=threshold)._update(tensor, values, vectors, thetas)

    literal = [deflated(tensor, values, vectors, theta, threshold) for theta in thetas]
    np.testing.assert_allclose(found, literal, atol=1e-14)


@pytest.mark.parametrize("n_iter", [1, 2, 3])
def test_the_power_method_takes_its_steps_from_every_start_and_again_from_the_best(n_iter, rng):
    tensor, starts = symmetric_noise(3, rng), rng.normal(size=(5, 3))
    empty = np.empty(0), np.empty((3, 0))

    def walked(theta):
        for _ in range(n_iter):
            theta = deflated(tensor, *empty, theta)
            theta = theta / np.linalg.norm(theta)
        return theta

    ends = [walked(start / np.linalg.norm(start)) for start in starts]
    best = walked(max(ends, key=lambda theta: theta @ deflated(tensor, *empty, theta)))

    found = PowerMethod(starts=starts, n_iter=n_iter, threshold=np.inf).decompose(tensor, rng)

    sign = np.sign(np.einsum("ijl,i,j,l", tensor, best, best, best))
    np.testing.assert_allclose(found.vectors, np.tile(sign * best, (3, 1)).T, atol=1e-12)


def test_the_power_method_draws_as_many_starts_as_it_says(rng):
    assert PowerMethod(n_restarts=7)._first_vectors(4, rng).shape == (7, 4)


@solvers
@pytest.mark.parametrize("k", [1, 3])
def test_a_tensor_of_zeros_has_eigenvalues_of_zero_and_nothing_left(solver, k, rng):
    found = solver.decompose(np.zeros((k, k, k)), rng)

    np.testing.assert_array_equal(found.values, 0.0)
    assert np.all(np.isfinite(found.vectors))
    assert found.residual == 0.0


def test_eigenvalues_are_ordered_by_size_with_signs_moved_to_the_vectors():
    tensor = np.zeros((3, 3, 3))
    tensor[range(3), range(3), range(3)] = [1.0, -4.0, 2.0]

    values, vectors, residual = _ordered(tensor, np.eye(3))
    part = _ordered(tensor, np.eye(3)[:, [0, 1]])

    np.testing.assert_array_equal(values, [4, 2, 1])
    np.testing.assert_array_equal(vectors, [[0, 0, 1], [-1, 0, 0], [0, 1, 0]])
    assert residual == 0.0
    assert part.residual == pytest.approx(2 / np.sqrt(21))


@pytest.mark.parametrize("solver", [PowerMethod, JointDiagonalization])
def test_the_defaults_of_a_solver_are_those_of_its_docstring(solver):
    said = dict(re.findall(r"^    (\w+) : \w+, default=(\S+)$", solver.__doc__, flags=re.MULTILINE))

    given = {name: value for name, value in solver().get_params().items() if value is not None}
    assert {name: float(value) for name, value in said.items()} == given


@pytest.mark.parametrize(("sweeps", "turns"), [(1, 3), (2, 6), (5, 15)])
def test_no_more_sweeps_are_made_than_asked_for(sweeps, turns, rng, monkeypatch):
    made = []
    monkeypatch.setattr(tensors, "_rotate", lambda *arguments: made.append(1) or _rotate(*arguments))

    JointDiagonalization(max_sweeps=sweeps, tol=0.0).decompose(symmetric_noise(3, rng), rng)

    assert len(made) == turns


def test_sweeps_go_on_while_one_rotation_is_no_smaller_than_the_tolerance(rng, monkeypatch):
    angles = iter([0.0, -0.3, 0.0, 0.1, 0.0, 0.0, 0.0, 0.0, 0.05])
    monkeypatch.setattr(tensors, "_rotate", lambda *_: next(angles))

    JointDiagonalization(max_sweeps=4, tol=0.1).decompose(symmetric_noise(3, rng), rng)

    assert next(angles, "none") == "none"  # the third sweep was the last: 0.1 is no smaller than 0.1
