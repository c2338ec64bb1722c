"""What is no table gets a sentence of ours, from every model and function that takes rows."""

import traceback
from pathlib import Path

import dask.array as da
import numpy as np
import pandas as pd
import pytest

import latentviews as lv
from latentviews.io import read_table

ROWS = np.random.default_rng(0).normal(size=(40, 3))
TARGETS = np.arange(40) % 2
SENTENCES = {
    "path": ("x.npy", "the path 'x.npy'|x.npy does not exist|must hold real numbers; got a str|got text"),
    "Path": (Path("x.npy"), "the path 'x.npy'|x.npy does not exist|must hold real|got PosixPath|got WindowsPath"),
    "one column": (ROWS[:, 0], "40 values in one dimension. Reshape your data|need the same columns; got"),
    "no rows": (None, "got None|must hold|needs shape"),
    "number": (3.0, r"got 3\.0|needs shape"),
    "ragged": ([[1, 2], [3]], "different lengths|must hold real numbers"),
    "infinity": (np.where(np.arange(120).reshape(40, 3) == 7, np.inf, ROWS), "infinity"),
    "complex": (ROWS * 1j, "Complex data not supported|complex ones"),
    "read": (None, "Pass its data frame|got Table|got a Table"),
    "dask": (da.from_array(ROWS, chunks=10), "call compute"),
}
IN_MEMORY = {
    "KernelICA": lv.KernelICA().fit,
    "LatentClass": lv.LatentClass(2).fit,
    "PredictiveStateModel": lv.PredictiveStateModel().fit,
    "ChangePoints": lv.ChangePoints().fit,
    "DriftMonitor": lv.DriftMonitor().fit,
    "DoublyStochasticPCA": lv.DoublyStochasticPCA(2).fit,
    "DoublyStochasticClassifier": lambda X: lv.DoublyStochasticClassifier().fit(X, TARGETS),
    "ConditionalEmbedding": lambda X: lv.ConditionalEmbedding().fit(X, ROWS),
    "HSICSelector": lambda X: lv.HSICSelector(1).fit(X, TARGETS),
    "covariate_shift_weights": lambda X: lv.covariate_shift_weights(X, ROWS),
}
CHUNKED = {
    "MultiViewMixture": lv.MultiViewMixture(2).fit,
    "KernelHMM": lv.KernelHMM(2).fit,
    "LowRankDensity": lv.LowRankDensity().fit,
    "LandmarkPCA": lv.LandmarkPCA(2).fit,
    "suggest_views": lv.suggest_views,
    "rank_test": lv.rank_test,
}


TAKEN = {(name, "dask") for name in CHUNKED} | {("LatentClass", "infinity"), ("LatentClass", "complex")}  # as codes
CASES = [(name, kind) for name in (*IN_MEMORY, *CHUNKED) for kind in SENTENCES if (name, kind) not in TAKEN]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_what_is_no_table_gets_a_sentence(name, kind, tmp_path):
    given, sentence = SENTENCES[kind]
    if kind == "read":
        pd.DataFrame(ROWS, columns=["a", "b", "c"]).to_csv(tmp_path / "x.csv", index=False)
        given = read_table(tmp_path / "x.csv")

    with pytest.raises((ValueError, TypeError), match=sentence) as told:
        (IN_MEMORY | CHUNKED)[name](given)

    assert len(str(told.value)) < 300
    assert "latentviews" in traceback.extract_tb(told.tb)[-1].filename


@pytest.mark.parametrize("ask", [lv.class_regression, lv.distal_outcome])
def test_a_model_in_the_place_of_posteriors_gets_a_sentence(ask):
    with pytest.raises(
        TypeError, match=r"posteriors are numbers, .* got MultiViewMixture. Pass what its predict_proba"
    ):
        ask(lv.MultiViewMixture(2), ROWS[:, 0])
