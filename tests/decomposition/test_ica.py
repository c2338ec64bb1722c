"""Sources are exact from exact cumulants, whatever the signs of their kurtoses, and near from rows."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import FunctionTransformer

from latentviews import Gaussian, KernelICA, LandmarkFeatures, Polynomial
from latentviews._validation import IdentifiabilityWarning
from latentviews.decomposition.cumulants import MATRICES, eigenmatrices, fourth_cumulants, rotation_of
from latentviews.metrics import amari_error


def orthogonal(rng, k):
    return np.linalg.qr(rng.normal(size=(k, k)))[0]


def drawn(rng, n_rows):
    """Sources of positive, negative and hardly any kurtosis, of variance one."""
    return np.column_stack(
        [
            rng.laplace(size=n_rows) / np.sqrt(2),
            rng.uniform(-np.sqrt(3), np.sqrt(3), size=n_rows),
            (rng.choice([-1.0, 1.0], size=n_rows) + 0.4 * rng.normal(size=n_rows)) / np.sqrt(1.16),
        ]
    )


@pytest.mark.cheap
@pytest.mark.parametrize("kurtoses", [[3.0, 2.0, 1.0], [3.0, -1.2, -0.5, 1.0], [-1.0, -1.1, 0.0]], ids=repr)
def test_exact_cumulants_give_exact_sources(kurtoses, rng):
    truth = orthogonal(rng, len(kurtoses))
    cumulants = np.einsum("h,ah,bh,ch,dh->abcd", kurtoses, truth, truth, truth, truth)

    vectors, found = rotation_of(cumulants, rng)

    order = np.argsort(-np.abs(kurtoses), kind="stable")
    np.testing.assert_allclose(found, np.array(kurtoses)[order], atol=1e-8)
    np.testing.assert_allclose(np.abs(vectors.T @ truth[:, order]), np.eye(len(kurtoses)), atol=1e-8)


@pytest.mark.cheap
@pytest.mark.parametrize("k", [4, 21])
def test_few_matrices_are_as_far_from_diagonal_as_all_contractions(k, rng):
    cumulants = fourth_cumulants(rng.normal(size=(50, k)))
    every = cumulants.reshape(k * k, k * k)

    found = eigenmatrices(cumulants).reshape(-1, k * k)

    assert len(found) == min(k * (k + 1) // 2, MATRICES)
    np.testing.assert_allclose(
        found.T @ found, every @ every, atol=0.03 * np.abs(every @ every).max() * (k > 19) + 1e-9
    )


@pytest.mark.cheap
def test_cumulants_are_moments_less_those_of_a_gaussian(rng):
    """On rows that are every combination of signs the sources are independent exactly, with kurtosis −2."""
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    turn = orthogonal(rng, 3)

    cumulants = fourth_cumulants(signs @ turn.T)

    expected = -2 * np.einsum("ah,bh,ch,dh->abcd", turn, turn, turn, turn)
    np.testing.assert_allclose(cumulants, expected, atol=1e-12)


@pytest.mark.cheap
def test_mixed_signs_are_unmixed_exactly(rng):
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T
    mixing = rng.normal(size=(5, 4))

    x = signs @ mixing.T + 7.0

    with pytest.warns(IdentifiabilityWarning):  # sixteen rows are few to tell a kurtosis by
        model = KernelICA(polish=False, random_state=0).fit(x)

    assert amari_error(model.components_ @ mixing) < 1e-8
    np.testing.assert_allclose(model.inverse_transform(model.transform(x)), x, atol=1e-9)
    np.testing.assert_allclose(model.mixing_ @ model.components_ @ mixing, mixing, atol=1e-9)
    np.testing.assert_allclose(np.abs(model.transform(x)), 1.0, atol=1e-9)


def test_the_likelihood_has_a_better_last_word_than_the_cumulants(rng):
    errors = {True: [], False: []}
    for seed in range(5):
        sources, mixing = drawn(rng, 2000), rng.normal(size=(3, 3))
        for polish in errors:
            model = KernelICA(polish=polish, random_state=seed).fit(sources @ mixing.T)
            errors[polish].append(amari_error(model.components_ @ mixing))

    assert np.mean(errors[True]) < 0.02
    assert np.mean(errors[True]) < 0.7 * np.mean(errors[False])


def test_the_answer_does_not_depend_on_the_units_of_the_columns(rng):
    x = drawn(rng, 500) @ rng.normal(size=(3, 3))
    scale = np.array([1e-6, 1.0, 1e6])

    small, large = (KernelICA(random_state=0).fit_transform(rows) for rows in (x, x * scale))

    np.testing.assert_allclose(np.abs(np.corrcoef(small.T, large.T)[:3, 3:]).max(axis=1), 1.0, atol=1e-6)


def test_two_gaussian_sources_are_said_to_be_beyond_telling(rng):
    x = np.column_stack([rng.normal(size=(2000, 2)), rng.uniform(size=2000)])

    with pytest.warns(IdentifiabilityWarning, match="2 sources have the kurtosis of a Gaussian"):
        KernelICA(random_state=0).fit(x)


def test_with_a_kernel_sources_are_directions_of_its_features(rng):
    x = drawn(rng, 1500)[:, :2]

    model = KernelICA(2, kernel=Gaussian("median"), random_state=0).fit(x)
    found = model.transform(x)

    np.testing.assert_allclose(np.cov(found.T, bias=True), np.eye(2), atol=1e-8)
    with pytest.raises(ValueError, match="inverse_transform needs kernel=None"):
        model.inverse_transform(found)


def test_the_mixing_is_found_where_features_undo_what_was_done_to_the_blends(rng):
    """φ(x) = A s + mean in the space of the features, of columns that are no blends themselves."""
    sources, mixing = drawn(rng, 4000), rng.normal(size=(3, 3))
    x = np.sinh(sources @ mixing.T)

    model = KernelICA(features=FunctionTransformer(np.arcsinh), random_state=0).fit(x)

    assert amari_error(model.components_ @ mixing) < 0.02
    assert amari_error(np.linalg.pinv(model.mixing_) @ mixing) < 0.02
    assert amari_error(KernelICA(random_state=0).fit(x).components_ @ mixing) > 0.05


def test_cumulants_say_what_the_classical_eigenvectors_say(rng):
    """Cardoso's quadricovariance and FOBI: where kurtoses differ, E[|z|² z zᵀ] has the sources as its eigenvectors."""
    grids = [[-1.0, 1.0], [-1.5, 0.0, 1.5], [-2.0, -0.5, 0.5, 2.0]]  # of other kurtoses, every combination once
    sources = np.array(np.meshgrid(*grids)).reshape(3, -1).T
    mixing = rng.normal(size=(3, 3))
    x = np.tile(sources @ mixing.T, (40, 1))

    centred = x - x.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(centred.T, bias=True))
    z = centred @ vectors / np.sqrt(values)
    classical = np.linalg.eigh((z * (z**2).sum(axis=1, keepdims=True)).T @ z)[1].T @ (vectors / np.sqrt(values)).T
    model = KernelICA(polish=False, random_state=0).fit(x)

    np.testing.assert_allclose(np.abs(model.components_ @ np.linalg.inv(classical)).max(axis=1), 1.0, atol=1e-8)
    assert amari_error(model.components_ @ np.linalg.inv(classical)) < 1e-8
    assert amari_error(model.components_ @ mixing) < 1e-8


def test_more_directions_than_can_be_searched_are_told(rng, monkeypatch):
    monkeypatch.setattr("latentviews.decomposition.ica.MOST", 3)

    with pytest.warns(IdentifiabilityWarning, match="vary in 4 directions; the sources are sought in the 3"):
        model = KernelICA(polish=False, random_state=0).fit(rng.laplace(size=(500, 4)))
    assert model.components_.shape == (3, 4)


def test_an_unfinished_search_is_told(rng):
    x = drawn(rng, 500) @ rng.normal(size=(3, 3))

    with pytest.warns(ConvergenceWarning, match="still turn after max_iter = 1 steps"):
        KernelICA(max_iter=1, random_state=0).fit(x)


def test_sources_that_are_no_numbers_are_a_sentence(rng):
    model = KernelICA(random_state=0).fit(drawn(rng, 500))

    with pytest.raises(ValueError, match="Sources must hold real numbers"):
        model.inverse_transform([["a", "b", "c"]])


def test_the_linear_features_of_a_kernel_are_ordinary_ica(rng):
    """A polynomial of degree one without a constant is the linear kernel, so its features hold the same sources."""
    x = drawn(rng, 1000) @ rng.normal(size=(3, 3))
    x = x - x.mean(axis=0)

    plain = KernelICA(random_state=0).fit_transform(x)
    kernel = KernelICA(3, kernel=Polynomial(1, offset=0.0), random_state=0).fit_transform(x)

    np.testing.assert_allclose(np.abs(np.corrcoef(plain.T, kernel.T)[:3, 3:]).max(axis=1), 1.0, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 4}, "The rows vary in 3 directions, so no more .* n_components asks for 4"),
        ({"kernel": Gaussian(), "features": LandmarkFeatures()}, "Pass kernel or features, not both"),
        ({"features": Gaussian()}, "features must be an object with a method `transform`"),
        ({"n_components": 0}, "n_components must be an integer of at least 1"),
        ({"tol": 0.0}, "tol must be"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(options, message, rng):
    with pytest.raises((ValueError, TypeError), match=message):
        KernelICA(**options).fit(rng.laplace(size=(50, 3)))


def test_a_constant_table_has_no_sources():
    with pytest.raises(ValueError, match="vary in 0 directions"):
        KernelICA().fit(np.ones((20, 3)))
