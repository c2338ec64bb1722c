"""`MultiViewMixture.partial_fit`: a stream that is seen once."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from latentviews import Delta, FourierFeatures, Gaussian, LandmarkFeatures, MultiViewMixture
from latentviews._validation import UnsupportedError
from latentviews.datasets import make_multiview
from latentviews.metrics import Reordered, density_error, label_accuracy, match_components, weight_error


def stream_fit(model, X, size=5000, weights=None):
    for start in range(0, len(X), size):
        part = slice(start, start + size)
        model.partial_fit(X[part], sample_weight=None if weights is None else weights[part])
    return model


def test_a_stream_gives_the_densities_of_landmark_features():
    X, _, truth = make_multiview(50_000, 3, design="gamma", separation=2.0, random_state=0)
    grids = [np.linspace(x.min() - 2, x.max() + 2, 200) for x in X.T]
    landmarks = MultiViewMixture(
        3,
        polish=None,
        features=LandmarkFeatures(Gaussian("silverman")),
        density_bandwidth=0.25,
        pilot_size=5000,
        random_state=0,
    ).fit(X)

    streamed = stream_fit(MultiViewMixture(3, density_bandwidth=0.25, pilot_size=5000, random_state=0), X, 2500)

    found = [
        [
            Reordered(view, match_components(truth.components, model.components_, grids, truth.weights))
            for view in model.components_
        ]
        for model in (landmarks, streamed)
    ]
    errors = [density_error(truth.components, views, grids, truth.weights) for views in found]
    assert errors[1] < 1.02 * errors[0]
    for one, other, x in zip(*found, grids, strict=True):
        p, q = one.density(x), other.density(x)
        assert np.linalg.norm(p - q) < 0.02 * np.linalg.norm(p)
    assert weight_error(np.sort(truth.weights)[::-1], streamed.weights_) < 0.01


def test_every_row_after_the_pilot_counts_and_none_is_kept():
    X, _, _ = make_multiview(12_000, 2, random_state=0)
    model = MultiViewMixture(2, pilot_size=3000, random_state=0)
    sizes, counts = [], []
    for start in range(0, 12_000, 1000):
        model.partial_fit(X[start : start + 1000])
        state = model.stream_
        counts.append((state.current.weight, 0 if state.upcoming is None else state.upcoming.weight))
        sizes.append(len(pickle.dumps(state)))

    assert counts[:4] == [(1000, 0), (2000, 0), (3000, 1000), (2000, 0)]  # the pilot is full after the third batch
    assert counts[-1] == (10_000, 0)
    assert sizes[-1] <= sizes[4]


def test_a_stream_goes_on_after_it_was_saved():
    X, _, _ = make_multiview(6000, 2, random_state=0)
    model = MultiViewMixture(2, pilot_size=2000, random_state=0)
    straight = stream_fit(clone(model), X, 1500)

    stopped = stream_fit(clone(model), X[:3000], 1500)
    resumed = stream_fit(pickle.loads(pickle.dumps(stopped)), X[3000:], 1500)

    np.testing.assert_allclose(resumed.weights_, straight.weights_, atol=1e-10)
    np.testing.assert_allclose(resumed.predict_proba(X[:100]), straight.predict_proba(X[:100]), atol=1e-8)


def test_fit_starts_afresh_and_so_does_a_stream_after_it(rng):
    X, _, _ = make_multiview(3000, 2, random_state=rng)
    model = MultiViewMixture(2, polish=None, random_state=0).fit(X)

    again = clone(model).partial_fit(X).fit(X)

    assert not hasattr(again, "stream_")
    np.testing.assert_allclose(again.weights_, model.weights_)
    np.testing.assert_allclose(clone(model).partial_fit(X).weights_, again.partial_fit(X).weights_)


def test_weights_views_of_several_columns_missing_values_and_blocks():
    rng = np.random.default_rng(0)
    X, y, _ = make_multiview(8000, 2, n_views=5, separation=5, random_state=rng)
    X[rng.random(X.shape) < 0.02] = np.nan
    model = MultiViewMixture(
        2,
        views=[[0, 1], [2], [3], [4]],
        features=FourierFeatures(Gaussian("median"), 100, random_state=0),
        density_bandwidth=None,
        pilot_size=3000,
        random_state=0,
    )

    stream_fit(model, X, 2000, weights=rng.uniform(0.5, 1.5, size=len(X)))

    assert label_accuracy(y, model.predict(X)) > 0.97
    shared = stream_fit(MultiViewMixture(2, exchangeable=[0, 0, 1, 1, 2], pilot_size=3000, random_state=0), X, 2000)
    np.testing.assert_array_equal(shared.components_[0].weights, shared.components_[1].weights)


def test_the_number_of_classes_can_be_counted_on_the_first_batch():
    X, _, _ = make_multiview(6000, 3, random_state=0)

    assert stream_fit(MultiViewMixture("auto", random_state=0), X, 3000).n_components_ == 3


@pytest.mark.parametrize(
    ("model", "batch", "error", "message"),
    [
        (MultiViewMixture(2), iter([]), TypeError, "partial_fit takes one batch, an array"),
        (
            MultiViewMixture(2, kernel=Delta()),
            (np.arange(60.0) % 7 % 3).reshape(20, 3),
            TypeError,
            "shift-invariant kernel",
        ),
        (
            MultiViewMixture(3),
            np.random.default_rng(0).normal(size=(4, 3)),
            UnsupportedError,
            "Give a larger first batch",
        ),
    ],
)
def test_what_a_stream_cannot_be_gets_a_sentence(model, batch, error, message):
    with pytest.raises(error, match=message):
        model.partial_fit(batch)
    assert not hasattr(model, "stream_")
