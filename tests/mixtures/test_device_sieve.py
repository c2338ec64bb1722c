"""Steps of EM on rows of another array library are those on NumPy's."""

import array_api_strict
import numpy as np
import pytest

from latentviews import Gaussian
from latentviews._arrays import to_numpy
from latentviews.core.features.device_bins import device_bins
from latentviews.core.kernels.discrete import Delta
from latentviews.densities.codebooks import fit_codebook
from latentviews.densities.power_scales import power_scale
from latentviews.mixtures.cells import (
    BentBasis,
    CodebookBasis,
    PointBasis,
    PointMassBasis,
    SieveView,
    SubspaceBasis,
    basis_rule,
)
from latentviews.mixtures.sieve import em_sums, initial_parameters

pytestmark = pytest.mark.cheap


@pytest.fixture
def table(rng):
    labels = rng.integers(0, 2, size=(80, 1))
    rows = np.concatenate([rng.normal(size=(80, 4)) + 3 * labels, labels + rng.integers(0, 2, size=(80, 1))], axis=1)
    rows[:20, 0] = 0.0
    return rows


@pytest.fixture
def views(table, rng):
    codebook = CodebookBasis(fit_codebook(table[:, 1:3], 5, rng))
    inside = CodebookBasis(fit_codebook(table[:, 2:4].sum(axis=1, keepdims=True), 4, rng))
    scale = power_scale(table[:, 1:4])
    bent = BentBasis(scale, CodebookBasis(fit_codebook(scale.bent(table[:, 1:4])[0], 5, rng)))
    column = PointBasis(np.linspace(-3, 6, 12)[:, None], Gaussian(0.8))
    return (
        SieveView([0], 0, column),
        SieveView([1, 2], 1, codebook),
        SieveView([4], 2, PointBasis(np.array([[0.0], [1.0], [2.0]]), Delta())),
        SieveView([2, 3], 3, SubspaceBasis(np.ones((2, 1)), inside)),
        SieveView([1, 2, 3], 4, bent),
    )


@pytest.mark.parametrize("missing", [False, True])
def test_a_step_on_rows_elsewhere_is_that_on_rows_here(table, views, missing, rng):
    if missing:
        table[3:7, 1] = np.nan
    cells = [view.cells(table) for view in views]
    parameters = initial_parameters(cells, rng.dirichlet([1, 1], size=80))
    weights, allowed = rng.random(80), rng.random((80, 2)) < 0.9

    there = [view.cells(array_api_strict.asarray(table)) for view in views]
    expected = em_sums(cells, parameters, weights, allowed)

    assert any(isinstance(view.rows, array_api_strict._array_object.Array) for view in there)
    for ours, theirs in zip(em_sums(there, parameters, weights, allowed), expected, strict=True):
        np.testing.assert_allclose(to_numpy(ours), theirs, rtol=1e-12, atol=1e-14)


def test_a_step_on_counted_bins_is_that_on_sparse_ones(table, rng):
    grid = basis_rule(table[20:, :1], Gaussian(1.0), 2, 0).basis(1.5)
    view = SieveView([0], 0, PointMassBasis((0.0,), grid))
    here = view.cells(table)
    bins = device_bins(table[:, 0], grid.points[:, 0]).beside(np.where(table[:, 0] == 0, 0, -1), 1)
    there = type(here)(bins, here.atoms, log_units=here.log_units)
    parameters = initial_parameters([here], rng.dirichlet([1, 1], size=80))

    for ours, theirs in zip(em_sums([there], parameters), em_sums([here], parameters), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)
