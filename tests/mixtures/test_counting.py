"""Classes that the rank of the views' dependence does not show."""

import numpy as np
import pytest

from latentviews import MultiViewMixture
from latentviews.metrics import label_accuracy


def subsets(rng, n=2000):
    """Four classes far from each other, and a fifth in four subsets that overlap in two views."""
    far = 5.0 * np.eye(6)[:4]
    near = 5.0 * np.eye(6)[4] + np.array([[0, 0, 0, 0, 2.2 * a, 2.2 * b] for a in (0, 1) for b in (0, 1)])
    y = rng.integers(8, size=n)
    return np.concatenate([far, near])[y] + rng.normal(size=(n, 6)), y


def test_classes_are_counted_beyond_the_rank_while_held_out_rows_ask_for_more():
    X, y = subsets(np.random.default_rng(1))
    model = MultiViewMixture("auto", random_state=0).fit(X)
    by_rank = model.rank_test_.n_components
    assert by_rank < model.n_components_ <= 8
    few = MultiViewMixture(by_rank, random_state=0).fit(X)
    assert label_accuracy(y, model.predict(X)) > label_accuracy(y, few.predict(X)) + 0.1
    fresh = subsets(np.random.default_rng(2))[0]
    assert model.score(fresh) > few.score(fresh)


@pytest.mark.parametrize("k", [1, 3])
def test_no_class_is_split_where_all_are_counted(k):
    rng = np.random.default_rng(3)
    X = 4.0 * rng.integers(k, size=(1000, 1)) + rng.gamma(3.0, size=(1000, 3))
    assert MultiViewMixture("auto", random_state=0).fit(X).n_components_ == k
