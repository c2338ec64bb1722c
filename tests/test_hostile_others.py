"""Hostile and unlucky input of other kinds than tables of numbers, and odd arguments: a test for every fault found."""

import warnings
import zlib
from itertools import combinations
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import catalogue
from fuzz.fits import run_case
from fuzz.verdicts import Judge
from latentviews import (
    ConditionalEmbedding,
    Copulas,
    CrowdLabels,
    DoublyStochasticClassifier,
    DoublyStochasticPCA,
    DriftMonitor,
    Embedding,
    Gaussian,
    HalfLine,
    HSICSelector,
    Interval,
    KernelICA,
    LandmarkFeatures,
    LandmarkPCA,
    LatentClass,
    Linear,
    LowRankDensity,
    MultiViewMixture,
    OneHotFeatures,
    PredictiveStateModel,
    Real,
    SignedTrain,
    TensorSketchFeatures,
    TopicModel,
    TransformedDensity,
    VonMises,
    WhitenScale,
    WrappedGaussian,
    distal_outcome,
    global_alignment_gram,
    independence_test,
    spectrum_gram,
    two_sample_test,
    weisfeiler_lehman_gram,
)
from latentviews._numbers import TINY, thin_svd
from latentviews.comparison.selection import _unit_features
from latentviews.core.embeddings import BinnedEmbedding, domain_of
from latentviews.core.features.bins import GridFeatures, linear_bins
from latentviews.core.features.point_masses import PointMassFeatures
from latentviews.core.kernels import bandwidths
from latentviews.core.selection import RankTest
from latentviews.core.views import Views
from latentviews.core.whitening import _scales
from latentviews.densities.reestimation import reestimate
from latentviews.densities.shapes import held_out_shares
from latentviews.densities.smoothers import calibrated, weighted_samples
from latentviews.discrete.blockmodels import on_simplex
from latentviews.joint.margins import _mirrored_normal, spanning
from latentviews.mixtures.dependence.few_rows import FewRows
from latentviews.plot.view_densities import _limits
from latentviews.report import write_report
from latentviews.report.figures import spectrum_figure
from latentviews.sequences.independence import PairProducts
from latentviews.sequences.two_stage import BilinearDynamics
from test_hostile import judged, two_classes


@pytest.mark.cheap
@pytest.mark.parametrize("weight", [1e-200, 1e3, 1e100])
def test_a_crowd_with_weights_of_any_size_has_probabilities_of_spammers(weight):
    answers = [(task, worker, (task + (worker == 3)) % 2) for task in range(12) for worker in range(4)]

    model = judged(CrowdLabels().fit, pd.DataFrame(answers), sample_weight=np.full(len(answers), weight))

    assert np.all((model.spammer_probability_ >= 0) & (model.spammer_probability_ <= 1))


@pytest.mark.cheap
def test_weights_of_answers_are_repeated_answers_where_workers_are_judged():
    rng = np.random.default_rng(0)
    answers = [(t, w, int(t % 2 if rng.random() < 0.8 else rng.integers(2))) for t in range(20) for w in range(4)]

    weighted = CrowdLabels().fit(pd.DataFrame(answers), sample_weight=np.full(len(answers), 2.0))
    near = CrowdLabels().fit(pd.DataFrame(answers), sample_weight=np.full(len(answers), 1.0 + 1e-12))
    plain = CrowdLabels().fit(pd.DataFrame(answers))

    np.testing.assert_allclose(near.spammer_probability_, plain.spammer_probability_, rtol=1e-8)
    assert np.all(weighted.spammer_probability_ < plain.spammer_probability_)


@pytest.mark.cheap
def test_gaussians_far_narrower_than_numbers_reach_see_rows_as_infinitely_far():
    rows = np.arange(1.0, 7.0).reshape(3, 2)

    np.testing.assert_array_equal(judged(Gaussian(1e-200).correlation, rows, rows), np.eye(3))
    assert np.isfinite(judged(Gaussian(1e-200).correlation, 1e149 * rows, rows)).all()
    single = (1e-3 * rows).astype(np.float32)
    np.testing.assert_array_equal(judged(Gaussian(1e-60).correlation, single, single), np.eye(3))


@pytest.mark.cheap
def test_gaussians_far_wider_than_an_interval_are_uniform_there():
    rows = np.linspace(0, 1, 6).reshape(3, 2)

    for width in (1e3, 1e300):
        gram = judged(Gaussian(width, space=Interval(0, 1)).gram, rows, rows)

        np.testing.assert_allclose(gram, np.ones((3, 3)), rtol=1e-14)


def test_scores_of_rows_far_away_come_without_warnings():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    model = PredictiveStateModel(horizon=1, random_state=0).fit(rows)

    assert judged(model.score, np.full((3, 2), 1e149)) < -1e290


@pytest.mark.parametrize(
    ("estimator", "sentence"),
    [
        (PredictiveStateModel(features=HSICSelector()), "features must learn from rows alone; HSICSelector needs a t"),
        (TransformedDensity(LowRankDensity(), HSICSelector()), "transformer must learn from rows alone; HSICSelector"),
    ],
    ids=["features", "transformer"],
)
def test_what_needs_a_target_is_refused_where_there_is_none(estimator, sentence, rng):
    with pytest.raises(TypeError, match=sentence):
        estimator.fit(rng.normal(size=(50, 3)))


def test_a_target_of_text_is_refused_in_a_sentence(rng):
    with pytest.raises(ValueError, match="y must hold real numbers"):
        ConditionalEmbedding().fit(rng.normal(size=(4, 2)), ["a", "b", "a", "b"])


def test_classes_of_huge_numbers_are_refused_without_a_warning(rng):
    judge = Judge()
    judge.call(
        "fit", DoublyStochasticClassifier(random_state=0).fit, rng.normal(size=(9, 2)), 1e300 * np.arange(9.5, 18)
    )

    assert judge.faults == []
    assert "Unknown label type" in judge.refusals[0]


def test_a_pilot_without_a_complete_row_is_a_sentence():
    with pytest.raises(ValueError, match="needs rows without missing values"):
        bandwidths.resolve("isj", np.zeros((0, 1)))


@pytest.mark.cheap
def test_views_that_do_not_depend_at_all_are_drawn():
    pair, nothing = (0, 1), np.zeros(4)
    test = RankTest(n_components=1, spectra={pair: nothing}, nulls={pair: nothing}, thresholds={pair: 0.0})

    assert "0 of 4 lie above" in str(judged(spectrum_figure, test, ["a", "b"]))


@pytest.mark.cheap
@pytest.mark.parametrize(
    ("function", "value"),
    [
        (spectrum_gram, []),
        (spectrum_gram, "ACGT"),
        (spectrum_gram, None),
        (weisfeiler_lehman_gram, []),
        (weisfeiler_lehman_gram, nx.path_graph(3)),
        (weisfeiler_lehman_gram, None),
    ],
)
def test_kernels_of_objects_say_what_they_take(function, value):
    with pytest.raises(ValueError, match=r"takes a list of .*, at least one; got"):
        function(value)


@pytest.mark.cheap
@pytest.mark.parametrize("kernel", [VonMises, WrappedGaussian])
@pytest.mark.parametrize("width", [1e-7, 1e-200])
def test_narrow_kernels_on_the_circle_are_gaussians(kernel, width):
    angles = np.array([[0.0, 1.0], [width, 1.0], [2.0, 4.0]])

    found = judged(kernel(width).correlation, angles, angles)

    np.testing.assert_allclose(found[0], [1.0, np.exp(-0.5) if width > 1e-15 else 1.0, 0.0], rtol=1e-6)
    assert np.isfinite(judged(kernel(width).gram, angles, angles)).all()
    with pytest.raises(ValueError, match="need a bandwidth of at least 1e-05; got"):
        kernel(width).frequencies(3, 2, np.random.default_rng(0))


@pytest.mark.cheap
def test_a_narrow_von_mises_law_has_the_frequencies_of_a_gaussian():
    chances = [kernel(1e-4 * 1.01)._chances() for kernel in (VonMises, WrappedGaussian)]
    reach = min(map(len, chances)) // 2
    von_mises, gaussian = (one[len(one) // 2 - reach : len(one) // 2 + reach + 1] / one.sum() for one in chances)

    np.testing.assert_allclose(von_mises, gaussian, rtol=0, atol=1e-6 * gaussian.max())


def test_a_kernel_without_a_height_is_refused_in_a_test(rng):
    with pytest.raises(ValueError, match="is inf on these rows, too high for its powers to be numbers"):
        two_sample_test(rng.normal(size=(20, 6)), rng.normal(size=(20, 6)), kernel=Gaussian(1e-200))
    with pytest.raises(ValueError, match=r"is 3.99e.199 on these rows, too high for its powers to be numbers"):
        two_sample_test(rng.normal(size=(20, 1)), rng.normal(size=(20, 1)), kernel=Gaussian(1e-200))
    with pytest.raises(ValueError, match="on these rows, too high for its powers to be numbers"):
        independence_test(np.append(rng.normal(size=20), 1e100), rng.normal(size=21), kernel=Linear())


def test_a_view_that_one_row_has_is_smoothed(rng):
    rows = np.where(rng.random((150, 1)) < 2, np.nan, 0.0)
    rows[7] = 0.3
    half = np.arange(150) % 2 == 0
    halves = np.flatnonzero(half), np.flatnonzero(~half)
    domain = Real().quadrature(rng.normal(size=(50, 1)), 1.0, rng)

    found = judged(weighted_samples, rows, np.full((150, 2), 0.5), halves, domain, rng)

    assert np.isfinite(found.density(np.array([[0.3]]))).all()


def test_shares_are_calibrated_where_almost_all_rows_are_one(rng):
    rows = np.where(np.arange(40)[:, None] < 38, 1e-310 * rng.normal(size=(40, 2)), rng.normal(size=(40, 2)))

    shares = judged(calibrated, np.full((20, 2), 0.05), np.arange(20, 40), rows, np.full((40, 2), 0.5))

    np.testing.assert_allclose(shares.sum(axis=0), 1.0)


def test_a_map_that_is_not_linear_is_refused_before_anything_is_fitted_to_it(rng):
    class Never(LowRankDensity):
        def fit(self, X, y=None, sample_weight=None):
            raise AssertionError

    with pytest.raises(TypeError, match="need a linear, invertible transformer"):
        TransformedDensity(Never(), LandmarkFeatures(n_landmarks=10, random_state=0)).fit(rng.normal(size=(20, 6)))


def test_perplexity_of_no_words_is_a_sentence():
    model = TopicModel(2, concentration=1.0, random_state=0).fit(catalogue.COUNTS)

    with pytest.raises(ValueError, match="Perplexity is of words, and X holds none"):
        model.perplexity(np.zeros((2, 4)))


@pytest.mark.cheap
def test_axes_of_densities_that_are_nowhere_on_the_grid_are_those_of_the_grid():
    domain = Real().quadrature(np.arange(5.0)[:, None], 1.0, np.random.default_rng(0))

    ((low, high),) = judged(_limits, domain, np.zeros(len(domain.nodes)))

    assert low < domain.nodes.min() < domain.nodes.max() < high


@pytest.mark.cheap
def test_mirrored_normal_laws_are_zero_far_away():
    density, below = judged(_mirrored_normal, HalfLine(), np.array([[1e149]]), np.zeros((1, 1)), np.full((1, 1), 1e-9))

    assert density == 0
    assert below == 1


def test_classes_narrower_than_the_grid_of_their_mass_have_densities():
    class Narrow(Embedding):
        _positive_mass = np.array([TINY])

        def _values(self, x):
            return np.full((len(x), 1), 1e9)

    narrow = Narrow(Real().quadrature(np.zeros((1, 1)), 1.0, np.random.default_rng(0)), None, np.ones((1, 1)))

    assert 690 < judged(narrow.log_density, np.zeros((1, 1))) < 691


def test_a_selector_takes_targets_of_any_size_without_a_warning(rng):
    rows = rng.normal(size=(40, 3))

    selector = judged(HSICSelector(1).fit, rows, 1e100 * rows[:, 1])

    np.testing.assert_array_equal(selector.get_support(), [False, True, False])


def test_a_pilot_of_one_value_does_not_end_the_interpreter(rng):
    rows = rng.integers(0, 2, size=(250, 5)).astype(float)
    rows[:, 0] = np.arange(250) < 3  # few rows differ, and no pilot of three has one of them

    with pytest.raises(ValueError, match="has one value in the 3 rows of the pilot"):
        MultiViewMixture(2, dependence=Copulas(n_starts=1), pilot_size=3, random_state=0).fit(rows)


@pytest.mark.cheap
def test_values_and_grids_that_are_no_numbers_have_a_place_on_a_grid():
    bins = linear_bins(np.array([np.nan, 0.5]), np.linspace(0, 1, 4))
    none = linear_bins(np.array([0.5]), np.full(4, np.nan))

    assert bins.indices.tolist() == [0, 1, 1, 2]
    assert none.indices.tolist() == [0, 1]


@pytest.mark.cheap
@pytest.mark.parametrize("values", [None, "x", [np.nan], 3])
def test_point_masses_say_what_they_take(values):
    with pytest.raises(ValueError, match="values must be a list of finite numbers"):
        PointMassFeatures(values=values).fit(np.arange(5.0)[:, None])


@pytest.mark.cheap
def test_answers_that_are_lists_are_refused():
    with pytest.raises(ValueError, match=r"names or numbers .unhashable type: 'list'.; pass tuples for lists"):
        CrowdLabels().fit(([0, 0], [0, 1], [["a"], ["b"]]))


@pytest.mark.cheap
def test_states_far_away_are_drawn_in():
    identity = np.concatenate([np.zeros((2, 2)), np.eye(2), np.zeros((2, 2))])
    dynamics = SimpleNamespace(project=np.zeros((1, 1)), weights=identity, limit=5.0)

    moved = judged(BilinearDynamics.step, dynamics, np.array([[3e200, 4e200]]), np.zeros((1, 1)))

    np.testing.assert_allclose(moved, [[3.0, 4.0]])


def test_kernels_that_leave_columns_out_are_refused(rng):
    with pytest.raises(ValueError, match="must take each of its 3"):
        LowRankDensity(2, method=SignedTrain(), kernel=Gaussian(0.7).on([0])).fit(rng.normal(size=(40, 3)))


def test_a_selector_takes_columns_that_its_kernel_cannot_tell_apart(rng):
    rows = rng.normal(size=(40, 3))
    rows[:, 1] = 1 + 1e-15 * rng.integers(0, 2, size=40)

    assert np.isfinite(judged(HSICSelector(1, kernel=Gaussian(0.7)).fit, rows, np.arange(40) % 2).scores_).all()


def test_densities_that_cannot_be_drawn_from_say_so(rng):
    model = TransformedDensity(DriftMonitor(5, n_landmarks=20, random_state=0)).fit(rng.normal(size=(40, 2)))

    with pytest.raises(TypeError, match="density must be an object with a method `sample`"):
        model.sample()


def test_topics_of_words_that_nobody_used_are_shares():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TopicModel(2, concentration=1.0, random_state=0).partial_fit(np.zeros((9, 1)))

    np.testing.assert_array_equal(model.components_, np.ones((2, 1)))


@pytest.mark.cheap
def test_quantiles_of_a_component_without_mass_are_numbers():
    class Nowhere(Embedding):
        def _values(self, x):
            return np.zeros((len(x), 1))

    nowhere = Nowhere(Real().quadrature(np.zeros((1, 1)), 1.0, np.random.default_rng(0)), None, np.ones((1, 1)))

    assert np.isfinite(judged(nowhere.marginal, 0)[1]).all()


@pytest.mark.cheap
def test_a_decomposition_that_does_not_converge_is_made_by_the_slower_algorithm(monkeypatch):
    def fails(*_, **__):
        raise np.linalg.LinAlgError("SVD did not converge")

    matrix = np.random.default_rng(0).normal(size=(5, 3))
    quick = thin_svd(matrix)
    monkeypatch.setattr(np.linalg, "svd", fails)
    left, values, right = thin_svd(matrix)

    np.testing.assert_allclose(values, quick[1], rtol=1e-12)
    np.testing.assert_allclose((left * values) @ right, matrix, rtol=1e-12)


@pytest.mark.cheap
def test_a_grid_of_one_point_again_and_again_takes_values_without_a_warning():
    assert judged(linear_bins, np.array([1.0, 2.0]), np.ones(3)).indices.tolist() == [0, 1, 1, 2]


@pytest.mark.cheap
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_texts_in_place_of_counts_are_told_what_makes_counts(method):
    with pytest.raises(ValueError, match="takes a table of counts, documents by words; got text"):
        getattr(TopicModel(2), method)([["some", "words"], ["more", "words"]])


def test_a_kernel_pca_is_a_map_beside_point_masses(rng):
    rows = np.where(rng.random((60, 1)) < 0.2, 0.0, rng.normal(size=(60, 1)))

    phi = judged(PointMassFeatures(LandmarkPCA(2, n_landmarks=20), values=(0.0,)).fit_transform, rows)

    assert phi.shape == (60, 3)
    np.testing.assert_array_equal(phi[:, 2] > 0, rows[:, 0] == 0)


def test_a_class_without_a_row_in_a_view_has_there_what_all_rows_have(rng):
    shares = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    rows = np.array([[0.0], [1.0], [2.0]])
    views = Views([[0]], (GridFeatures(np.linspace(-2, 4, 64), Gaussian(0.5)),))

    _, (law,) = judged(reestimate, rows, shares, views, [0], [None])

    np.testing.assert_allclose(law.weights[:, 1], law.weights[:, 0], rtol=1e-12)


@pytest.mark.cheap
def test_shares_of_densities_for_a_class_without_a_row(rng):
    shares = judged(held_out_shares, rng.random((2, 9, 3)), np.array([np.ones(9), np.zeros(9)]))

    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.cheap
def test_the_width_of_tiny_values_is_that_of_others_in_another_unit(rng):
    x = rng.integers(0, 2, size=(20, 1)).astype(float)

    np.testing.assert_allclose(judged(bandwidths.cv, 1e-300 * x), 1e-300 * bandwidths.cv(x), rtol=1e-12)
    assert judged(bandwidths.cv, np.array([[0.0]] * 4 + [[1e-310]] * 4 + [[1.0]])) > 1e-3


@pytest.mark.cheap
def test_latent_classes_of_columns_with_one_name_are_refused():
    frame = pd.DataFrame(np.ones((5, 3)), columns=["a", "b", "a"])

    with pytest.raises(ValueError, match="columns of different names; 'a' occurs more than once"):
        LatentClass(2).fit(frame)


def test_answers_that_classes_hold_impossible_have_finite_residuals(rng):
    items = rng.normal(size=(40, 3))  # every answer is a category of its own
    model = LatentClass(2, n_starts=2, tol=1.0, random_state=0).fit(items)

    quality = judged(model.goodness_of_fit, rng.permuted(items, axis=0))

    assert np.isfinite(quality.g_squared)
    assert np.isfinite(quality.bivariate_residuals[~np.eye(3, dtype=bool)]).all()


@pytest.mark.cheap
def test_an_outcome_without_a_square_is_refused():
    with pytest.raises(ValueError, match=r"Column 'outcome' holds 1e.300, whose square is no number; scale the column"):
        distal_outcome(np.tile(np.eye(2), (4, 1)), [1e300, *range(7)])


@pytest.mark.cheap
def test_series_of_nearly_equal_steps_have_alignments():
    series = np.zeros((3, 4))
    series[0, 0] = 1e-190

    gram = judged(global_alignment_gram, series, bandwidth=1e-200)

    assert np.isfinite(gram).all()
    assert gram[1, 2] == pytest.approx(1.0)


@pytest.mark.cheap
def test_a_class_without_mass_has_a_density_and_no_kernels():
    grid = np.linspace(0, 1, 16)
    weights, rng = np.column_stack([np.full(16, 1 / 16), np.zeros(16)]), np.random.default_rng(0)
    domain = Real().quadrature(grid[:, None], np.array([0.2]), rng, 0.0)
    law = BinnedEmbedding(domain, grid, weights, Gaussian(0.2), np.array([0.2, 0.2]))

    densities, parameters = judged(law.log_density, grid), judged(lambda: law.n_parameters)

    assert np.isfinite(densities).all()
    assert parameters[1] == 0


def test_frequencies_beyond_single_precision_are_told_in_a_sentence(rng):
    model = DoublyStochasticPCA(2, kernel=Gaussian(1e-200), random_state=0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = (
            "too large for these features in float32; scale the columns|kernel is zero between all rows"  # by processor
        )
        with pytest.raises(ValueError, match=said):
            model.fit(rng.normal(size=(80, 5)).astype(np.float32))


@pytest.mark.parametrize("dependence", [None, "copula"])
def test_a_pilot_without_weight_is_refused(dependence, rng):
    weights = np.zeros(60)
    weights[-1] = 1.0
    model = MultiViewMixture(2, dependence=dependence, pilot_size=3, random_state=0)

    with pytest.raises(ValueError, match="All 3 rows of the pilot have the weight zero; take a larger pilot_size"):
        model.fit(rng.normal(size=(60, 3)), sample_weight=weights)


def test_densities_of_single_precision_may_be_of_huge_numbers(rng):
    x = np.append(rng.normal(size=40), [1e30, 1e30]).astype(np.float32)[:, None]

    domain = judged(domain_of, Gaussian(1.0), x, rng, 0.0)

    assert np.isfinite(domain.spread).all()


def test_folds_that_vary_by_nothing_that_has_a_square_take_the_ends_of_the_table():
    table = np.array([[0.0], [1e-310], [0.0], [2.0]])

    np.testing.assert_array_equal(spanning(table[:3], table, [0]), [[0.0], [1e-310], [0.0], [0.0], [2.0]])
    np.testing.assert_array_equal(spanning(table[1:], table, [0]), table[1:])


def test_text_has_no_density_in_its_units():
    rows = np.array([["x", "y"], ["y", "x"]] * 10, dtype=object)
    model = TransformedDensity(LowRankDensity(), LatentClass(2, n_starts=2, random_state=0))

    with pytest.raises(ValueError, match="X, whose density is asked for in its own units, must hold real numbers"):
        model.fit(rows)


@pytest.mark.parametrize("model", [KernelICA(2, random_state=0), WhitenScale()], ids=repr)
def test_text_is_no_source(model, rng):
    model.fit(rng.exponential(size=(80, 2)))

    with pytest.raises(
        ValueError, match=r"(X|Sources) must hold real numbers, NaN where one is missing; got a ndarray that"
    ):
        model.inverse_transform(np.array([["x", "y"]]))


def test_components_explain_no_more_than_there_is():
    _, judge = run_case("LandmarkPCA", [200, 357, zlib.crc32(b"LandmarkPCA")])  # rows that are as good as equal

    assert judge.faults == []


def test_narrow_kernels_beside_a_border_are_counted_in_their_height():
    rows = np.random.default_rng(0).random((60, 3))
    model = LandmarkPCA(2, kernel=Gaussian("median", space=HalfLine()), n_landmarks=20, random_state=0).fit(rows)
    narrow = judged(clone(model).fit, 2.0**-400 * rows)

    np.testing.assert_allclose(narrow.explained_variance_ratio_, model.explained_variance_ratio_, rtol=1e-6)
    assert np.isfinite(judged(narrow.transform, 2.0**-400 * rows)).all()


@pytest.mark.parametrize("model", [LatentClass(2, n_starts=2), TopicModel(2), LandmarkFeatures()], ids=repr)
def test_infinities_of_both_signs_are_no_warnings(model):
    rows = np.array([[np.inf, 1.0, 2.0], [-np.inf, 2.0, 1.0]] * 10, dtype=np.float32)

    with np.errstate(all="raise"), pytest.raises(ValueError, match="infinity"):
        model.fit(rows)


def test_a_report_on_topics_whose_kernel_does_not_smooth_says_so(rng, tmp_path):
    rows = two_classes(rng, d=6)
    model = TopicModel(2, views=list(range(6)), kernel=Linear(), random_state=0).fit(rows)

    page = judged(write_report, model, rows, tmp_path / "report.html").read_text()

    assert "has no densities: its kernel does not smooth" in page


@pytest.mark.parametrize("name", ["bandwidth", "density_bandwidth"])
@pytest.mark.parametrize("width", [1e-300, 1e300, [1.0, 1e-200]], ids=str)
def test_a_bandwidth_without_a_square_is_refused(name, width, rng):
    with pytest.raises(ValueError, match=rf"{name} must be a number from 1e-150 to 1e\+150; got .*1e"):
        MultiViewMixture(2, **{name: width}).fit(two_classes(rng))


def test_kernels_wider_than_single_precision_reaches_see_no_difference():
    rows = np.array([[1.0, 2.0], [3.0, -4.0]], dtype=np.float32)

    np.testing.assert_array_equal(judged(Gaussian(1e200).correlation, rows, rows), 1.0)


def test_nodes_of_narrow_kernels_beside_borders_are_found_in_silence(rng):
    rows = np.abs(two_classes(rng, d=2))

    domain = judged(domain_of, Gaussian(1e-160, space=HalfLine()), rows, rng, 0.0)

    assert np.isfinite(domain.nodes).all()


def test_pair_moments_whose_squares_are_no_numbers_have_sizes():
    tables = {(0, 1): np.full((2, 2), 1e160), (0, 2): np.full((2, 2), 4e160), (1, 2): np.full((2, 2), 1e160)}

    np.testing.assert_allclose(judged(_scales, tables, 3), np.sqrt([5e160, 2e160, 5e160]))


@pytest.mark.parametrize("unit", [1e-120, 1.0, 1e120])
def test_features_of_any_size_are_scaled_to_one(unit, rng):
    values = judged(_unit_features, unit * np.arange(6.0)[:, None], Linear(), rng)

    np.testing.assert_allclose(np.linalg.norm(values @ values.T), 1.0)


def test_sensors_of_one_feature_have_products(rng):
    views = SimpleNamespace(features=[LandmarkFeatures(Gaussian(1.0), 1).fit(np.ones((1, 1)))] * 2, columns=[[0], [1]])

    found = judged(PairProducts.learn, views, rng.normal(size=(20, 2)))

    assert found.transform(np.ones((3, 2))).shape == (3, 1)


@pytest.mark.parametrize("transformer", [OneHotFeatures(), LandmarkFeatures(Gaussian(1e-9), n_landmarks=4)], ids=repr)
def test_a_transformer_that_moves_nothing_is_no_change_of_units(transformer, rng):
    with pytest.raises(TypeError, match=r"need a linear, invertible transformer, or one with `log_jacobian_`"):
        TransformedDensity(LowRankDensity(), transformer).fit(rng.normal(size=(4, 4)))


def test_draws_ask_for_the_way_back(rng):
    model = TransformedDensity(LowRankDensity(random_state=0), WhitenScale()).fit(rng.normal(size=(40, 3)))
    model.transformer_ = LandmarkFeatures()

    with pytest.raises(TypeError, match="transformer must be an object with a method `inverse_transform`"):
        model.sample(3)


def test_rows_that_weigh_nothing_are_shared_between_halves(rng):
    rows, weights = rng.normal(size=(6, 3)), np.zeros(6)
    few = FewRows(rows, rows, weights, None)
    for pair in combinations(range(6), 2):
        weights[:] = np.isin(range(6), pair)
        assert [weights[half].sum() for half in few.halves()] == [1, 1]

    weights[:] = np.arange(6) == 2
    with pytest.raises(ValueError, match="two rows at least whose sample_weight is not zero"):
        few.halves()


@pytest.mark.parametrize(
    ("seed", "family", "case"),
    [
        (7, "PredictiveStateModel", 1),
        (300, "LandmarkPCA", 13),
        (300, "MultiViewMixture", 187),
        (300, "MultiViewMixture", 387),
        (300, "ChangePoints", 123),
        (300, "KernelBeliefPropagation", 128),
        (300, "functions", 128),
        (400, "MultiViewMixture", 154),
        (400, "KernelHMM", 94),
        (400, "KernelHMM", 159),
        (400, "DoublyStochasticClassifier", 38),
        (400, "MultiViewMixture", 419),
        (400, "LowRankDensity", 463),
        (500, "TopicModel", 42),
        (500, "TransformedDensity", 87),
        (500, "LowRankDensity", 792),
        (500, "CrowdLabels", 171),
        (600, "TopicModel", 109),
        (600, "CrowdLabels", 129),
        (1000, "PredictiveStateModel", 59),
        (1200, "HSICSelector", 21),
        (2100, "PredictiveStateModel", 160),
        (2400, "HistogramSpectral", 4),
        (2500, "LatentTreeSpectral", 7),
        (2500, "MultiViewMixture-dependent", 138),
        (2500, "KernelHMM", 451),
        (2600, "PredictiveStateModel", 309),
        (2900, "KernelHMM", 102),
        (2900, "KernelHMM", 258),
        (3000, "ChangePoints", 137),
        (3200, "KernelICA", 28),
        (3200, "PredictiveStateModel", 138),
        (3300, "KernelHMM", 140),
        (3300, "MultiViewMixture", 539),
        (3000, "MultiViewMixture", 109),
        (3000, "MultiViewMixture-dependent", 35),
        (3300, "MultiViewMixture", 836),
        (3600, "TransformedDensity", 18),
    ],
    ids=str,
)
def test_cases_that_once_failed(seed, family, case):
    _, judge = run_case(family, [seed, case, zlib.crc32(family.encode())])

    assert judge.faults == []


def test_features_whose_products_are_out_of_range_are_told_in_a_sentence(rng):
    rows = rng.normal(size=(250, 3))
    rows[7, 1] = 1e149
    model = PredictiveStateModel(features=TensorSketchFeatures(n_sketch=16, random_state=0))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="too large for these features in float64; scale the columns"):
            model.fit(rows)


def test_shares_nearest_to_rows_far_out_sum_to_one():
    rows = np.array([[2.5e16], [-3e200], [1.0]])

    np.testing.assert_array_equal(on_simplex(rows), 1.0)
    np.testing.assert_allclose(on_simplex(np.array([[1e17, 1e17 - 16.0], [0.2, 0.4]])), [[1, 0], [0.4, 0.6]])


def test_rows_whose_sources_are_no_numbers_get_a_sentence(rng):
    model = KernelICA(random_state=0).fit(1e-160 * rng.uniform(size=(60, 2)))

    with pytest.raises(ValueError, match="Row 1 is so far from the rows of the fit that its sources are beyond"):
        model.transform([[0.0, 0.0], [1e149, 0.0]])
