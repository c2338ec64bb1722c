"""Losses whose minimum tells two samples apart: the ratio of their densities, and where one is thin."""

import numpy as np
import pytest
from scipy import stats

from latentviews import DoublyStochasticRegressor, Gaussian
from latentviews.losses import DensityRatio, Novelty

P, Q = np.array([1, 4, 3]), np.array([2, 1, 5])  # how often three values come in either sample


def counted():
    """The value and the target of every row."""
    values = np.concatenate([np.repeat(range(3), P), np.repeat(range(3), Q)])
    return values, np.repeat([1.0, 0.0], [P.sum(), Q.sum()])[:, None]


def slopes(loss, scores):
    """The derivative of the mean loss by the score of every value."""
    values, targets = counted()
    gradient = loss.gradient(np.asarray(scores, dtype=float)[values][:, None], targets)[:, 0]
    return np.bincount(values, gradient) / len(values)


def test_the_ratio_of_densities_has_no_slope_and_least_loss():
    values, targets = counted()
    ratio = (P / P.sum()) / (Q / Q.sum())
    loss = DensityRatio(share=P.sum() / (P.sum() + Q.sum()))

    np.testing.assert_allclose(slopes(loss, ratio), 0.0, atol=1e-15)
    least = loss.value(ratio[values][:, None], targets)
    assert least == pytest.approx(-0.5 * np.sum(ratio * P / P.sum()))  # E_q[r²] / 2 − E_p[r]
    for step in 0.1 * np.vstack([np.eye(3), -np.eye(3)]):
        assert loss.value((ratio + step)[values][:, None], targets) > least


@pytest.mark.parametrize("level", [0.4, 1.0, 2.0])
def test_what_is_novel_is_where_the_density_is_below_the_level(level):
    loss = Novelty(level, share=0.5)
    expected = np.sign(P / P.sum() - level * Q / Q.sum())

    assert P.sum() == Q.sum()  # as the share says
    inward = slopes(loss, 0.5 * expected)  # any score of the right side but too small is pushed outward
    np.testing.assert_array_equal(np.sign(-inward), expected)
    np.testing.assert_array_equal(np.sign(slopes(loss, 1.5 * expected)), expected)  # and a larger one back


def two_normals(rng, n_rows=1500):
    """Rows of N(0.5, 1) with target 1 and of N(0, 1) with 0."""
    rows = np.concatenate([rng.normal(0.5, size=n_rows), rng.normal(size=n_rows)])[:, None]
    return rows, np.repeat([1.0, 0.0], n_rows)


@pytest.mark.parametrize("options", [{}, {"n_epochs": 10, "n_blocks": 4}], ids=["at once", "by steps"])
def test_the_ratio_of_two_normals_is_found(options, rng):
    grid = np.linspace(-1.5, 2, 50)
    exact = stats.norm.pdf(grid, 0.5) / stats.norm.pdf(grid)

    model = DoublyStochasticRegressor(loss=DensityRatio(), random_state=0, **options).fit(*two_normals(rng))

    assert np.sqrt(np.mean((model.predict(grid[:, None]) - exact) ** 2)) < 0.2  # of a spread of .54


def test_rows_far_from_a_sample_are_novel(rng):
    known = rng.normal(size=(1500, 2))
    reference = rng.uniform(-5, 5, size=(1500, 2))
    X, y = np.concatenate([known, reference]), np.repeat([1.0, 0.0], 1500)

    model = DoublyStochasticRegressor(loss=Novelty(0.3), kernel=Gaussian(1.0), n_blocks=4, random_state=0).fit(X, y)

    ahead = rng.uniform(-5, 5, size=(2000, 2))
    inside = np.exp(-0.5 * np.sum(ahead**2, axis=1)) / (2 * np.pi) > 0.3 / 100
    assert np.mean((model.predict(ahead) > 0) == inside) > 0.95


@pytest.mark.parametrize("options", [{}, {"n_epochs": 2}], ids=["at once", "by steps"])
def test_targets_other_than_of_two_samples_are_refused(options, rng):
    model = DoublyStochasticRegressor(loss=DensityRatio(), random_state=0, **options)

    with pytest.raises(ValueError, match="DensityRatio takes targets 1 and 0"):
        model.fit(rng.normal(size=(50, 1)), rng.normal(size=50))


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (DensityRatio(1.0), r"share must be between 0 and 1; got 1\.0"),
        (Novelty(0.0), "level must be"),
        (Novelty(0.1, share=2.0), r"share must be between 0 and 1; got 2\.0"),
    ],
)
def test_shares_and_levels_are_checked(loss, message, rng):
    with pytest.raises(ValueError, match=message):
        DoublyStochasticRegressor(loss=loss, random_state=0).fit(rng.normal(size=(40, 1)), np.repeat([1.0, 0.0], 20))
