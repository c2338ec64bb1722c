"""Rows on a device that NumPy cannot read: array-api-strict has such devices, as a GPU is."""

import array_api_strict as strict
import numpy as np
import pytest

from latentviews import (
    DoublyStochasticClassifier,
    DoublyStochasticPCA,
    DoublyStochasticRegressor,
    KernelHMM,
    LandmarkPCA,
    LowRankDensity,
    MultiViewMixture,
    PredictiveStateModel,
    Sieve,
)
from latentviews._arrays import to_numpy

QUICK = Sieve(factors=(2.0,), max_iter=20)
MODELS = {
    "spectral mixture": (MultiViewMixture(2, polish=None), "predict_proba"),
    "polished mixture": (MultiViewMixture(2, polish=QUICK, pilot_size=200), "predict_proba"),
    "dependent mixture": (MultiViewMixture(2, dependence="copula"), "predict_proba"),
    "density": (LowRankDensity(), "score_samples"),
    "chain": (KernelHMM(2, polish=QUICK), "predict_proba"),
    "predictive states": (PredictiveStateModel(), "filter"),
    "landmarks": (LandmarkPCA(2), "transform"),
    "stream of components": (DoublyStochasticPCA(2), "transform"),
    "classifier": (DoublyStochasticClassifier(), "predict_proba"),
    "regressor": (DoublyStochasticRegressor(), "predict"),
}


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_another_device_give_the_same_model(name):
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=400)
    X = rng.normal(size=(400, 3)) + 2 * labels[:, None]
    model, method = MODELS[name]
    there = strict.asarray(X, device=strict.Device("device1"))
    here, other = (
        to_numpy(getattr(model.set_params(random_state=0).fit(rows, labels), method)(rows)) for rows in (X, there)
    )
    np.testing.assert_allclose(other, here, atol=1e-8)
