import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import adjusted_rand_score

from latentviews.datasets import TrueView
from latentviews.metrics import (
    Reordered,
    adjusted_rand,
    amari_error,
    density_error,
    f_measure,
    label_accuracy,
    match_components,
    match_labels,
    weight_error,
)

pytestmark = pytest.mark.cheap

GRID = np.linspace(-6, 6, 200)


def normals(*means):
    return TrueView(tuple(((1.0, stats.norm(mean, 1)),) for mean in means))


def test_labels_are_matched_through_a_permutation(rng):
    true, names = rng.integers(0, 5, size=500), rng.permutation(5)

    np.testing.assert_array_equal(match_labels(true, names[true]), names)
    assert label_accuracy(true, names[true]) == 1.0


def test_a_match_is_one_to_one_and_the_best_of_all():
    true = [0, 0, 0, 0, 0, 1, 1, 1]
    found = [1, 1, 1, 1, 0, 1, 1, 0]  # both classes look like 1; only one can have it

    np.testing.assert_array_equal(match_labels(true, found), [1, 0])
    assert label_accuracy(true, found) == 5 / 8


def test_a_class_that_was_not_found_has_no_rows_right():
    assert label_accuracy([0, 0, 1, 2], [0, 0, 0, 0]) == 0.5
    assert label_accuracy([0, 0, 0, 0], [0, 1, 2, 2]) == 0.5


def test_accuracy_falls_by_the_rows_that_are_wrong(rng):
    true = np.repeat([0, 1, 2], 100)
    found = true.copy()
    found[:7] = 1

    assert label_accuracy(true, (found + 1) % 3) == pytest.approx(1 - 7 / 300)


def test_labels_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match=r"Labels must have the same shape; got \(2,\) and \(3,\)"):
        match_labels([0, 1], [0, 1, 1])


@pytest.mark.parametrize("wrong", [["a", "b"], None, [0.5, 1.0], [np.nan, 1.0], [[0], [1]]], ids=str)
def test_labels_that_are_no_whole_numbers_are_refused(wrong):
    for pair in ((wrong, [0, 1]), ([0, 1], wrong)):
        for function in (match_labels, label_accuracy):
            with pytest.raises(ValueError, match=r"must be a list of labels 0, …, k-1, one per row; got"):
                function(*pair)


def test_labels_too_large_for_a_table_are_refused():
    with pytest.raises(ValueError, match=r"k at most 10,000; leave out rows whose class is unknown, and number others"):
        match_labels([0, 10**12], [0, 1])


@pytest.mark.parametrize("wrong", [[], [[0], [1]], [0, "a", None], [np.nan, 1.0]], ids=str)
@pytest.mark.parametrize("measure", [adjusted_rand, f_measure])
def test_labels_of_any_names_are_of_one_kind(measure, wrong):
    with pytest.raises(ValueError, match=r"(true|a) must be a list of labels of one kind, one per row, none missing"):
        measure(wrong, wrong)


def test_names_of_classes_do_not_count():
    names = np.array(["a", "ä", "b"])
    true, found = [0, 0, 1, 2, 2, 2], [1, 1, 0, 2, 2, 0]

    for measure in (adjusted_rand, lambda a, b: f_measure(a, b, unknown=None)):
        assert measure(names[true], [-(10**12) * h for h in found]) == pytest.approx(measure(true, found))


@pytest.mark.parametrize("wrong", [[0.5], [np.nan, 1.0], ["a", "b"], [], [[0.5, 0.5]]], ids=str)
def test_weights_are_finite_and_of_the_same_classes(wrong):
    with pytest.raises(ValueError, match=r"finite, one weight per class; got|must hold real numbers"):
        weight_error([0.5, 0.5], wrong)


@pytest.mark.parametrize("wrong", [np.zeros((2, 2)), np.full((2, 2), np.nan), np.zeros((0, 0)), [[1, 2], [3]]], ids=str)
def test_a_product_without_any_mixing_is_refused(wrong):
    with pytest.raises(ValueError, match="The product of components and mixing must"):
        amari_error(wrong)


def test_density_error_is_the_formula_of_the_paper():
    true, found, weights = normals(0, 2), normals(0.5, 2), np.array([0.3, 0.7])
    wrong = np.sqrt(np.sum((stats.norm.pdf(GRID) - stats.norm.pdf(GRID, 0.5)) ** 2))

    assert density_error([true], [found], [GRID], weights) == pytest.approx(0.3 * wrong, rel=1e-12)
    assert density_error([true, true], [found, true], [GRID, GRID], weights) == pytest.approx(0.15 * wrong, rel=1e-12)


def test_density_error_of_the_truth_is_zero():
    view = normals(-1, 0, 3)

    assert density_error([view], [view], [GRID], np.ones(3) / 3) == 0.0


def test_views_must_be_as_many_on_both_sides():
    view = normals(0, 1)

    with pytest.raises(ValueError, match=r"one entry per view; they have \[2, 1, 2\]"):
        density_error([view, view], [view], [GRID, GRID], np.ones(2) / 2)


def test_components_are_matched_over_all_views(rng):
    order = rng.permutation(4)
    true = [normals(-4, -1, 1, 4), normals(0, 0, 2, 2)]
    found = [Reordered(view, np.argsort(order)) for view in true]

    match = match_components(true, found, [GRID, GRID], np.full(4, 0.25))

    np.testing.assert_array_equal(match, order)
    matched = [Reordered(view, match) for view in found]
    assert density_error(true, matched, [GRID, GRID], np.full(4, 0.25)) == 0.0


def test_heavy_classes_are_matched_first():
    true, found = [normals(0, 0)], [normals(0.1, 3)]

    np.testing.assert_array_equal(match_components(true, found, [GRID], np.array([0.9, 0.1])), [0, 1])
    np.testing.assert_array_equal(match_components(true, found, [GRID], np.array([0.1, 0.9])), [1, 0])


def test_reordered_components_have_their_columns_moved():
    view = normals(-2, 0, 2)

    np.testing.assert_array_equal(Reordered(view, [2, 0, 1]).density(GRID), view.density(GRID)[:, [2, 0, 1]])


def test_weight_error_is_the_largest():
    assert weight_error([0.2, 0.3, 0.5], [0.25, 0.3, 0.45]) == pytest.approx(0.05)


def test_the_f_measure_of_flowcap_weighs_the_best_match_of_every_class():
    true = [1, 1, 1, 1, 2, 2, 0, 0]
    found = [5, 5, 5, 7, 7, 7, 5, 9]
    best = [2 * 3 / (4 + 3), 2 * 2 / (2 + 3)]  # labels 0 are left out
    assert f_measure(true, found) == pytest.approx((4 * best[0] + 2 * best[1]) / 6)
    assert f_measure(true, true) == 1
    assert f_measure([0, 0, 1], [3, 4, 4], unknown=None) == pytest.approx((2 * 2 / 3 + 2 / 3) / 3)


def test_the_f_measure_needs_labels():
    with pytest.raises(ValueError, match="No row has a known label"):
        f_measure([0, 0], [1, 2])
    with pytest.raises(ValueError, match="same shape"):
        f_measure([1, 0], [1])


@pytest.mark.parametrize("sizes", [(3, 4), (1, 3), (1, 1)])
def test_the_adjusted_rand_index_is_scikit_learns(sizes, rng):
    a, b = (rng.integers(size, size=50) for size in sizes)
    assert adjusted_rand(a, b) == pytest.approx(adjusted_rand_score(a, b))
    assert adjusted_rand(a, a) == 1
