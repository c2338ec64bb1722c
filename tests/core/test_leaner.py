"""Projections from fewer landmarks, beside those from all of them."""

import numpy as np
import pytest

from latentviews.core import leaner as module
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.real import Gaussian
from latentviews.core.leaner import LEFT, leaner
from latentviews.core.moments import Projection, pair_moments
from latentviews.core.spectral import spectral_fit
from latentviews.core.tensors import JointDiagonalization
from latentviews.core.views import Views
from latentviews.core.whitening import whiten, whiten_exchangeable

COLUMNS = ([0, 1], [2, 3], [4, 5])
ROWS = 12_000


def rows_of(rng, means=None):
    """Three classes in three views of two columns; the same in all views where means are given."""
    labels = rng.integers(3, size=ROWS)
    centres = [2 * rng.normal(size=(3, 2)) if means is None else means for _ in COLUMNS]
    return np.hstack([rng.normal(size=(ROWS, 2)) + centre[labels] for centre in centres])


def landmarks(rows, size=64):
    return LandmarkFeatures(Gaussian("median"), size, random_state=0).fit(rows)


def views_of(rows):
    return Views(COLUMNS, tuple(landmarks(rows[:, columns]) for columns in COLUMNS))


def numbers(views):
    return [len(phi.landmarks_) for phi in views.features]


@pytest.mark.parametrize("weighted", [False, True])
def test_fewer_landmarks_project_the_pilot_the_same_to_a_hundredth(weighted, rng):
    rows = rows_of(rng)
    weights = rng.exponential(size=ROWS) if weighted else None
    views = views_of(rows)
    whitening = whiten(pair_moments(rows, views, weights), 3)

    fewer, found = leaner(views, whitening, rows, weights)

    assert max(numbers(fewer)) < 40
    before, after = (Projection(*pair)(rows) for pair in parts(views, whitening, fewer, found))
    for one, other in zip(before, after, strict=True):
        left = np.average((one - other) ** 2, axis=0, weights=weights) / np.average(one**2, axis=0, weights=weights)
        assert np.sqrt(left).max() < 2 * LEFT  # judged on some of the rows


def parts(views, whitening, fewer, found):
    return (views, whitening.groups, whitening.down), (fewer, found.groups, found.down)


def test_a_lean_pass_finds_the_same_classes(rng):
    rows = rows_of(rng)
    views = views_of(rows)

    exact, lean = (
        spectral_fit(rows, views, 3, JointDiagonalization(), rng, pilot=(rows, None), lean=lean)
        for lean in (False, True)
    )

    assert max(numbers(lean.embed)) < 40
    assert exact.embed is views
    np.testing.assert_allclose(lean.weights, exact.weights, rtol=2e-3)  # a fraction of 1/√n
    for one, other in zip(lean.vectors, exact.vectors, strict=True):
        assert np.linalg.norm(one - other) < 5e-3 * np.linalg.norm(other)
    np.testing.assert_array_equal(lean.whitening.spectrum, exact.whitening.spectrum)


def test_views_that_share_a_map_share_fewer_landmarks_and_their_projection(rng):
    rows = rows_of(rng, 2 * rng.normal(size=(3, 2)))
    views = Views(COLUMNS, (landmarks(np.vstack([rows[:, columns] for columns in COLUMNS])),) * 3)

    fewer, found = leaner(views, whiten_exchangeable(pair_moments(rows, views), 3), rows)

    assert numbers(fewer)[0] < 64
    assert len({id(phi) for phi in fewer.features}) == 1
    for down in found.down[1:]:
        np.testing.assert_allclose(down, found.down[0], rtol=1e-9)


def test_missing_views_do_not_count(rng):
    rows = rows_of(rng)
    views = views_of(rows)
    whitening = whiten(pair_moments(rows, views), 3)
    rows[: ROWS // 2, :2] = np.nan

    fewer, found = leaner(views, whitening, rows)

    assert max(numbers(fewer)) < 64
    assert all(np.isfinite(down).all() for down in found.down)


def test_small_pilots_and_more_landmarks_are_left_as_they_are(rng, monkeypatch):
    rows = rows_of(rng)
    views = views_of(rows)
    whitening = whiten(pair_moments(rows, views), 3)

    assert leaner(views, whitening, rows[:9_999]) == (views, whitening)
    monkeypatch.setattr(module, "MOST", 63)
    assert leaner(views, whitening, rows) == (views, whitening)
