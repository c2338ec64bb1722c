"""Labels and posterior probabilities to a file."""

from pathlib import Path

import numpy as np

from latentviews.io import fcs_labels, h5ad
from latentviews.io.source import require

DIGITS = 6  # of a probability in text


def write_labels(
    path: Path, labels: np.ndarray, posteriors: np.ndarray, kind: str | None = None, noise: np.ndarray | None = None
) -> None:
    """A row for every row of the data: its number from 1, its class, and the probability of every class.

    As "csv" or "parquet"; by default as the name ends. Where ``noise`` is a class, its probability is the last column.

    Parameters
    ----------
    path : str or Path
    labels : array of shape (n,)
        Classes, -1 for noise.
    posteriors : array of shape (n, k)
    kind : "csv", "parquet" or None
    noise : array of shape (n,) or None
        The probability of noise, where it is a class.
    """
    pyarrow = require("pyarrow", "Writing labels")
    parquet = path.suffix in (".parquet", ".pq") if kind is None else kind == "parquet"
    if not parquet:
        posteriors = posteriors.round(DIGITS)
    names = ["row", "class", *(f"p{h}" for h in range(posteriors.shape[1]))]
    columns = [np.arange(1, len(labels) + 1), labels, *posteriors.T]
    if noise is not None:
        names.append("p_noise")
        columns.append(noise if parquet else noise.round(DIGITS))
    table = pyarrow.table(dict(zip(names, map(np.ascontiguousarray, columns), strict=True)))
    if parquet:
        require("pyarrow.parquet", "Writing Parquet files").write_table(table, path)
    else:
        options = require("pyarrow.csv", "Writing CSV files").WriteOptions(quoting_style="none")
        require("pyarrow.csv", "Writing CSV files").write_csv(table, path, options)


def write_labelled(
    kind: str, source: Path, path: Path, labels: np.ndarray, posteriors: np.ndarray, noise: np.ndarray | None = None
) -> None:
    """A copy of an "fcs" or "h5ad" file with the class of every row in it, and in the latter the posteriors."""
    if kind == "fcs":
        fcs_labels.write_labels(source, path, labels, posteriors.shape[1])
    else:
        h5ad.write_labels(source, path, labels, posteriors, noise)
