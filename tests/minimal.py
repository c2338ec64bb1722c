"""A fit with nothing but the library's own dependencies: ``make wheel`` runs this against the built wheel."""

import importlib.util
import tempfile
from pathlib import Path

import numpy as np

import latentviews
from latentviews import MultiViewMixture, load, save
from latentviews.datasets import make_multiview
from latentviews.metrics import label_accuracy

assert "site-packages" in latentviews.__file__, f"not the built wheel, but {latentviews.__file__}"
assert all(importlib.util.find_spec(name) is None for name in ("matplotlib", "pandas", "pyarrow")), (
    "not a minimal install"
)
X, y, _ = make_multiview(1000, 3, random_state=0)
model = MultiViewMixture(3, random_state=0).fit(X)
assert label_accuracy(y, model.predict(X)) > 0.95
path = Path(tempfile.mkdtemp()) / "model.latentviews"
save(model, path)
assert np.array_equal(load(path).predict(X), model.predict(X))
