"""The default where classes have shapes that few numbers say, and where values are rounded."""

import numpy as np
import pytest
from scipy import stats

from latentviews import MultiViewMixture, rank_test
from latentviews.baselines import NonparametricEM
from latentviews.datasets import make_multiview
from latentviews.metrics import density_error, label_accuracy
from truths import errors, grids

WEIGHTS = np.array([1, 2, 3]) / 6


class NormalView:
    """Normal laws of the rows of every class, whose labels are known."""

    def __init__(self, x, y):
        self.laws = [stats.norm(x[y == h].mean(), x[y == h].std()) for h in range(3)]

    def density(self, x):
        return np.column_stack([law.pdf(x) for law in self.laws])


def three_classes(law, apart, n, rng):
    """Rows and labels of three classes of one shape, evenly spaced in an order drawn for every view."""
    y = rng.choice(3, size=n, p=WEIGHTS)
    return np.column_stack([apart * rng.permutation(3)[y] + law.rvs(size=n, random_state=rng) for _ in range(3)]), y


def test_normal_classes_are_estimated_nearly_as_well_as_by_normal_laws():
    ratios = []
    for seed in range(3):
        X, y, truth = make_multiview(1500, 3, random_state=seed)
        best = density_error(truth.components, [NormalView(x, y) for x in X.T], grids(X), truth.weights)
        ratios.append(errors(MultiViewMixture(3, random_state=0).fit(X), X, truth)[0] / best)
    assert np.median(ratios) <= 1.3  # kernels alone have 2 to 3


def test_rounded_values_cost_no_accuracy(rng):
    X, _, truth = make_multiview(1500, 3, random_state=rng)
    exact, rounded = (errors(MultiViewMixture(3, random_state=0).fit(Z), X, truth)[0] for Z in (X, np.round(X, 2)))
    assert abs(rounded / exact - 1) <= 0.02


def test_boxes_are_likelier_than_under_nonparametric_em(rng):
    X, _ = three_classes(stats.uniform(-1.35, 2.7), 2.5, 5500, rng)
    fitted, held = X[:1500], X[1500:]
    peer = NonparametricEM(3, random_state=0).fit(fitted)
    assert MultiViewMixture(3, random_state=0).fit(fitted).score(held) >= peer.score(held)


def test_heavy_tails_are_told_apart(rng):
    X, y = three_classes(stats.t(2), 5.0, 5500, rng)
    assert label_accuracy(y[1500:], MultiViewMixture(3, random_state=0).fit(X[:1500]).predict(X[1500:])) >= 0.988


@pytest.mark.parametrize("seed", range(2))
def test_a_fourth_class_of_skewed_ones_is_counted(seed):
    X = make_multiview(2000, 4, design="gamma", separation=2, random_state=seed).X
    assert rank_test(X, random_state=0).n_components == 4
