"""Labels and posterior probabilities to a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from latentviews._files import path_to_write
from latentviews.io import fcs_labels, h5ad
from latentviews.io.source import require

DIGITS = 6  # of a probability in text


def write_labels(
    path: Any, labels: np.ndarray, posteriors: np.ndarray, kind: str | None = None, noise: np.ndarray | None = None
) -> None:
    """A row for every row of the data: its number from 1, its class, and the probability of every class.

    As "csv" or "parquet"; by default as Parquet where the name ends in .parquet or .pq. Where ``noise`` is a class, its
    probability is the last column.

    Parameters
    ----------
    path : str or Path
    labels : array of shape (n,)
        Classes, numbers or names, -1 for noise.
    posteriors : array of shape (n, k)
    kind : "csv", "parquet" or None
    noise : array of shape (n,) or None
        The probability of noise, where it is a class.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from latentviews.io import write_labels
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.csv"
    >>> write_labels(path, np.array([0, 1]), np.array([[0.9, 0.1], [0.2, 0.8]]))
    >>> path.read_text().splitlines()[1:]
    ['1,0,0.9,0.1', '2,1,0.2,0.8']
    """
    from latentviews._arrays import unmasked  # what these import takes its time, and those who read need none of it
    from latentviews._validation import as_numbers
    from latentviews.io.saving import written_aside

    if kind not in (None, "csv", "parquet"):
        raise ValueError(f"kind must be 'csv', 'parquet' or None; got {kind!r}.")
    path, posteriors = path_to_write(path, "Labels"), as_numbers("posteriors", posteriors, missing=False)
    if posteriors.ndim != 2:
        raise ValueError(f"posteriors needs a row per object and a column per class; got shape {posteriors.shape}.")
    labels = np.asarray(unmasked(labels))
    if labels.shape != (len(posteriors),):
        raise ValueError(f"labels needs a class per row of posteriors, {len(posteriors):,}; got shape {labels.shape}.")
    noise = None if noise is None else as_numbers("noise", noise, missing=False)
    if noise is not None and noise.shape != labels.shape:
        raise ValueError(f"noise needs a probability per row of posteriors, {len(labels):,}; got shape {noise.shape}.")
    kind = ("parquet" if is_parquet(path) else "csv") if kind is None else kind
    with written_aside(path) as aside, labels_file(aside, kind) as file:
        file.add(labels.astype(labels.dtype.newbyteorder("=")), posteriors, noise)


def is_parquet(path: Path) -> bool:
    """Whether the name of a file of labels ends so."""
    return path.suffix.lower() in (".parquet", ".pq")


class LabelsFile:
    """A file of labels that is written some rows at a time."""

    def __init__(self, path: Path, kind: str | None):
        self.path = path
        self.parquet = is_parquet(path) if kind is None else kind == "parquet"
        self.n_rows = 0
        self.writer: Any = None

    def add(self, labels: np.ndarray, posteriors: np.ndarray, noise: np.ndarray | None = None) -> None:
        """More rows: their classes, the probability of every class, and of noise where that is one."""
        names = ["row", "class", *(f"p{h}" for h in range(posteriors.shape[1]))]
        shares = [*posteriors.T] if noise is None else [*posteriors.T, noise]
        names += [] if noise is None else ["p_noise"]
        shares = [np.ascontiguousarray(share if self.parquet else share.round(DIGITS)) for share in shares]
        columns = [np.arange(self.n_rows + 1, self.n_rows + len(labels) + 1), labels, *shares]
        table = require("pyarrow", "Writing labels").table(dict(zip(names, columns, strict=True)))
        self.writer = self.writer or self._opened(table.schema)
        self.writer.write_table(table)
        self.n_rows += len(labels)

    def _opened(self, schema: Any) -> Any:
        if self.parquet:
            return require("pyarrow.parquet", "Writing Parquet files").ParquetWriter(self.path, schema)
        csv = require("pyarrow.csv", "Writing CSV files")
        return csv.CSVWriter(str(self.path), schema, write_options=csv.WriteOptions(quoting_style="none"))


@contextmanager
def labels_file(path: Path, kind: str | None = None) -> Iterator[LabelsFile]:
    """A file of labels to add rows to."""
    file = LabelsFile(path, kind)
    try:
        yield file
    finally:
        if file.writer is not None:
            file.writer.close()


def write_labelled(
    kind: str, source: Path, path: Path, labels: np.ndarray, posteriors: np.ndarray, noise: np.ndarray | None = None
) -> None:
    """A copy of an "fcs" or "h5ad" file with the class of every row in it, and in the latter the posteriors."""
    if kind == "fcs":
        fcs_labels.write_labels(source, path, labels, posteriors.shape[1])
    else:
        h5ad.write_labels(source, path, labels, posteriors, noise)
