"""`MultiViewMixture.partial_fit` and `KernelHMM.partial_fit`: streams that are seen once."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

from latentviews import (
    Delta,
    FourierFeatures,
    Gaussian,
    KernelHMM,
    LandmarkFeatures,
    MultiViewMixture,
    VonMises,
    load,
    save,
)
from latentviews._validation import DivergenceError, UnsupportedError
from latentviews.datasets import make_multiview
from latentviews.metrics import Reordered, density_error, label_accuracy, match_components, weight_error
from latentviews.sequences.chains import draw_states


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


def test_fit_starts_afresh_and_so_does_a_stream_after_it():
    X, _, _ = make_multiview(3000, 2, random_state=0)
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
            "shift-invariant kernel.*Delta has none. `fit` takes any kernel",
        ),
        (KernelHMM(2), iter([]), TypeError, "partial_fit takes one batch, an array"),
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


def test_dependent_views_have_no_stream():
    assert hasattr(MultiViewMixture(), "partial_fit")
    with pytest.raises(AttributeError) as told:
        MultiViewMixture(dependence="copula").partial_fit(np.eye(3))
    assert "set dependence=None, or use fit" in str(told.value.__cause__)


TRANSITION = np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.25, 0.7]])
CHAIN = KernelHMM(3, density_bandwidth=0.3, pilot_size=2000, random_state=0)


def sequences(lengths, seed=0, n_sensors=1):
    rng = np.random.default_rng(seed)
    states = draw_states(np.full(3, 1 / 3), TRANSITION, np.asarray(lengths), rng)
    return 2.0 * states[:, None] + rng.normal(size=(len(states), n_sensors)) * 0.7


def chain_stream(model, X, size):
    for start in range(0, len(X), size):
        model.partial_fit(X[start : start + size])
    return model


def by_mean(model, view=0):
    """Densities, transitions and weights with the states in the order of what they emit."""
    grid = np.linspace(-4, 8, 200)
    density = model.components_[view].density(grid)
    order = np.argsort(grid @ density)
    return density[:, order], model.transition_[np.ix_(order, order)], model.weights_[order]


def test_a_chain_from_a_stream_is_that_of_all_rows():
    X = sequences([15_000])
    whole = by_mean(clone(CHAIN).set_params(polish=None).fit(X))

    streamed = by_mean(chain_stream(clone(CHAIN), X, 1500))

    assert np.linalg.norm(streamed[0] - whole[0]) < 0.03 * np.linalg.norm(whole[0])
    np.testing.assert_allclose(streamed[1], whole[1], atol=0.03)
    np.testing.assert_allclose(streamed[1], TRANSITION, atol=0.05)
    np.testing.assert_allclose(streamed[2], whole[2], atol=0.02)


def test_triples_go_over_the_boundaries_of_batches_and_end_with_sequences():
    X = sequences([3000, 40, 2, 60])
    bounds = [0, 2500, 2501, 2502, 2600, 3000]  # of the first sequence's batches
    parts = clone(CHAIN)
    for low, high in pairwise(bounds):
        parts.partial_fit(X[low:high])
    parts.partial_fit(X[3000:3062], lengths=[40, 2, 20]).partial_fit(X[3062:])
    whole = clone(CHAIN).partial_fit(X[:2500]).partial_fit(X[2500:3000])
    whole.partial_fit(X[3000:], lengths=[40, 2, 60])

    assert parts.stream_.fit.current.weight == 2998 + 38 + 58
    np.testing.assert_allclose(parts.transition_, whole.transition_, atol=1e-8)
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=1e-6)


def test_a_chain_keeps_two_rows_of_its_stream():
    X = sequences([12_000])
    model, sizes = clone(CHAIN), []
    for start in range(0, 12_000, 1000):
        model.partial_fit(X[start : start + 1000])
        sizes.append(len(pickle.dumps(model.stream_)))

    np.testing.assert_array_equal(model.stream_.end, X[-2:])
    assert sizes[-1] <= sizes[4]


def test_sensors_missing_values_and_angles_come_in_streams_of_chains():
    X = sequences([8000], n_sensors=3)
    X[:, 2] = np.arctan2(np.sin(X[:, 2]), np.cos(X[:, 2]))
    X[np.random.default_rng(1).random(X.shape) < 0.02] = np.nan
    model = clone(CHAIN).set_params(views=[[0, 1], [2]], kernel=[Gaussian("median"), VonMises(0.5)])

    chain_stream(model.set_params(density_bandwidth=None), X, 2000)

    order = np.argsort(model.components_[0].expectation(lambda x: x[:, 0]))
    np.testing.assert_allclose(model.transition_[np.ix_(order, order)], TRANSITION, atol=0.06)


@pytest.mark.parametrize("model", [MultiViewMixture(2, pilot_size=1200, random_state=0), CHAIN], ids=repr)
def test_a_stream_that_was_saved_goes_on(model, tmp_path):
    X = sequences([2400]) if isinstance(model, KernelHMM) else make_multiview(2400, 2, random_state=0)[0]
    straight = clone(model).partial_fit(X[:1000])
    save(straight, tmp_path / "model")

    restored = load(tmp_path / "model")

    for part in (X[1000:1700], X[1700:]):
        straight.partial_fit(part)
        restored.partial_fit(part)
    np.testing.assert_array_equal(restored.predict_proba(X), straight.predict_proba(X))


def test_rows_may_come_a_few_at_a_time():
    X, y, _ = make_multiview(2400, 3, separation=4.0, random_state=0)
    model = MultiViewMixture(3, pilot_size=1200, random_state=0).partial_fit(X[:1000])

    for start in range(1000, 2400, 50):  # too few to whiten by when the pilot is full
        model.partial_fit(X[start : start + 50])

    assert model.stream_.upcoming.weight == 300  # from the 1,000th row after the pilot on
    assert label_accuracy(y, model.predict(X)) > 0.95


def test_a_stream_unlike_its_first_batch_is_reported_and_leaves_the_model_as_it_was():
    X, _, _ = make_multiview(1000, 2, random_state=0)
    model = MultiViewMixture(2, kernel=Gaussian(0.05), random_state=0).partial_fit(X)
    kept = []

    def go_on():
        while len(kept) < 20:
            kept.append(model.predict_proba(X))
            model.partial_fit(np.tile(X[:1], (1024, 1)))  # one row alone, whose eigenvalue is far beyond all others

    with pytest.raises(DivergenceError, match=r"The steps diverge.* Give a first batch that is like the others"):
        go_on()

    np.testing.assert_array_equal(model.predict_proba(X), kept[-1])
    assert np.all(np.isfinite(kept[-1]))


def test_a_chain_starts_from_three_rows_in_a_row():
    X = sequences([30])
    with pytest.raises(ValueError, match="learns from three consecutive rows"):
        clone(CHAIN).partial_fit(X[:2])
    with pytest.raises(UnsupportedError, match="Give a larger first batch"):
        clone(CHAIN).partial_fit(X[:6])
    with pytest.raises(TypeError, match="shift-invariant kernel"):
        KernelHMM(2, kernel=Delta()).partial_fit((X > 1).astype(float))
    again = clone(CHAIN).set_params(polish=None).partial_fit(sequences([1500])).fit(sequences([600]))
    assert not hasattr(again, "stream_")
