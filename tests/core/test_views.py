from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone

from latentviews.core.features.bins import BinnedFeatures
from latentviews.core.features.indicators import OneHotFeatures
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.borders import HalfLine
from latentviews.core.kernels.discrete import Delta
from latentviews.core.kernels.real import Gaussian
from latentviews.core.kernels.spaces import Discrete
from latentviews.core.views import ViewFits, feature_prototypes, features_for, fit_views
from latentviews.datasets import make_hmm, make_multiview
from latentviews.mixtures.mixture import MultiViewMixture
from latentviews.sequences.hmm import KernelHMM

COLUMNS = ([0], [1], [2])


@pytest.fixture
def fits(monkeypatch):
    """How often a map was fitted to the same rows with the same bandwidth."""
    found = Counter()

    def counting(kind):
        fit = kind.fit

        def counted(self, X, y=None):
            fit(self, X, y)
            found[kind.__name__, np.asarray(X).tobytes(), np.asarray(self.kernel_.bandwidth).tobytes()] += 1
            return self

        return counted

    for kind in (BinnedFeatures, LandmarkFeatures):
        monkeypatch.setattr(kind, "fit", counting(kind))
    return found


@pytest.mark.parametrize(("options", "count"), [({}, 6), ({"polish": None}, 3), ({"exchangeable": True}, 2)], ids=str)
def test_a_mixture_fits_its_feature_maps_once(options, count, fits):
    MultiViewMixture(2, random_state=0, **options).fit(make_multiview(400, 2, random_state=0).X)
    assert set(fits.values()) == {1}
    assert len(fits) == count  # two bandwidths of moments where a polish follows


def test_a_mixture_of_views_of_several_columns_fits_its_landmarks_once(fits):
    X = np.hstack([make_multiview(400, 2, random_state=0).X + shift for shift in (0.0, 3.0)])
    MultiViewMixture(2, views=[[0, 3], [1, 4], [2, 5]], random_state=0).fit(X)
    assert set(fits.values()) == {1}
    assert len(fits) == 9  # moments at two bandwidths, the densities of the starts; those of the answer need none


def test_a_chain_fits_its_feature_maps_once(fits):
    KernelHMM(2, random_state=0).fit(make_hmm(500, random_state=0).X)
    assert set(fits.values()) == {1}
    assert len(fits) == 5  # triples at two bandwidths, rows; pairs of rows that follow each other, at two widths


def test_a_chain_of_several_columns_fits_its_landmarks_once(fits):
    X = make_hmm(500, random_state=0).X
    KernelHMM(2, random_state=0).fit(np.hstack([X, X[::-1]]))
    assert set(fits.values()) == {1}


def test_maps_fitted_before_are_taken_as_they_are(rng):
    X = rng.normal(size=(100, 3))
    prototypes = [LandmarkFeatures(Gaussian("median"), 10), BinnedFeatures(Gaussian("silverman")), OneHotFeatures()]
    known = ViewFits(X, COLUMNS, range(3))
    first, again = known.views(prototypes, rng), known.views(prototypes, rng)
    assert all(a is b for a, b in zip(first.features, again.features, strict=True))

    others = known.views([clone(phi) for phi in prototypes], rng)
    assert not any(a is b for a, b in zip(first.features, others.features, strict=True))


def test_views_of_a_block_share_a_map_and_others_of_the_same_prototype_do_not(rng):
    X = rng.normal(size=(50, 3))
    views = fit_views(X, COLUMNS, [BinnedFeatures(Gaussian("silverman"))] * 3, rng, [0, 1, 0])
    assert views.features[0] is views.features[2]
    assert views.features[0] is not views.features[1]


def test_a_map_fitted_before_draws_no_less_than_a_new_one(rng):
    """So that what follows is the same however often the views are asked for."""
    X, prototypes = rng.normal(size=(50, 3)), [LandmarkFeatures(Gaussian("median"), 5)] * 3
    known, twice, afresh = ViewFits(X, COLUMNS, range(3)), *(np.random.default_rng(0) for _ in range(2))
    for _ in range(2):
        known.views(prototypes, twice)
        fit_views(X, COLUMNS, prototypes, afresh, range(3))
    assert twice.random() == afresh.random()


def test_rare_codes_outside_the_pilot_are_features_too(rng):
    codes = np.tile(np.arange(4.0)[:, None], (5, 3))
    pilot = codes[codes[:, 0] < 3]
    views = ViewFits(pilot, COLUMNS, range(3), codes).views([OneHotFeatures()] * 3, rng)
    assert [len(phi.categories_) for phi in views.features] == [4, 4, 4]


class Ranks(Kernel):
    """A kernel of somebody's own on a few values."""

    space = Discrete()

    def gram(self, x, y):
        return 0.5 ** np.abs(x - y.T)


def test_the_space_of_a_kernel_decides_its_map():
    assert isinstance(features_for(Ranks(), 1), OneHotFeatures)
    assert isinstance(features_for(Delta(), 2), OneHotFeatures)
    assert isinstance(features_for(Gaussian(space=HalfLine()), 1), BinnedFeatures)
    assert isinstance(features_for(Gaussian(), 2), LandmarkFeatures)


def test_a_space_in_place_of_a_kernel_is_told_where_to_go():
    with pytest.raises(
        TypeError, match=r"got HalfLine\(\)\. A space goes into a kernel: Gaussian\(space=HalfLine\(\)\)"
    ):
        feature_prototypes(HalfLine(), None, None, ([0],))


@pytest.mark.parametrize(
    ("n_kernels", "columns", "sentence"),
    [
        (2, ([0, 1],), r"got 2 for 1 views\. For one per column, pass views=\[\[0\], \[1\]\]\.$"),
        (4, ([0, 1], [2, 3]), r"got 4 for 2 views\. For one per column, pass views=\[\[0\], \[1\], \[2\], …\]\.$"),
        (3, ([0, 1],), r"got 3 for 1 views\.$"),
    ],
)
def test_kernels_of_columns_ask_for_views_of_columns(n_kernels, columns, sentence):
    with pytest.raises(ValueError, match=sentence):
        feature_prototypes([Gaussian()] * n_kernels, None, None, columns)
