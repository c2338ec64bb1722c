"""Blocks of frequencies by Hadamard matrices: kernels on average, and the same wherever rows are."""

import array_api_strict
import numpy as np
import pytest
from sklearn.datasets import load_digits

from latentviews import DoublyStochasticClassifier, DoublyStochasticPCA, Gaussian, Laplace, Matern, load, save
from latentviews._arrays import to_numpy
from latentviews.stochastic.expansions import RandomBlocks


@pytest.mark.cheap
@pytest.mark.parametrize("kernel", [Gaussian(2.0), Matern(2.0, 1.5)], ids=repr)
def test_blocks_are_the_kernel_on_average(kernel, rng):
    x = rng.normal(size=(5, 12))
    blocks = RandomBlocks(kernel, 12, 32, seed=3, selection="fastfood")

    products = np.array([blocks(x, j) @ blocks(x, j).T for j in range(300)])

    error = products.std(axis=0) / np.sqrt(300) + 1e-12
    expected = kernel.gram(x, x) / kernel.diagonal(x[:1])
    assert np.all(np.abs(products.mean(axis=0) - expected) < 4.5 * error)


@pytest.mark.cheap
def test_blocks_are_those_of_rows_elsewhere_and_of_blocks_that_were_kept(rng):
    x = rng.normal(size=(6, 20))
    blocks = RandomBlocks(Gaussian(1.0), 20, 16, seed=1, selection="fastfood")
    kept = RandomBlocks(Gaussian(1.0), 20, 16, seed=1, keep=10**6, selection="fastfood")

    there = blocks(array_api_strict.asarray(x), 2)

    np.testing.assert_allclose(to_numpy(there), blocks(x, 2), atol=1e-13)
    for _ in range(2):
        np.testing.assert_array_equal(kept(x, 2), blocks(x, 2))
    assert not np.allclose(blocks(x, 2), blocks(x, 1))


def test_a_classifier_by_hadamard_blocks_knows_digits(tmp_path):
    X, y = load_digits(return_X_y=True)
    options = {"n_epochs": 3, "n_blocks": 4, "n_frequencies": 64, "random_state": 0}
    model = DoublyStochasticClassifier(selection="fastfood", **options).fit(X[:1000], y[:1000])
    dense = DoublyStochasticClassifier(**options).fit(X[:1000], y[:1000])

    assert model.score(X[1000:], y[1000:]) > max(dense.score(X[1000:], y[1000:]) - 0.03, 0.9)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X[:50]), model.predict_proba(X[:50]))


def test_kernel_pca_by_hadamard_blocks_is_that_by_others(rng):
    stream = [rng.normal(size=(512, 9)) * [2, 1.5, *[0.1] * 7] for _ in range(12)]
    fits = [
        DoublyStochasticPCA(2, kernel=Gaussian(2.0), selection=selection, n_frequencies=128, random_state=0).fit(stream)
        for selection in ("auto", "fastfood")
    ]

    np.testing.assert_allclose(fits[1].explained_variance_, fits[0].explained_variance_, rtol=0.1)
    first = [fit.transform(stream[0])[:, 0] for fit in fits]
    assert np.abs(np.corrcoef(*first)[0, 1]) > 0.95


@pytest.mark.cheap
def test_kernels_that_are_no_function_of_the_distance_are_refused(rng):
    model = DoublyStochasticClassifier(kernel=Laplace(1.0), selection="fastfood", n_epochs=1)

    with pytest.raises(TypeError, match="needs a kernel of the distance alone"):
        model.fit(rng.normal(size=(40, 9)), rng.integers(0, 2, size=40))
    with pytest.raises(ValueError, match=r"selection must be one of \['auto', 'fastfood'\]; got 'x'"):
        DoublyStochasticPCA(selection="x").fit(rng.normal(size=(40, 9)))
