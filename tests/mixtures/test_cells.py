"""What the cells of a sieve are made of: a grid, values, landmarks, Gaussians of a codebook."""

import inspect

import numpy as np
import pytest

from latentviews import Delta, Gaussian, MultiViewMixture, VonMises
from latentviews.metrics import adjusted_rand
from latentviews.mixtures.cells import (
    Basis,
    BentBasis,
    CodebookBasis,
    GridBasis,
    PointBasis,
    ScaledKernel,
    SieveView,
    basis_rule,
    view_of_kernel,
)

RULES = {  # a new basis is added here: columns, the kernel of the view, the basis that it gets, whether it has a width
    "grid": (1, Gaussian(), GridBasis, True),
    "values": (1, Delta(), PointBasis, False),
    "landmarks": (2, VonMises(), PointBasis, True),
    "codebook": (2, Gaussian(), CodebookBasis, False),
    "bent columns": (3, Gaussian(), BentBasis, False),
}


@pytest.fixture(params=RULES)
def rule(request, rng):
    """Rows of a view, its rule, and what is expected of it."""
    n_columns, kernel, kind, has_width = RULES[request.param]
    x = rng.vonmises(0.5, 2.0, size=(600, n_columns))
    x = np.round(x) if kernel.space.finite else x
    return x, basis_rule(x, kernel, 2, 0), kind, has_width


def test_every_basis_has_the_same_surface(rule):
    x, rule, kind, has_width = rule
    basis = rule.basis(1.5)
    assert type(basis) is kind
    assert rule.has_width == has_width
    assert basis.points.shape[1] == x.shape[1]
    assert list(inspect.signature(basis.cells).parameters) == ["x"]
    assert {name for name in vars(Basis) if not name.startswith("_")} <= set(dir(basis))


def test_only_bases_with_a_width_follow_the_factor(rule):
    x, rule, _, has_width = rule
    narrow, wide = (rule.basis(factor).cells(x) for factor in (1.0, 3.0))
    even = np.full((narrow.size, 1), 1 / narrow.size)
    same = narrow.size == wide.size and np.array_equal(narrow.density(even), wide.density(even))
    assert same != has_width


def test_cells_are_the_densities_of_the_basis(rule, rng):
    """Σ_b a_b p_b(x) in cells, for coefficients that sum to one, is a density: its mean ratio to another's is one."""
    x, rule, kind, _ = rule
    basis = rule.basis(2.0)
    cells = basis.cells(x)
    found = np.log(cells.density(np.eye(cells.size)[:, :2])) + np.reshape(cells.log_units, (-1, 1))
    if kind is CodebookBasis:
        expected = basis.codebook.log_densities(x)[:, :2]
    elif kind is BentBasis:
        rows, log_slopes = basis.scale.bent(x)
        expected = basis.inside.codebook.log_densities(rows)[:, :2] + log_slopes[:, None]
    elif kind is PointBasis:
        expected = np.log(np.maximum(basis.kernel.gram(x, basis.points[:2]), 1e-100))
    else:
        grid = basis.points[:, 0]
        expected = np.log(np.maximum(basis.atoms[:, [0, 1]].toarray(), 1e-100))
        inside = np.abs(x[:, 0] - grid[np.abs(x - grid).argmin(axis=1)])
        assert inside.max() <= (grid[1] - grid[0]) / 2 + 1e-12
        expected = np.log(
            np.maximum([[np.interp(v, grid, np.exp(column)) for column in expected.T] for v in x[:, 0]], 1e-100)
        )
    likely = expected > expected.max() - 20
    np.testing.assert_allclose(found[likely], expected[likely], atol=1e-6)


def test_rows_without_the_view_say_nothing(rule):
    x, rule, _, _ = rule
    gaps = x.copy()
    gaps[::3, -1] = np.nan
    view = SieveView(list(range(x.shape[1])), 1, rule.basis(1.5))
    whole, some = view.cells(x), view.cells(gaps)
    coefficients = np.full((whole.size, 1), 1 / whole.size)
    assert whole.present is None
    assert whole.block == some.block == 1
    here = np.arange(len(x)) % 3 != 0
    np.testing.assert_array_equal(some.present, here)
    np.testing.assert_array_equal(some.density(coefficients)[~here], 1.0)
    np.testing.assert_array_equal(np.broadcast_to(some.log_units, len(x))[~here], 0.0)
    np.testing.assert_allclose(some.density(coefficients)[here], whole.density(coefficients)[here])


def test_views_of_older_files_are_the_same_views(rule):
    x, rule, kind, _ = rule
    if kind is BentBasis:
        return  # of which older files have none
    basis, columns = rule.basis(1.5), list(range(x.shape[1]))
    parts = {
        GridBasis: lambda: (basis.points, basis.kernel, basis.atoms),
        PointBasis: lambda: (basis.points, basis.kernel, None),
        CodebookBasis: lambda: (basis.points, basis.codebook, None),
    }[kind]()
    old = view_of_kernel(columns, 1, *parts)
    assert type(old.basis) is kind
    here, there = SieveView(columns, 1, basis).cells(x), old.cells(x)
    even = np.full((here.size, 1), 1 / here.size)
    np.testing.assert_array_equal(here.density(even), there.density(even))
    np.testing.assert_array_equal(here.log_units, there.log_units)


def test_one_real_column_of_many_scales_has_a_codebook(rng):
    x = rng.normal(size=(900, 1)) * 10.0 ** rng.integers(-4, 4, size=(900, 1))
    assert isinstance(basis_rule(x, Gaussian(), 3, 0).basis(1.0), CodebookBasis)


def test_few_rows_of_skewed_columns_are_told_apart_as_their_logarithms_are(rng):
    """Eight Gaussians a view do not follow the tails of ten log-normal columns, but do follow ten normal ones."""
    labels = rng.integers(2, size=500)
    logs = rng.normal(size=(500, 30)) + labels[:, None]
    model = MultiViewMixture(2, views=[list(range(first, first + 10)) for first in (0, 10, 20)], random_state=0)
    of_logs, skewed = (
        adjusted_rand(labels, model.fit(rows).polished_.posteriors(rows).argmax(axis=1))
        for rows in (logs, np.exp(1.3 * logs))
    )
    assert skewed > of_logs - 0.08


def test_kernels_are_as_wide_as_asked_for():
    x = np.linspace(0, 1, 50)[:, None]
    assert ScaledKernel(x, Gaussian(0.1), 0).basis(2.0).kernel.bandwidth == pytest.approx(0.2)
