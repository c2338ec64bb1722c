"""Mixtures of columns that have point masses, such as zeros: every way to a fit knows them, and all that it says."""

import matplotlib as mpl
import numpy as np
import pytest
from scipy import sparse, stats
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp

from latentviews import Gaussian, HalfLine, MultiViewMixture, SmoothedEM, diagnose, load, rank_test, save
from latentviews.core.embeddings import BinnedEmbedding
from latentviews.core.features.point_masses import which_mass
from latentviews.core.point_masses import WithPointMasses
from latentviews.densities.weighted_samples import WeightedSample
from latentviews.diagnosis.diagnose import outside_range
from latentviews.mixtures.cells import CodebookBasis, GridBasis, PointMassBasis, ScaledKernel, SieveView, values_basis
from latentviews.mixtures.dependence.choosing import without_points
from latentviews.mixtures.sieve import SieveParameters, em_step, initial_parameters
from latentviews.plot import ComponentDisplay
from latentviews.report import write_report

mpl.use("Agg")

WEIGHTS = np.array([0.5, 0.3, 0.2])
ZEROS = np.array([[0.2, 0.5, 0.7], [0.6, 0.3, 0.2], [0.4, 0.7, 0.3]])  # P(0 | class) of every column
SHAPES = np.array([[2, 9, 22], [12, 3, 28], [4, 20, 10]])  # gamma laws of the others


def zero_inflated(n_rows, rng):
    """Rows, their classes, and the log of their joint density with every class."""
    y = rng.choice(3, size=n_rows, p=WEIGHTS)
    X = rng.gamma(SHAPES[:, y]).T
    X[rng.random(X.shape) < ZEROS[:, y].T] = 0.0
    off = np.log1p(-ZEROS) + stats.gamma.logpdf(np.where(X > 0, X, 1.0)[:, :, None], SHAPES)
    return X, y, np.log(WEIGHTS) + np.where(X[:, :, None] == 0, np.log(ZEROS), off).sum(axis=1)


@pytest.fixture(scope="module")
def data():
    return zero_inflated(2400, np.random.default_rng(0))


@pytest.fixture(scope="module")
def model(data):
    return MultiViewMixture(3, random_state=0).fit(data[0])


def masses_of(model):
    """The point masses found, classes in the order of the truth, (3, 3)."""
    found = np.stack([view.masses[0] for view in model.components_])
    cost = np.abs(found[:, :, None] - ZEROS[:, None, :]).sum(axis=0)
    order = [int(i) for i in match_columns(cost)]
    return found[:, order]


def match_columns(cost):
    """The class found that goes with every true one."""
    found, true = linear_sum_assignment(cost)
    return found[np.argsort(true)]


# --------------------------------------------------------------------------------------------------------- the sieve


def test_a_sieve_with_point_masses_is_that_of_an_indicator_and_of_other_values_that_may_be_missing(rng):
    """p(x | h) = m_h at the mass and (1 - m_h) f_h(x) elsewhere: an indicator, and f_h where it says "elsewhere"."""
    x = np.where(rng.random(200) < 0.4, 0.0, rng.gamma(3.0, size=200))[:, None]
    inside = ScaledKernel(x[x[:, 0] > 0], Gaussian(0.4), 0).basis(1.0)
    codes = (which_mass(x[:, 0], (0.0,)) < 0).astype(float)[:, None]
    table = np.hstack([x, codes, np.where(codes > 0, x, np.nan)])
    together = [SieveView([0], 0, PointMassBasis((0.0,), inside)).cells(table)]
    apart = [
        SieveView([1], 0, values_basis(codes)).cells(table),
        SieveView([2], 1, inside).cells(table),
    ]
    weights, off = np.array([0.3, 0.7]), rng.dirichlet(np.ones(inside.atoms.shape[1]), size=2).T
    mass = np.array([[0.2, 0.6]])
    one = SieveParameters(weights, (np.concatenate([(1 - mass) * off, mass]),))
    two = SieveParameters(weights, (np.concatenate([mass, 1 - mass]), off))

    for _ in range(3):
        (one, reached), (two, expected) = em_step(together, one), em_step(apart, two)

        assert reached == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(one.weights, two.weights, rtol=1e-10)
        np.testing.assert_allclose(one.coefficients[0][-1], two.coefficients[0][0], rtol=1e-10)
        share = one.coefficients[0][:-1] / one.coefficients[0][:-1].sum(axis=0)
        np.testing.assert_allclose(share, two.coefficients[1], rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_first_guess_has_the_same_point_masses_in_any_unit(scale, rng):
    x = np.where(rng.random(500) < 0.4, 0.0, scale * rng.gamma(3.0, size=500))[:, None]
    inside = ScaledKernel(x[x[:, 0] > 0], Gaussian(0.3 * scale), 0).basis(1.0)
    cells = [SieveView([0], 0, PointMassBasis((0.0,), inside)).cells(x)]
    guess = np.full((500, 1), 1.0)

    found = initial_parameters(cells, guess).coefficients[0]

    assert found[-1, 0] == pytest.approx(np.mean(x == 0), abs=0.05)


def test_rows_at_a_point_mass_have_no_part_in_other_cells(rng):
    x = np.array([[0.0], [1.0], [0.0], [2.0]])
    inside = ScaledKernel(x[x[:, 0] > 0], Gaussian(0.5), 0).basis(1.0)
    assert isinstance(inside, GridBasis)

    rows = PointMassBasis((0.0,), inside).cells(x).rows

    assert sparse.issparse(rows)
    np.testing.assert_array_equal(rows.toarray()[:, -1], [1, 0, 1, 0])
    np.testing.assert_array_equal(rows.toarray()[[0, 2], :-1], 0.0)
    np.testing.assert_allclose(rows.toarray().sum(axis=1), 1.0)


# ------------------------------------------------------------------------------------------------------------- fits


def test_zeros_are_found_and_the_fit_is_about_as_good_as_the_truth(model, rng):
    X, y, joint = zero_inflated(4000, rng)

    assert all(isinstance(view, WithPointMasses) and view.values.tolist() == [0.0] for view in model.components_)
    np.testing.assert_allclose(masses_of(model), ZEROS, atol=0.07)  # some three standard errors
    labels = joint.argmax(axis=1)
    order = match_columns(-np.array([[np.sum((model.predict(X) == g) & (y == h)) for h in range(3)] for g in range(3)]))
    assert np.mean(order[y] == model.predict(X)) > np.mean(labels == y) - 0.012
    assert model.score(X) > logsumexp(joint, axis=1).mean() - 0.06


def test_without_point_masses_zeros_are_smoothed(data):
    model = MultiViewMixture(3, point_masses=None, random_state=0).fit(data[0])

    assert all(isinstance(view, BinnedEmbedding) for view in model.components_)


WAYS = {
    "moments": ({"polish": None}, 0.1),
    "the papers' estimate": ({"polish": None, "density_bandwidth": None, "bandwidth": "silverman"}, 0.1),
    "npMSL": ({"polish": SmoothedEM()}, 0.07),
    "npEM": ({"polish": SmoothedEM(nonlinear=False)}, 0.07),
    "half-line": ({"kernel": Gaussian(space=HalfLine())}, 0.07),
    "a pilot": ({"pilot_size": 1200}, 0.07),
    "named": ({"point_masses": [0.0]}, 0.07),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_a_fit_finds_point_masses(way, data):
    options, error = WAYS[way]
    model = MultiViewMixture(3, random_state=0, **options).fit(data[0])

    np.testing.assert_allclose(masses_of(model), ZEROS, atol=error)
    np.testing.assert_allclose([view.mass for view in model.components_], 1.0, atol=0.06)


def test_a_stream_that_is_seen_once_has_point_masses(data):
    model = MultiViewMixture(3, random_state=0)
    for batch in np.split(data[0], 3):
        model.partial_fit(batch)

    np.testing.assert_allclose(masses_of(model), ZEROS, atol=0.1)


def test_missing_values_and_weights_leave_point_masses_right(data, rng):
    X = np.concatenate([data[0], np.zeros((1500, 3))])  # rows that count for nothing, all of them zero
    X[rng.random(X.shape) < 0.1] = np.nan
    weights = np.repeat([1.0, 0.0], [2400, 1500])

    model = MultiViewMixture(3, random_state=0).fit(X, sample_weight=weights)

    np.testing.assert_allclose(masses_of(model), ZEROS, atol=0.08)


def test_other_values_of_many_scales_have_weighted_rows(rng):
    y = rng.integers(2, size=1000)
    X = rng.normal(size=(1000, 3)) * np.where(y[:, None] == 0, 1e-4, 1e4) + 5.0
    X[rng.random(X.shape) < np.where(y[:, None] == 0, 0.6, 0.2)] = 0.0

    model = MultiViewMixture(2, random_state=0).fit(X)

    assert all(isinstance(view.inside, WeightedSample) for view in model.components_)
    assert isinstance(model.polished_.views[0].basis.inside, CodebookBasis)
    masses = np.sort(np.stack([view.masses[0] for view in model.components_]), axis=1)
    np.testing.assert_allclose(masses, [[0.2, 0.6]] * 3, atol=0.08)
    assert max(np.mean(model.predict(X) == y), np.mean(model.predict(X) != y)) > 0.9


# ---------------------------------------------------------------------------------------------------- what it says


def test_draws_are_exactly_zero_as_often_as_rows(model, data):
    rows, labels = model.sample(4000)

    for h in range(3):
        here = np.array([view.masses[0, h] for view in model.components_])
        limit = stats.norm.isf(1e-6) * np.sqrt(here * (1 - here) / np.sum(labels == h))
        assert np.all(abs(np.mean(rows[labels == h] == 0, axis=0) - here) < limit)


def test_one_view_given_the_others_has_point_masses(model, data):
    given = model.conditional(data[0][:200], view=0)

    expected = given.posteriors @ model.components_[0].masses[0]
    np.testing.assert_allclose(given.density([[0.0]])[:, 0], expected)
    assert 0.2 < np.mean(given.sample(0) == 0) < 0.6


def test_a_saved_model_answers_the_same(model, data, tmp_path):
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")

    np.testing.assert_array_equal(again.predict_proba(data[0]), model.predict_proba(data[0]))
    np.testing.assert_array_equal(again.bootstrap(data[0], 2, random_state=0).weights,
                                  model.bootstrap(data[0], 2, random_state=0).weights)  # fmt: skip


def test_diagnose_says_what_is_a_point_mass(model, data):
    found = diagnose(model, data[0], n_permutations=19, random_state=0)

    share = np.mean(data[0][:, 0] == 0)
    assert f"{share:.0%} of column 0 are exactly 0" in found.summary()
    assert "They are treated as point masses of the densities." in found.summary()
    assert all(values.separate for values in found.exact.values())


def test_diagnose_says_where_such_values_are_smoothed(data):
    X = np.hstack([data[0], data[0][::-1]])  # two by two, of different rows
    model = MultiViewMixture(2, views=[[0, 3], [1, 4], [2, 5]], random_state=0).fit(X[:400])

    found = diagnose(model, X[:400], n_permutations=19, random_state=0)

    assert len(found.exact) == 6
    assert not any(values.separate for values in found.exact.values())
    assert "They are smoothed as all others" in found.summary()


def test_point_masses_far_from_all_other_values_are_not_beyond_the_range(data):
    X = np.where(data[0] > 0, data[0] + 500.0, 0.0)
    model = MultiViewMixture(3, polish=None, random_state=0).fit(X)

    assert outside_range(model, X) == {}
    assert outside_range(model, X - 250.0)  # neither the other values nor zeros


def test_classes_are_counted_with_point_masses(data):
    assert rank_test(data[0], random_state=0).n_components == 3


def test_plots_have_stems_beside_curves_of_the_others(model, data):
    display = ComponentDisplay.from_estimator(model, data[0])
    view = display.views[0]

    np.testing.assert_allclose(view.masses, model.components_[0].masses)
    step = view.ticks[0][1] - view.ticks[0][0]
    np.testing.assert_allclose(view.densities.sum(axis=0) * step, model.components_[0].shares, atol=0.03)
    stems = [ax for ax in display.figure_.axes if "exactly 0" in ax.get_ylabel()]
    assert len(stems) == 3
    bars = sum(bar.get_height() * bar.get_width() for bar in display.axes_[0].patches)
    assert bars == pytest.approx(np.mean(data[0][:, 0] > 0), abs=0.02)


def test_reports_say_how_much_of_a_class_is_exactly_zero(model, data, tmp_path):
    page = write_report(model, data[0][:600], tmp_path / "report.html").read_text()

    assert "Stems stand at values that many rows have exactly" in page
    assert f"Exactly 0: {100 * model.components_[0].masses[0, 0]:.1f}\xa0% of class 0" in page
    assert "treated as point masses" in page


# ------------------------------------------------------------------------------------------------------- dependence


def test_copulas_are_compared_by_one_measure(rng):
    """Columns that depend inside classes, with zeros: the spike of a point mass must not decide."""
    y = rng.choice(3, 900, p=WEIGHTS)
    means = np.array([[1.5, -0.5, 3.0], [-0.5, 2.5, 1.0], [3.0, 1.0, -0.5]])[y]
    logs = means + 0.9 * rng.normal(size=(900, 1)) + 0.35 * rng.normal(size=(900, 3))
    X = np.arcsinh(np.maximum(np.exp(logs) - 0.8, 0.0))

    model = MultiViewMixture(3, dependence="auto", random_state=0).fit(X)

    assert model.dependence_choice_.taken == "copula"
    assert model.dependence_choice_.copula > model.dependence_choice_.independence


def test_point_masses_are_spread_where_ways_are_compared(rng):
    table = rng.normal(size=(200, 2))
    table[:80, 0] = 0.0
    table[5, 1] = np.nan

    spread = without_points(table, ([0], [1]))

    np.testing.assert_array_equal(spread[:, 1], table[:, 1])
    np.testing.assert_array_equal(spread[80:, 0], table[80:, 0])
    assert len(np.unique(spread[:80, 0])) == 80
    assert np.abs(spread[:80, 0]).max() < 1.0


@pytest.mark.parametrize("given", ["zeros", 0.0, [], ["0"], [np.nan]])
def test_point_masses_are_a_list_of_numbers(given, data):
    with pytest.raises(ValueError, match='point_masses must be "auto", None or a list of numbers such as'):
        MultiViewMixture(3, point_masses=given).fit(data[0])
