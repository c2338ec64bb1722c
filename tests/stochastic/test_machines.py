import contextlib
import pickle

import array_api_strict as strict
import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, make_classification
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from catalogue import LOSSES, MACHINES
from latentviews import DoublyStochasticClassifier, DoublyStochasticRegressor, Gaussian, Laplace, Linear, load, save
from latentviews._arrays import on_host
from latentviews._validation import DivergenceError
from latentviews.losses import Hinge, Huber, Logistic, Loss, Novelty, Quantile, Squared
from latentviews.stochastic import direct, gradients, learning
from latentviews.stochastic.choice import left_out_errors
from latentviews.stochastic.expansions import RandomBlocks
from latentviews.stochastic.gradients import precondition, start_gradient

MODELS = [clone(machine).set_params(random_state=0, n_epochs=30) for machine in MACHINES]  # by steps
AT_ONCE = [DoublyStochasticClassifier(random_state=0), DoublyStochasticRegressor(random_state=0)]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradients_are_derivatives_of_values(loss, rng):
    scores, targets = rng.normal(size=3), np.eye(3)[0]

    numeric = approx_fprime(scores, lambda s: loss.value(s[None, :], targets[None, :]), 1e-7)

    np.testing.assert_allclose(loss.gradient(scores[None, :], targets[None, :])[0], numeric, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradients_change_no_faster_than_the_curvature(loss, rng):
    one, other, targets = rng.normal(size=(50, 3)), rng.normal(size=(50, 3)), np.eye(3)[rng.integers(3, size=50)]
    if isinstance(loss, Hinge | Novelty | Quantile):  # their gradients jump; by no more than they are large
        assert np.abs(loss.gradient(one, targets)).max() <= loss.curvature
        return

    change = np.linalg.norm(loss.gradient(one, targets) - loss.gradient(other, targets), axis=1)

    limit = 0.5 if isinstance(loss, Logistic) else loss.curvature
    assert np.all(change <= limit * np.linalg.norm(one - other, axis=1) * (1 + 1e-12))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_are_the_same_in_every_array_library(loss, rng):
    scores, targets = rng.normal(size=(5, 3)), np.eye(3)[rng.integers(3, size=5)]
    foreign = strict.asarray(scores), strict.asarray(targets)

    assert loss.value(*foreign) == pytest.approx(loss.value(scores, targets))
    np.testing.assert_allclose(np.from_dlpack(loss.gradient(*foreign)), loss.gradient(scores, targets), atol=1e-14)


def test_probabilities_are_finite_for_any_scores():
    scores = np.array([[1e4, -1e4, 0.0], [-1e5, -1e5, -1e5]])

    probabilities = Logistic().probability(scores)

    np.testing.assert_allclose(probabilities, [[1, 0, 0], [1 / 3, 1 / 3, 1 / 3]])
    assert np.isfinite(Logistic().value(scores, np.eye(3)[[1, 2]]))


def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / 16, y, test_size=0.25, random_state=0, stratify=y)


def test_digits_are_read_as_well_as_by_an_svm():
    train, test, labels, truth = digits()
    peer = SVC(C=10).fit(train, labels).score(test, truth)

    ours = DoublyStochasticClassifier(kernel=Gaussian(2.1), n_blocks=8, n_epochs=8, random_state=0).fit(train, labels)

    assert ours.score(test, truth) > peer - 0.01
    np.testing.assert_allclose(ours.predict_proba(test).sum(axis=1), 1)
    np.testing.assert_array_equal(ours.classes_[ours.predict_proba(test).argmax(axis=1)], ours.predict(test))


def test_features_without_bound_learn_too():
    train, test, labels, truth = digits()
    model = DoublyStochasticClassifier(
        kernel=Gaussian(2.1), n_blocks=None, n_frequencies=64, batch_size=128, step_size=4.0, n_epochs=4, random_state=0
    ).fit(train, labels)

    assert model.score(test, truth) > 0.94
    assert len(model.fit_.functions.coefficients) == 1 + model.fit_.n_steps


def test_steps_shortened_along_eigenfunctions_are_sooner_there():
    train, test, labels, truth = digits()
    model = DoublyStochasticClassifier(kernel=Gaussian(2.1), n_blocks=4, n_epochs=4, random_state=0)

    errors = [
        1 - clone(model).set_params(n_directions=count).fit(train, labels).score(test, truth) for count in (128, 0)
    ]

    assert errors[0] < 0.6 * errors[1]


def test_regression_comes_to_kernel_ridge(rng):
    X = rng.uniform(-2, 2, size=(300, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=300)
    exact = KernelRidge(alpha=300 * 0.01, kernel="rbf", gamma=0.5).fit(X, y - y.mean())

    found = DoublyStochasticRegressor(
        kernel=Gaussian(1.0), penalty=0.01, batch_size=300, n_epochs=200, n_blocks=4, n_frequencies=16, random_state=0
    ).fit(X, y)

    grid = np.linspace(-2, 2, 50)[:, None]
    # the constant is free here and zero there, so both are compared up to one
    difference = found.predict(grid) - exact.predict(grid)
    assert difference.std() < 0.02


@pytest.mark.parametrize("penalty", [1.0, 100.0])
def test_a_large_penalty_leaves_the_constant(penalty, rng):
    X = rng.uniform(-2, 2, size=(300, 1))

    model = DoublyStochasticRegressor(penalty=penalty, n_epochs=40, n_frequencies=16, random_state=0).fit(
        X, X[:, 0] + 3
    )

    np.testing.assert_allclose(model.predict(X), 3 + X[:, 0].mean(), atol=2.0 / (1 + penalty) + 0.05)


@pytest.mark.parametrize(("loss", "level"), [(Quantile(0.9), 0.9), (Quantile(0.2), 0.2)])
def test_other_losses_find_what_they_are_for(loss, level):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(2000, 1))
    y = X[:, 0] + rng.normal(size=2000)

    model = DoublyStochasticRegressor(
        loss=loss, step_size=0.02, decay=20.0, n_blocks=2, n_frequencies=16, random_state=0
    )
    model.fit(X, y)

    assert np.mean(y < model.predict(X)) == pytest.approx(level, abs=0.04)


def test_a_few_wild_targets_do_not_move_the_huber_loss(rng):
    X = rng.uniform(-1, 1, size=(1000, 1))
    y = np.where(rng.random(1000) < 0.05, 1000.0, X[:, 0])
    model = DoublyStochasticRegressor(loss=Huber(0.1), n_epochs=20, n_blocks=2, n_frequencies=16, random_state=0).fit(
        X, y
    )

    plain = clone(model).set_params(loss=None).fit(X, y)

    assert np.abs(np.median(model.predict(X) - X[:, 0])) < 0.1 * np.abs(np.median(plain.predict(X) - X[:, 0]))


def test_several_targets_are_learnt_at_once(rng):
    X = rng.uniform(-2, 2, size=(400, 1))
    Y = np.concatenate([np.sin(X), np.cos(X)], axis=1)

    model = DoublyStochasticRegressor(n_blocks=2, random_state=0).fit(X, Y)

    assert model.predict(X).shape == (400, 2)
    assert model.score(X, Y) > 0.99


class Pairs:
    """A stream of rows and targets that can be read again."""

    def __init__(self, X, y, size):
        self.X, self.y, self.size = X, y, size

    def __iter__(self):
        return ((self.X[i : i + self.size], self.y[i : i + self.size]) for i in range(0, len(self.X), self.size))


def blobs(rng, n=1000):
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 2)) + 3 * np.eye(3)[y][:, :2], np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("n_blocks", [2, None])
def test_a_generator_and_its_batches_give_the_same_model(n_blocks):
    X, y = blobs(np.random.default_rng(0))
    model = DoublyStochasticClassifier(n_blocks=n_blocks, n_frequencies=32, n_epochs=1, batch_size=100, random_state=0)

    streamed = clone(model).fit(iter(Pairs(X, y, 250)), classes=["a", "b", "c"])
    batches = clone(model)
    for rows, labels in Pairs(X, y, 250):
        batches.partial_fit(rows, labels, classes=["a", "b", "c"])

    np.testing.assert_array_equal(streamed.predict_proba(X), batches.predict_proba(X))
    assert streamed.score(X, y) > 0.9
    many = clone(model).set_params(n_epochs=3).fit(Pairs(X, y, 250), classes=["a", "b", "c"])
    assert many.fit_.n_steps == 3 * streamed.fit_.n_steps


@pytest.mark.parametrize("library", [np, strict], ids=["numpy", "strict"])
@pytest.mark.parametrize("n_blocks", [2, None])
def test_a_saved_model_goes_on_with_its_stream(n_blocks, library, tmp_path):
    X, y = blobs(np.random.default_rng(0), 600)
    rows = library.asarray(X)
    straight = DoublyStochasticClassifier(n_blocks=n_blocks, random_state=0)
    straight.partial_fit(rows[:300, :], y[:300], classes=["a", "b", "c"])
    save(straight, tmp_path / "model")

    restored = load(tmp_path / "model")

    for model in (straight, restored):
        model.partial_fit(rows[300:, :], y[300:])
    np.testing.assert_array_equal(on_host(restored.predict_proba(rows)), on_host(straight.predict_proba(rows)))


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_predictions_do_not_depend_on_the_rows_beside_them(model, rng):
    X = rng.normal(size=(5000, 2))
    model = clone(model).fit(X[:300], (X[:300, 0] > 0).astype(float))
    ask = model.predict_proba if hasattr(model, "predict_proba") else model.predict

    np.testing.assert_allclose(ask(X), np.concatenate([ask(X[:3]), ask(X[3:4500]), ask(X[4500:])]), atol=1e-10)


@pytest.mark.parametrize("n_blocks", [2, None])
def test_memory_is_that_of_the_coefficients(n_blocks):
    X, y = blobs(np.random.default_rng(0), 4000)
    model = DoublyStochasticClassifier(
        n_blocks=n_blocks, n_frequencies=16, batch_size=200, n_directions=5, random_state=0
    )
    sizes = []
    for rows, labels in Pairs(X, y, 1000):
        sizes.append(len(pickle.dumps(model.partial_fit(rows, labels, classes=["a", "b", "c"]))))

    # five more blocks of 32 × 3 numbers, twice for the average; nothing where their number is fixed
    growth = 0 if n_blocks else 5 * 2 * 32 * 3 * 8
    assert np.all(np.abs(np.diff(sizes) - growth) < 0.25 * growth + 200)


@pytest.mark.parametrize("n_blocks", [3, None])
def test_the_whole_fit_runs_in_other_array_libraries(n_blocks):
    X, y = blobs(np.random.default_rng(0), 300)
    model = DoublyStochasticClassifier(n_blocks=n_blocks, n_frequencies=16, n_epochs=2, batch_size=64, random_state=0)
    ours = clone(model).fit(X, y)

    theirs = clone(model).fit(strict.asarray(X), y)

    found = theirs.predict_proba(strict.asarray(X))
    assert isinstance(found, type(strict.asarray(X)))
    np.testing.assert_allclose(np.from_dlpack(found), ours.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(theirs.predict_proba(X), ours.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(theirs.predict(strict.asarray(X)), theirs.predict(X))
    regressor = DoublyStochasticRegressor(n_blocks=n_blocks, n_frequencies=16, n_epochs=2, random_state=0)
    regressor.fit(strict.asarray(X), strict.asarray(X)[:, 0])
    np.testing.assert_allclose(
        np.from_dlpack(regressor.predict(strict.asarray(X))), clone(regressor).fit(X, X[:, 0]).predict(X), atol=1e-6
    )


def test_early_stopping_returns_to_the_best(rng):
    X, y = blobs(rng, 400)
    noisy = np.where(rng.random(400) < 0.3, rng.permutation(y), y)
    model = DoublyStochasticClassifier(
        kernel=Gaussian(0.3),
        penalty=0.0,
        n_epochs=40,
        early_stopping=True,
        batch_size=100,
        n_blocks=2,
        n_frequencies=32,
        random_state=0,
    ).fit(X, noisy)

    assert model.n_iter_ < 40
    assert model.fit_.n_steps == 4 * (model.n_iter_ - 3)  # 360 rows in batches of 100, three epochs too many
    assert model.score(X, y) >= clone(model).set_params(early_stopping=False).fit(X, noisy).score(X, y) - 0.02


def test_models_stand_in_pipelines_and_grid_searches(rng):
    X, y = blobs(rng, 300)
    model = make_pipeline(StandardScaler(), DoublyStochasticClassifier(kernel=Gaussian(1.0), n_blocks=2, n_epochs=3))
    search = GridSearchCV(model, {"doublystochasticclassifier__kernel__bandwidth": [0.001, 1.0]}, cv=3).fit(X, y)

    assert search.best_params_["doublystochasticclassifier__kernel__bandwidth"] == 1.0


def test_a_preconditioner_leaves_less(rng):
    x, blocks = rng.normal(size=(600, 3)), RandomBlocks(Gaussian(1.5), 3, 32, seed=0)

    plain, better = precondition(blocks, 4, x, 0), precondition(blocks, 4, x, 20)

    assert len(plain.damping) == 0
    assert better.largest < plain.largest / 5
    assert better.curvature(100) < plain.curvature(100) / 5
    covariance = np.cov(better.functions(x[:300]).T)  # on the rows they were found on
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-8)


def test_a_step_in_fixed_blocks_is_a_centred_gradient_step(rng):
    """Equivalence: one step on all rows in the feature space of all blocks, by the literal formula."""
    x, blocks = rng.normal(size=(40, 2)), RandomBlocks(Gaussian(1.0), 2, 8, seed=1)
    targets = rng.normal(size=(40, 1))
    start = start_gradient(blocks, x, np.zeros(1), 3, 0, 40, 0.0, 1.0, 1.0)

    found = start.step(x, targets, Squared(), 1.0, 0.0)

    phi = np.concatenate([blocks(x, j) for j in range(3)], axis=1) / np.sqrt(3)
    phi = phi - phi.mean(axis=0)
    rate = 1 / start.preconditioner.curvature(40)
    expected = rate / 40 * phi @ (phi.T @ targets) + targets.mean()
    np.testing.assert_allclose(found.functions(x) + found.intercept, expected, atol=1e-10)


def test_features_made_again_are_those_that_were_kept(monkeypatch):
    X, y = blobs(np.random.default_rng(0), 300)
    model = DoublyStochasticClassifier(n_epochs=2, n_blocks=3, n_frequencies=16, random_state=0)
    kept = clone(model).fit(X, y)

    monkeypatch.setattr(gradients, "KEPT", 0)
    monkeypatch.setattr(learning, "KEEP", 0)
    made_again = clone(model).fit(X, y)

    np.testing.assert_allclose(made_again.predict_proba(X), kept.predict_proba(X), atol=1e-10)


def test_progress_is_told_on_demand(capsys):
    X, y = blobs(np.random.default_rng(0), 100)

    DoublyStochasticClassifier(n_epochs=2, n_blocks=1, verbose=1, early_stopping=True, random_state=0).fit(X, y)

    lines = capsys.readouterr().err
    assert lines.count("epoch") == lines.count(", loss per row 0.") == 2
    assert "likelihood" not in lines


def fit_small(model, **changes):
    rng = np.random.default_rng(0)
    return clone(model).set_params(**changes).fit(rng.normal(size=(30, 2)), np.arange(30) % 2)


BAD = {
    "kernel": (MODELS[0], {"kernel": Linear()}, TypeError, "DoublyStochasticClassifier needs a shift-invariant kernel"),
    "step": (MODELS[0], {"step_size": 0}, ValueError, "step_size must be a positive, finite number"),
    "penalty": (MODELS[0], {"penalty": -1}, ValueError, "penalty must be a finite number of at least zero"),
    "batch": (MODELS[0], {"batch_size": "all"}, ValueError, "batch_size must be an integer of at least 1; got 'all'"),
    "class": (MODELS[0], {"kernel": Gaussian}, TypeError, r"an object, Gaussian\(\), not its class"),
    "share": (MODELS[0], {"early_stopping": True, "validation_fraction": "a"}, ValueError, "between 0 and 1; got 'a'"),
    "classes": (MODELS[1], {"loss": Logistic()}, TypeError, "Logistic is a loss of classes; DoublyStochasticRegressor"),
    "sides": (MODELS[1], {"loss": Hinge()}, TypeError, "Hinge is a loss of classes; DoublyStochasticRegressor takes"),
    "decay": (MODELS[0], {"decay": -1}, ValueError, "decay must be a positive, finite number"),
    "blocks": (MODELS[0], {"n_blocks": 0}, ValueError, "n_blocks must be an integer of at least 1"),
    "directions": (MODELS[0], {"n_directions": -1}, ValueError, "n_directions must be an integer of at least 0"),
    "loss": (MODELS[0], {"loss": "logistic"}, TypeError, "loss must be an object with a method `gradient`"),
    "part": (MODELS[0], {"early_stopping": True, "validation_fraction": 1.5}, ValueError, "between 0 and 1"),
    "threshold": (MODELS[1], {"loss": Huber(-1)}, ValueError, "threshold must be a positive"),
    "level": (MODELS[1], {"loss": Quantile(1.5)}, ValueError, "level must be between 0 and 1"),
}


@pytest.mark.parametrize(("model", "changes", "error", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_done_gets_a_sentence(model, changes, error, message):
    with pytest.raises(error, match=message):
        fit_small(model, **changes)


@pytest.mark.parametrize("batch_size", [0, "all"])
def test_a_bad_batch_size_is_told_before_anything_is_computed(batch_size):
    model = DoublyStochasticClassifier(batch_size=batch_size)

    with pytest.raises(ValueError, match="batch_size must be an integer of at least 1"):
        model.partial_fit(np.eye(2), [0, 1], classes=[0, 1])


def test_penalties_may_be_numbers_of_any_kind():
    assert fit_small(MODELS[0], penalty=np.float32(1e-3)).classes_.tolist() == [0, 1]


def test_steps_that_diverge_are_reported_and_leave_the_model_as_it_was(rng):
    X = rng.normal(size=(500, 2))
    model = DoublyStochasticRegressor(step_size=1e4, n_epochs=50, random_state=0)

    with pytest.raises(DivergenceError, match=r"The steps diverge: scores reach .* Take smaller steps"):
        model.fit(X, X[:, 0])

    assert not hasattr(model, "fit_")


def test_classes_are_all_told_at_the_start(rng):
    X, y = blobs(rng, 60)
    model = DoublyStochasticClassifier(n_blocks=1)

    with pytest.raises(ValueError, match=r"partial_fit needs all of them: pass classes=\[...\] with the first call"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="needs all of them"):
        clone(model).set_params(n_epochs=1).fit(Pairs(X, y, 20))
    model.partial_fit(X[y != "c"], y[y != "c"], classes=["a", "b"])
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match=r"Classes \['c'\] come late: the model was told of \['a', 'b'\]"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="since the first batch"):
        model.partial_fit(X, y, classes=["a", "b", "c"])
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_streams_that_cannot_be_read_get_a_sentence(rng):
    X, y = blobs(rng, 60)
    model = DoublyStochasticClassifier(n_epochs=2)

    with pytest.raises(TypeError, match="2 epochs read the stream as often, and a generator can be read once"):
        model.fit(((X, y) for _ in range(2)), classes=["a", "b", "c"])
    with pytest.raises(TypeError, match=r"A stream must yield pairs \(rows, targets\); got a ndarray"):
        model.fit(Rows(X), classes=["a", "b", "c"])
    with pytest.raises(TypeError, match="partial_fit takes one batch, an array"):
        model.partial_fit(Pairs(X, y, 20), y, classes=["a", "b", "c"])
    with pytest.raises(TypeError, match="partial_fit takes one batch, an array"):
        DoublyStochasticRegressor().partial_fit(Pairs(X, X, 20), X)
    with pytest.raises(ValueError, match=r"y has 1 target\(s\), and 2 since the first batch"):
        DoublyStochasticRegressor(n_blocks=1).partial_fit(X, X).partial_fit(X, X[:, 0])


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_what_a_stream_has_no_place_for_gets_a_sentence(model, rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    told = {"classes": [0, 1]} if isinstance(model, DoublyStochasticClassifier) else {}

    with pytest.raises(ValueError, match="The stream holds no batch; at least one is needed"):
        clone(model).fit(Pairs(X[:0], y[:0], 20), **told)
    with pytest.raises(TypeError, match=r"A stream yields pairs \(rows, targets\); y goes with an array"):
        clone(model).fit(Pairs(X, y, 20), y, **told)
    with pytest.raises(ValueError, match="early_stopping sets rows apart, and of a stream none are kept"):
        clone(model).set_params(early_stopping=True).fit(Pairs(X, y, 20), **told)


class Rows:
    """A stream that lacks targets."""

    def __init__(self, X):
        self.X = X

    def __iter__(self):
        return iter([self.X])


def test_hinge_has_no_probabilities():
    assert not hasattr(DoublyStochasticClassifier(loss=Hinge()), "predict_proba")
    assert hasattr(DoublyStochasticClassifier(), "predict_proba")


@pytest.mark.parametrize("method", ["value", "gradient"])
def test_a_loss_from_elsewhere_says_what_it_lacks(method):
    with pytest.raises(TypeError, match=f"is a loss without `{method}`"):
        getattr(Loss(), method)(np.zeros((1, 1)), np.zeros((1, 1)))


def test_a_first_batch_of_rows_that_are_all_alike_is_refused():
    """Steps are as long as the spread of the first batch allows: without any they would be of any length."""
    for rows in (np.zeros((50, 2)), 1e-3 * np.random.default_rng(0).normal(size=(50, 2)), np.ones((1, 2))):
        y = np.arange(len(rows)) % 2
        model = DoublyStochasticClassifier(kernel=Gaussian(1.0), random_state=0)
        with pytest.raises(ValueError, match="has to show how rows differ"):
            model.partial_fit(rows, y, classes=[0, 1])
        assert not hasattr(model, "fit_")


def test_scores_of_classes_beyond_all_odds_have_diverged():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    model = DoublyStochasticClassifier(kernel=Gaussian(1.0), step_size=1e6, n_epochs=20, random_state=0)
    with pytest.raises(DivergenceError, match="smaller steps"):
        model.fit(X, rng.integers(2, size=2000))


def test_rows_one_by_one_are_learnt_from():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y, r = X[:, 0] * X[:, 1] > 0, np.sin(2 * X[:, 0])
    classifier = DoublyStochasticClassifier(n_blocks=4, kernel=Gaussian(1.0), random_state=0)
    regressor = DoublyStochasticRegressor(n_blocks=4, kernel=Gaussian(1.0), random_state=0)
    classifier.partial_fit(X[:100], y[:100], classes=[False, True])
    regressor.partial_fit(X[:100], r[:100])
    for i in range(100, 1000):
        classifier.partial_fit(X[i : i + 1], y[i : i + 1])
        regressor.partial_fit(X[i : i + 1], r[i : i + 1])
    assert classifier.score(X[1000:], y[1000:]) > 0.93
    assert regressor.score(X[1000:], r[1000:]) > 0.9


@pytest.mark.parametrize("loss", [Quantile(), Huber(0.5), Squared()])
def test_the_unit_of_the_targets_does_not_matter(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    y = np.sin(2 * X[:, 0])
    for unit in (1.0, 100.0, 1e-4):
        scaled = Huber(0.5 * unit) if isinstance(loss, Huber) else loss
        model = DoublyStochasticRegressor(loss=scaled, n_frequencies=64, n_blocks=4, random_state=0).fit(X, unit * y)
        assert model.score(X, unit * y) > 0.9


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_rows_too_large_for_their_features_get_a_sentence(model, rng):
    X, y, far = rng.normal(size=(100, 3)).astype(np.float32), np.arange(100) % 2, np.full((1, 3), 1e37, np.float32)
    model = clone(model).set_params(kernel=Laplace(1.0), n_frequencies=128)

    with pytest.raises(ValueError, match="Row values are too large for these features in float32; scale the columns"):
        clone(model).fit(X, y).predict(far)
    with pytest.raises(ValueError, match="Row values are too large for these features in float32; scale the columns"):
        clone(model).fit(np.concatenate([X, far]), np.append(y, 0))


@pytest.mark.parametrize("dtype", [strict.int64, strict.bool])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_whole_numbers_of_other_libraries_are_numbers(model, dtype, rng):
    X, y = rng.integers(2, size=(60, 2)), np.arange(60) % 2
    foreign = strict.astype(strict.asarray(X), dtype)

    found = clone(model).set_params(n_epochs=1).fit(foreign, y).predict(foreign)

    expected = clone(model).set_params(n_epochs=1).fit(X, y).predict(X)
    np.testing.assert_allclose(on_host(found), expected, rtol=1e-6, atol=1e-8)


LABELS = {
    "none": (MODELS[0], np.array(["a", None] * 10, dtype=object), None, "y holds None"),
    "mixed": (MODELS[0], np.array(["a", 1] * 10, dtype=object), None, "y must hold labels of one type; got int, str"),
    "set": (MODELS[0], np.array(["a", "b"] * 10), {"a", "b"}, "classes must be a list or an array of labels"),
    "empty": (MODELS[1], np.empty((20, 0)), None, r"y needs one target, or several, .* got shape \(20, 0\)"),
    "complex": (MODELS[1], np.full(20, 1j), None, "y holds complex numbers; targets must be real"),
}


@pytest.mark.parametrize(("model", "y", "classes", "message"), LABELS.values(), ids=LABELS)
def test_targets_that_cannot_be_learnt_get_a_sentence(model, y, classes, message, rng):
    more = {} if classes is None else {"classes": classes}

    with pytest.raises(ValueError, match=message):
        clone(model).fit(rng.normal(size=(20, 2)), y, **more)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_batches_without_rows_are_passed_over(model, rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    model, more = clone(model).set_params(n_epochs=1), {"classes": [0, 1]} if model is MODELS[0] else {}

    found = clone(model).fit(iter([(X[:0], y[:0]), (X, y), (X[:0], y[:0])]), **more)

    np.testing.assert_array_equal(found.predict(X), clone(model).fit(iter([(X, y)]), **more).predict(X))
    with pytest.raises(ValueError, match="The stream holds no batch"):
        clone(model).fit(iter([(X[:0], y[:0])]), **more)


@pytest.mark.parametrize("step_size", [3.0, 30.0, 1e30, 1e300])
def test_a_model_that_diverged_in_its_last_step_is_not_returned(step_size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    settings = {"kernel": Gaussian(1.0), "step_size": step_size, "random_state": 0}
    classifier = DoublyStochasticClassifier(**settings)
    regressor = DoublyStochasticRegressor(n_frequencies=32, n_blocks=4, **settings)
    with contextlib.suppress(DivergenceError):
        regressor.fit(X, X[:, 0])
        assert np.abs(regressor.predict(X)).max() < 1e4
    if step_size > 1e20:
        with pytest.raises(DivergenceError, match="far beyond the targets"):
            classifier.partial_fit(X, X[:, 0] > 0, classes=[False, True])


@pytest.mark.parametrize("unit", [1e-13, 1.0, 1e13])
def test_targets_of_any_unit_and_level_are_learnt(unit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    y = unit * (X[:, 0] + 100)
    model = DoublyStochasticRegressor(n_blocks=2, kernel=Gaussian(2.0), random_state=0).fit(X, y)
    assert np.abs(model.predict(X) - y).mean() < 0.2 * unit


def test_batches_unlike_the_first_do_not_lead_astray_unsaid():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 3))
    model = DoublyStochasticRegressor(kernel=Gaussian(1.0), random_state=0).partial_fit(X, X[:, 0])
    with contextlib.suppress(DivergenceError):
        for _ in range(20):
            Z = np.where(rng.random((256, 1)) < 0.5, -1.5, 1.5) * np.ones((1, 3))
            model.partial_fit(Z, Z[:, 0])
    assert np.abs(model.predict(Z)).max() < 5e3


def test_a_list_of_batches_is_a_stream():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] > 0
    pairs = [(X[:200], y[:200]), (X[200:], y[200:])]
    once = {"n_epochs": 1, "n_blocks": 2, "random_state": 0}
    listed = DoublyStochasticClassifier(**once).fit(pairs, classes=[False, True])
    streamed = DoublyStochasticClassifier(**once).fit(iter(pairs), classes=[False, True])
    np.testing.assert_array_equal(listed.decision_function(X), streamed.decision_function(X))
    numbers = [(rows, rows[:, 0]) for rows, _ in pairs]
    regressors = [DoublyStochasticRegressor(**once).fit(batches) for batches in (numbers, iter(numbers))]
    np.testing.assert_array_equal(*(model.predict(X) for model in regressors))
    with pytest.raises(TypeError, match="partial_fit takes one batch"):
        DoublyStochasticRegressor(**once).partial_fit(numbers, None)


def test_quantiles_of_constant_targets_are_the_constant():
    X = np.random.default_rng(0).normal(size=(300, 2))
    model = DoublyStochasticRegressor(loss=Quantile(), n_blocks=2, random_state=0).fit(X, np.full(300, 1e6))
    np.testing.assert_allclose(model.predict(X), 1e6, rtol=1e-9)


def test_kernel_regression_of_diabetes_is_no_worse_than_a_line():
    X, y = load_diabetes(return_X_y=True)
    folds = KFold(5, shuffle=True, random_state=1)
    line = cross_val_score(RidgeCV(np.logspace(-4, 2, 13)), X, y, cv=folds).mean()

    ours = [cross_val_score(DoublyStochasticRegressor(random_state=0), x, y, cv=folds).mean() for x in (X, 100 * X)]

    assert min(ours) > max(0.43, line - 0.02)
    assert ours[0] == pytest.approx(ours[1], abs=1e-3)


def test_classes_in_many_clusters_are_told_apart_as_well_as_by_an_svm():
    X, y = make_classification(
        4000, 20, n_informative=18, n_redundant=2, n_clusters_per_class=16, class_sep=0.7, random_state=0
    )
    train, test, labels, truth = train_test_split(StandardScaler().fit_transform(X), y, random_state=0)

    model = DoublyStochasticClassifier(random_state=0).fit(train, labels)

    assert model.score(test, truth) >= SVC().fit(train, labels).score(test, truth)
    logs = -np.log(model.predict_proba(test)[np.arange(len(test)), truth]).mean()
    assert logs < 0.6  # even odds are at .69


@pytest.mark.parametrize("n_rows", [300, 2500])  # in double precision and in single
def test_regression_at_once_is_kernel_ridge(n_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n_rows)
    penalty = 1e-3

    found = DoublyStochasticRegressor(kernel=Gaussian(1.5), penalty=penalty, random_state=0).fit(X, y)

    gram, ones = Gaussian(1.5).correlation(X, X), np.ones((n_rows, 1))
    system = np.block([[gram + n_rows * penalty * np.eye(n_rows), ones], [ones.T, np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.append(y, 0.0))
    np.testing.assert_allclose(found.predict(X), gram @ solution[:-1] + solution[-1], atol=0.02 * y.std())


def test_classes_at_once_have_the_least_loss(monkeypatch):
    X, y = blobs(np.random.default_rng(0), 400)
    penalty, targets = 1e-3, np.eye(3)[np.searchsorted(["a", "b", "c"], y)]
    model = DoublyStochasticClassifier(kernel=Gaussian(1.5), penalty=penalty, random_state=0)
    found = clone(model).fit(X, y)

    monkeypatch.setattr(direct, "TOL", 1e-16)
    exact = clone(model).fit(X, y)

    coefficients = exact.fit_.functions.coefficients[0]
    gradient = Logistic().gradient(exact.fit_(X), targets) / 400 + penalty * coefficients
    assert np.linalg.norm(gradient) < 1e-4 * penalty * np.linalg.norm(coefficients)
    np.testing.assert_allclose(found.predict_proba(X), exact.predict_proba(X), atol=0.01)


def test_errors_of_rows_left_out_are_those_of_fits_without_them(rng):
    X = rng.normal(size=(25, 2))
    y, ridge, kernel = X[:, :1] + 0.1 * rng.normal(size=(25, 1)), 0.3, Gaussian(1.0)

    found = left_out_errors(kernel, X, y, np.array([ridge]))

    errors = []
    for i in range(25):
        rest = np.arange(25) != i
        gram, ones = kernel.correlation(X[rest], X[rest]), np.ones((24, 1))
        system = np.block([[gram + ridge * np.eye(24), ones], [ones.T, np.zeros((1, 1))]])
        solution = np.linalg.solve(system, np.append(y[rest], 0.0))
        errors.append((kernel.correlation(X[[i]], X[rest]) @ solution[:-1] + solution[-1] - y[i]) ** 2)
    np.testing.assert_allclose(found, np.mean(errors), rtol=1e-8)


@pytest.mark.parametrize("model", AT_ONCE, ids=repr)
def test_what_was_found_at_once_is_saved_and_goes_on_with_a_stream(model, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 2))
    y = (np.linalg.norm(X, axis=1) < 1.2).astype(float)
    model = clone(model).fit(X[:200], y[:200])
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))
    before = model.score(X[700:], y[700:])

    model.partial_fit(X[200:700], y[200:700])

    assert model.score(X[700:], y[700:]) > before - 0.02
    save(model, tmp_path / "later")
    np.testing.assert_array_equal(load(tmp_path / "later").predict(X), model.predict(X))


@pytest.mark.parametrize("model", AT_ONCE, ids=repr)
def test_at_once_is_the_same_in_other_array_libraries(model, rng):
    X, y = rng.normal(size=(120, 2)), np.arange(120) % 2

    found = clone(model).fit(strict.asarray(X), y).predict(strict.asarray(X))

    np.testing.assert_allclose(on_host(found), clone(model).fit(X, y).predict(X), atol=1e-8)


def test_what_asks_for_steps_gets_them(monkeypatch):
    X, y = blobs(np.random.default_rng(0), 200)
    steps = {"n_blocks": 1, "n_frequencies": 16, "random_state": 0}
    for asked in ({"n_epochs": 2}, {"early_stopping": True}, {"n_blocks": None}, {"loss": Hinge()}):
        assert hasattr(DoublyStochasticClassifier(**{**steps, **asked}).fit(X, y).fit_, "n_steps")
    assert not hasattr(DoublyStochasticClassifier(**steps).fit(X, y).fit_, "n_steps")
    monkeypatch.setattr(direct, "MOST", 100)  # the kernel between 200 rows is too large
    assert hasattr(DoublyStochasticClassifier(**steps).fit(X, y).fit_, "n_steps")


def test_the_log_of_no_probability_is_minus_infinity_in_silence(monkeypatch):
    monkeypatch.setattr(DoublyStochasticClassifier, "predict_proba", lambda self, X: np.array([[0.0, 1.0]]))
    with np.errstate(all="raise"):
        logs = DoublyStochasticClassifier().predict_log_proba([[0.0]])

    np.testing.assert_array_equal(logs, [[-np.inf, 0.0]])
