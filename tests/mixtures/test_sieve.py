import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp, softmax

from latentviews import MultiViewMixture
from latentviews.datasets import make_multiview
from latentviews.mixtures.sieve import (
    PATIENCE,
    SieveParameters,
    SieveRows,
    accelerated_em,
    at_rest,
    em_step,
    em_sums,
    em_update,
    initial_parameters,
    moves_little,
    posterior,
    smoothing_step,
)

pytestmark = pytest.mark.cheap


def problem(rng, n=300, k=3, n_views=3, missing=False):
    """Rows in cells, atoms on them, and a random mixture."""
    cells = []
    for t in range(n_views):
        rows = sparse.csr_array(np.eye(12)[rng.integers(12, size=n)])
        atoms = rng.gamma(1.0, size=(12, 5)) + 0.1
        present = rng.random(n) < 0.7 if missing else None
        cells.append(SieveRows(rows, atoms, present, t))
    parameters = SieveParameters(
        rng.dirichlet(np.ones(k)), tuple(rng.dirichlet(np.ones(5), size=k).T for _ in range(n_views))
    )
    return cells, parameters


def enumerated(cells, parameters):
    """The joint density of rows and classes, the slow way."""
    joint = np.tile(parameters.weights, (cells[0].rows.shape[0], 1))
    for view in cells:
        dense = view.rows.toarray() @ view.atoms @ parameters.coefficients[view.block]
        joint *= dense if view.present is None else np.where(view.present[:, None], dense, 1.0)
    return joint


@pytest.mark.parametrize("missing", [False, True])
def test_posteriors_are_bayes_rule(missing, rng):
    cells, parameters = problem(rng, missing=missing)
    joint = enumerated(cells, parameters)
    posteriors, _, log_likelihood = posterior(cells, parameters)
    np.testing.assert_allclose(posteriors, joint / joint.sum(axis=1, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(log_likelihood, np.log(joint.sum(axis=1)), atol=1e-10)


def test_many_views_do_not_underflow(rng):
    cells, parameters = problem(rng, n=20, n_views=3)
    faint = [SieveRows(view.rows, view.atoms * 1e-60, None, view.block) for view in cells] * 10
    posteriors, _, log_likelihood = posterior(faint, parameters)
    log_densities = 10 * np.log(enumerated(cells, parameters) / parameters.weights)
    joint = np.log(parameters.weights) + log_densities
    np.testing.assert_allclose(log_likelihood, logsumexp(joint, axis=1) + 30 * np.log(1e-60), rtol=1e-10)
    np.testing.assert_allclose(posteriors, softmax(joint, axis=1), atol=1e-10)


@pytest.mark.parametrize("missing", [False, True])
def test_em_never_lowers_the_likelihood(missing, rng):
    cells, parameters = problem(rng, missing=missing)
    path = []
    for _ in range(30):
        parameters, objective = em_step(cells, parameters)
        path.append(objective)
    assert np.all(np.diff(path) >= -1e-12)
    assert path[-1] > path[0] + 1e-3
    assert parameters.weights.sum() == pytest.approx(1.0)
    for part in parameters.coefficients:
        np.testing.assert_allclose(part.sum(axis=0), 1.0)


def test_a_step_has_a_fixed_point_where_the_likelihood_is_flat(rng):
    """At the maximum, the derivative along every coefficient that is not zero is the same."""
    cells, parameters = problem(rng, k=2)
    best = accelerated_em(lambda m: em_step(cells, m), parameters, 20_000, 1e-9).parameters
    after, _ = em_step(cells, best)
    assert after.minus(best).norm() < 1e-3


def test_extrapolation_reaches_what_plain_em_reaches_in_fewer_steps(rng):
    cells, parameters = problem(rng, k=2)
    slow = parameters
    for _ in range(3000):
        slow, objective = em_step(cells, slow)
    fast = accelerated_em(lambda m: em_step(cells, m), parameters, 600, 1e-6)
    assert fast.objective >= objective - 1e-4
    assert fast.n_iter <= 600


def test_em_ends_where_a_step_is_too_small_for_what_is_asked(rng):
    cells, parameters = problem(rng, k=2)

    def settled(before, after, small=False):
        return moves_little(before, after, 300, 0.05)

    ended = accelerated_em(lambda m: em_step(cells, m), parameters, 600, 0.0, ends=settled)

    assert ended.converged
    assert ended.n_iter < 600
    assert settled(ended.parameters, em_step(cells, ended.parameters)[0])


def test_a_small_gain_is_no_end_before_weights_rest(rng, monkeypatch):
    monkeypatch.setattr("latentviews.mixtures.sieve.PATIENCE", 1000)
    cells, parameters = problem(rng, k=2)
    early, late = (
        accelerated_em(lambda m: em_step(cells, m), parameters, 2000, 1e6, ends=at_rest(300, share))
        for share in (1e6, 1e-4)
    )
    assert early.n_iter == 2  # the gain is called small at once
    assert late.converged
    assert late.n_iter > 2
    assert moves_little(late.parameters, em_step(cells, late.parameters)[0], 300, 1e-3)


def test_a_step_is_judged_by_the_standard_errors_of_weights():
    before, after = (SieveParameters(np.array([0.5 + shift, 0.5 - shift]), ()) for shift in (0.0, 0.01))
    error = np.sqrt(0.51 * 0.49 / 400)
    assert moves_little(before, after, 400, 1.01 * 0.01 / error)
    assert not moves_little(before, after, 400, 0.99 * 0.01 / error)


def test_weights_that_never_rest_are_waited_for_no_longer_than_patience():
    X = make_multiview(10_000, 2, separation=2, random_state=3).X

    model = MultiViewMixture(3, random_state=0).fit(X)

    assert model.converged_
    assert model.n_iter_ < 35 + 4 * PATIENCE


def test_laws_of_chains_need_not_rest():
    before, after = (SieveParameters(np.full((2, 3), share), ()) for share in (0.5, 0.4))
    assert at_rest(400, 1e-3)(before, after, True)
    assert not at_rest(400, 1e-3)(before, after, False)


def test_weights_count_as_repetitions(rng):
    cells, parameters = problem(rng)
    weights = rng.integers(0, 3, size=300)
    rows = np.repeat(np.arange(300), weights)
    repeated = [SieveRows(view.rows[rows], view.atoms, None, view.block) for view in cells]
    one, objective = em_step(cells, parameters, weights.astype(float))
    two, same = em_step(repeated, parameters)
    assert objective == pytest.approx(same)
    assert one.minus(two).norm() < 1e-12


def test_sums_over_parts_give_the_step_over_all(rng):
    cells, parameters = problem(rng)
    halves = [
        [SieveRows(view.rows[part], view.atoms, None, view.block) for view in cells]
        for part in (slice(90), slice(90, None))
    ]
    sums = [a + b for a, b in zip(*(em_sums(half, parameters) for half in halves), strict=True)]
    whole, parts = em_step(cells, parameters), em_update(parameters, sums)
    assert whole[1] == pytest.approx(parts[1])
    assert whole[0].minus(parts[0]).norm() < 1e-12


def test_known_classes_are_kept(rng):
    cells, parameters = problem(rng)
    allowed = np.ones((300, 3))
    allowed[:50] = np.eye(3)[1]
    posteriors, _, _ = posterior(cells, parameters, allowed)
    np.testing.assert_array_equal(posteriors[:50], allowed[:50])


def test_views_of_a_block_share_their_coefficients(rng):
    cells, _ = problem(rng)
    tied = [SieveRows(view.rows, cells[0].atoms, None, 0) for view in cells]
    start = initial_parameters(tied, rng.dirichlet(np.ones(2), size=300))
    assert len(start.coefficients) == 1
    path = []
    for _ in range(20):
        start, objective = em_step(tied, start)
        path.append(objective)
    assert np.all(np.diff(path) >= -1e-12)


def grid_cells(rng, nonlinear):
    """Bins with a Gaussian kernel on each, for nonparametric EM."""
    grid = np.linspace(-6, 6, 80)
    kernel = np.exp(-0.5 * ((grid[:, None] - grid) / 0.5) ** 2) / (0.5 * np.sqrt(2 * np.pi))
    labels = rng.integers(2, size=400)
    smoother = kernel / kernel.sum(axis=1, keepdims=True) if nonlinear else None
    cells = []
    for t in range(3):
        place = np.clip(np.searchsorted(grid, rng.normal(3.0 * labels - 1.5)), 0, 79)
        cells.append(SieveRows(sparse.csr_array(np.eye(80)[place]), kernel, None, t, smoother))
    start = 0.6 * np.eye(2)[labels] + 0.2
    shares = tuple(view.shares(start) / view.shares(start).sum(axis=0) for view in cells)
    return cells, SieveParameters(start.mean(axis=0), shares), labels


def test_the_smoothed_likelihood_never_falls(rng):
    cells, parameters, _ = grid_cells(rng, nonlinear=True)
    path = []
    for _ in range(40):
        parameters, objective = smoothing_step(cells, parameters)
        path.append(objective)
    assert np.all(np.diff(path) >= -1e-10)


@pytest.mark.parametrize("nonlinear", [False, True])
def test_nonparametric_em_finds_separated_classes(nonlinear, rng):
    cells, parameters, labels = grid_cells(rng, nonlinear)
    for _ in range(30):
        parameters, _ = smoothing_step(cells, parameters)
    assert np.mean(posterior(cells, parameters)[0].argmax(axis=1) == labels) > 0.97


def test_rows_that_no_class_explains_leave_numbers(rng):
    cells, parameters = problem(rng)
    atoms = cells[0].atoms.copy()
    atoms[0] = 0.0  # nothing reaches the first cell, and some twenty rows are in it
    cells = [SieveRows(cells[0].rows, atoms, None, 0), *cells[1:]]
    for _ in range(5):
        parameters, objective = em_step(cells, parameters)
    assert np.isfinite(objective)
    assert parameters.weights.sum() == pytest.approx(1)
    first, *others = (part.sum(axis=0) for part in parameters.coefficients)
    np.testing.assert_allclose(others, 1)
    assert np.all((first > 0.5) & (first < 1))  # all but the mass of those rows
