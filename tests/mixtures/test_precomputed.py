"""Views of objects that are known by a Gram matrix or a function: classes without densities."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from latentviews import Gaussian, KernelHMM, LandmarkFeatures, MultiViewMixture, Precomputed, load, save, spectrum_gram
from latentviews.core.embeddings import Embedding
from latentviews.core.kernels.base import UnitHeight
from latentviews.metrics import label_accuracy
from latentviews.mixtures.functionals import class_functionals, functional_posteriors

VIEWS = [[0, 1], [2, 3], [4, 5]]
IDS = np.tile(np.arange(300.0)[:, None], (1, 3))


@pytest.fixture(scope="module")
def objects():
    """Rows in two classes, and the Gram matrix of every view."""
    rng = np.random.default_rng(0)
    y = rng.choice(2, size=300, p=[0.6, 0.4])
    X = rng.normal(size=(300, 6)) + 2.5 * y[:, None]
    kernel = UnitHeight(Gaussian(1.5))
    return X, y, [Precomputed(kernel.gram(X[:, view], X[:, view])) for view in VIEWS]


def test_functionals_are_the_indicators_of_the_classes_on_average(rng):
    phi = LandmarkFeatures(Precomputed(np.eye(6) + 0.2), None).fit(np.arange(6.0)[:, None])
    laws = [rng.dirichlet(np.ones(6), size=3).T for _ in range(3)]  # P(object | class), (6, 3)
    every = phi.transform(np.arange(6.0)[:, None])
    components = [Embedding(None, phi, every.T @ law) for law in laws]

    for t, law in enumerate(laws):
        values = class_functionals(np.tile(np.arange(6.0)[:, None], (1, 3)), ([0], [1], [2]), components, [t])
        np.testing.assert_allclose(law.T @ values, np.eye(3), atol=1e-9)


def test_posteriors_by_functionals_are_probabilities_and_the_weights_where_nothing_is_known(rng):
    phi = LandmarkFeatures(Precomputed(np.eye(4)), None).fit(np.arange(4.0)[:, None])
    components = [Embedding(None, phi, rng.dirichlet(np.ones(4), size=2).T) for _ in range(3)]
    table = np.array([[0.0, 1.0, np.nan], [np.nan, np.nan, np.nan]])

    found = functional_posteriors(table, ([0], [1], [2]), components, [0, 1, 2], np.array([0.7, 0.3]))

    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert found.min() > 0
    np.testing.assert_allclose(found[1], [0.7, 0.3])


@pytest.mark.parametrize("polish", [None, "auto"])
def test_a_gram_matrix_is_as_good_as_the_kernel_that_it_is_of(objects, polish):
    X, y, kernels = objects
    explicit = MultiViewMixture(2, views=VIEWS, kernel=UnitHeight(Gaussian(1.5)), polish=polish, random_state=0).fit(X)

    model = MultiViewMixture(2, kernel=kernels, polish=polish, random_state=0).fit(IDS)

    np.testing.assert_allclose(model.predict_proba(IDS), explicit.predict_proba(X), atol=1e-6)
    assert label_accuracy(y, model.predict(IDS)) > 0.95


def test_a_function_is_a_kernel(objects):
    X, y, _ = objects

    def alike(x, z):
        return np.exp(-0.5 * ((x[:, None, :] - z[None, :, :]) ** 2).sum(axis=2) / 1.5**2)

    model = MultiViewMixture(2, views=VIEWS, kernel=alike, random_state=0).fit(X)

    assert label_accuracy(y, model.predict(X)) > 0.95


@pytest.mark.parametrize("polish", [None, "auto"])
def test_objects_have_posteriors_but_no_density_and_missing_ones_are_left_out(objects, polish, tmp_path):
    _, y, kernels = objects
    model = MultiViewMixture(2, kernel=kernels, polish=polish, random_state=0).fit(IDS)
    some = IDS.copy()
    some[::3, 0] = np.nan
    some[0] = np.nan

    found = model.predict_proba(some)

    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(found[0], model.weights_, atol=1e-6)
    assert label_accuracy(y, found.argmax(axis=1)) > 0.9
    with pytest.raises(TypeError, match="have no density"):
        model.score_samples(IDS)
    with pytest.raises(TypeError, match="have no density"):
        model.sample(3)
    save(model, tmp_path / "objects.lv")
    np.testing.assert_array_equal(load(tmp_path / "objects.lv").predict_proba(IDS), model.predict_proba(IDS))


def test_objects_and_numbers_may_be_views_of_one_model(objects):
    X, y, kernels = objects
    table = np.column_stack([IDS[:, :2], X[:, 4]])

    model = MultiViewMixture(2, kernel=[*kernels[:2], Gaussian()], random_state=0).fit(table)

    assert label_accuracy(y, model.predict(table)) > 0.95
    assert model.components_[2].density([0.0]).shape == (1, 2)


def test_views_of_a_block_share_their_coordinates_and_known_classes_their_names(objects):
    X, y, _ = objects
    every = np.concatenate([X[:, view] for view in VIEWS])
    kernel = Precomputed(UnitHeight(Gaussian(1.5)).gram(every, every))
    table = np.arange(900.0).reshape(3, 300).T
    known = np.where(np.arange(300) < 50, 1 - y, -1)  # class 1 is the larger

    model = MultiViewMixture(2, kernel=kernel, exchangeable=True, random_state=0).fit(table, known)

    assert np.mean(model.predict(table) == 1 - y) > 0.95
    assert model.components_[0].inside is model.components_[1].inside


def test_digits_in_three_thirds_are_told_by_gram_matrices():
    pixels, digits = load_digits(n_class=5, return_X_y=True)
    X = pixels[:600] / 16
    X, y = X[:, X.std(axis=0) > 0.02], digits[:600]
    views = [part.tolist() for part in np.array_split(np.arange(X.shape[1]), 3)]
    kernels = [Precomputed(k.gram(X[:, v], X[:, v])) for v in views for k in [Gaussian("median").adapt(X[:, v])]]
    ids = np.tile(np.arange(600.0)[:, None], (1, 3))

    found = MultiViewMixture(5, kernel=kernels, random_state=0).fit(ids).predict(ids)

    assert label_accuracy(y, found) >= 0.905  # as the kernel on pixels does in canonical directions alone


UNEVEN = np.array([[1.0, 0.5], [0.2, 1.0]])


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        (UNEVEN, r"symmetric; here k\(0, 1\) = 0.5 and k\(1, 0\) = 0.2"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "no negative eigenvalue; the least of this one is -1, the largest 3"),
        (np.ones((2, 3)), r"as many rows as columns; got shape \(2, 3\)"),
        (np.full((2, 2), np.nan), "finite entries"),
        (np.zeros((2, 2)), "All entries of a Gram matrix are zero"),
        (np.ones((2, 2)), "view 0 finds all objects alike, so it tells no classes"),
        (np.eye(2) + 1j, "real numbers as entries; this one has dtype complex128"),
        (np.full((2, 2), "alike"), "real numbers as entries; this one has dtype <U5"),
    ],
)
def test_a_matrix_that_is_no_gram_matrix_is_a_sentence(matrix, sentence, rng):
    table = rng.integers(2, size=(20, 3)).astype(float)

    with pytest.raises((TypeError, ValueError), match=sentence):
        MultiViewMixture(2, kernel=Precomputed(matrix)).fit(table)


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda a, b: a - b, r"the same in either order; here k\(1, 0\) = 1 and k\(0, 1\) = -1"),
        (lambda a, b: "alike", "is one number; for objects 0 and 0 it is 'alike'"),
        (3.0, "takes objects and a function of two of them; got 3.0"),
    ],
)
def test_a_function_of_two_objects_that_is_no_kernel_is_a_sentence(function, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        Precomputed.of([1.0, 2.0, 4.0], function)


def test_a_function_of_two_objects_may_say_whether_they_are_equal():
    np.testing.assert_array_equal(Precomputed.of(np.array([1, 2, 1]), lambda a, b: a == b).matrix[0], [1, 0, 1])


def test_few_objects_have_few_coordinates(rng):
    """Densities of ten coordinates lost one in twelve of a hundred strings that functionals tell without a fault."""
    words, accuracy = [["ATG", "GCC", "AAA", "CTG"], ["TGA", "GCG", "AAA", "CTT"]], []
    for seed in range(3):
        draw = np.random.default_rng(seed)
        kinds = draw.choice(2, p=[0.6, 0.4], size=100)
        reads = [["".join(draw.choice(words[kind], size=4)) for kind in kinds] for _ in range(3)]
        kernels = [Precomputed(spectrum_gram(some)) for some in reads]
        model = MultiViewMixture(2, kernel=kernels, random_state=0).fit(IDS[:100])
        accuracy.append(label_accuracy(kinds, model.predict(IDS[:100])))

    assert np.mean(accuracy) > 0.98


def test_a_class_of_kernels_is_no_kernel(objects):
    X, _, _ = objects

    with pytest.raises(TypeError, match=r"Gaussian is a class, and a kernel one of its objects; write Gaussian\(\)"):
        MultiViewMixture(2, kernel=Gaussian).fit(X)


@pytest.mark.parametrize("strange", [300.0, -1.0, 2.5])
def test_unknown_numbers_of_objects_are_a_sentence(objects, strange):
    _, _, kernels = objects
    model = MultiViewMixture(2, kernel=kernels, polish=None, random_state=0).fit(IDS)

    with pytest.raises(ValueError, match=f"numbers of objects, 0 to 299 for this matrix; got {strange:g}"):
        model.predict(np.full((1, 3), strange))


def test_two_columns_are_no_numbers_of_objects(objects):
    _, _, kernels = objects

    with pytest.raises(ValueError, match="has one column, the numbers of the objects; got 2"):
        MultiViewMixture(2, views=[[0, 1], [2], [3]], kernel=kernels).fit(np.column_stack([IDS, IDS[::-1, 0]]))


def test_a_function_of_the_wrong_shape_is_a_sentence(objects):
    X, _, _ = objects

    with pytest.raises(ValueError, match=r"for 50 and 50 rows it gave shape \(50,\)"):
        MultiViewMixture(2, views=VIEWS, kernel=lambda x, z: x[:, 0]).fit(X)


def test_states_need_densities(objects):
    _, _, kernels = objects

    with pytest.raises(TypeError, match="States are told by their emission densities, and Precomputed has none"):
        KernelHMM(2, kernel=kernels[0]).fit(IDS[:, :1])
