"""Data with known truth, and loaders of public collections."""

from latentviews.datasets.collections import (
    Cytometry,
    SeriesData,
    SeriesFile,
    flowcap_samples,
    load_flowcap,
    load_series,
    read_series,
)
from latentviews.datasets.synthetic import HMMData, HMMTruth, MultiViewData, TrueView, Truth, make_hmm, make_multiview

__all__ = [
    "Cytometry",
    "HMMData",
    "HMMTruth",
    "MultiViewData",
    "SeriesData",
    "SeriesFile",
    "TrueView",
    "Truth",
    "flowcap_samples",
    "load_flowcap",
    "load_series",
    "make_hmm",
    "make_multiview",
    "read_series",
]
