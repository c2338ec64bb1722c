"""Labels, numbers and streams of them, checked."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from latentviews._arrays import on_host
from latentviews._numbers import LARGEST
from latentviews._validation import as_numbers
from latentviews.core import streams


def check_classes(y: np.ndarray) -> None:
    """Refuse labels that are no classes, such as fractions."""
    with np.errstate(invalid="ignore"):  # integers are made of numbers, to see whether they are some
        check_classification_targets(y)


def class_labels(y: Any, n_rows: int) -> np.ndarray:
    """Labels on the host, one per row."""
    y = column_or_1d(on_host(y), warn=True)
    if len(y) != n_rows:
        raise ValueError(f"y needs one label for each of {n_rows} rows; got {len(y)}.")
    different_labels("y", y)
    return y


def different_labels(name: str, labels: Any) -> np.ndarray:
    """The different ones of some labels in order, or a sentence where they have none."""
    labels = np.asarray(labels)
    if labels.ndim != 1:
        raise ValueError(f"{name} must be a list or an array of labels; got {labels.tolist()!r}. Pass [...] instead.")
    if labels.dtype.kind == "O" and any(label is None for label in labels):
        raise ValueError(f"{name} holds None; every label must be known: leave rows of unknown class out.")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"{name} holds NaN or infinity; every label must be known: leave rows of unknown class out.")
    try:
        return np.unique(labels)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise ValueError(f"{name} must hold labels of one type; got {', '.join(kinds)}. Turn them into one.") from None


def number_targets(y: Any, n_rows: int) -> np.ndarray:
    """Finite numbers on the host, one per row, or several."""
    if np.iscomplexobj(np.asarray(on_host(y))):
        raise ValueError("y holds complex numbers; targets must be real: pass real and imaginary parts as two targets.")
    y = as_numbers("y", y)
    if y.ndim not in (1, 2) or len(y) != n_rows or y.size == 0:
        raise ValueError(f"y needs one target, or several, for each of {n_rows} rows; got shape {y.shape}.")
    if not np.all(np.isfinite(y)):
        raise ValueError("y contains NaN or infinity; targets must be finite numbers.")
    if np.abs(y).max() > LARGEST:
        raise ValueError(f"y holds {y.flat[np.abs(y).argmax()]:.3g}, whose square is no number; scale the targets.")
    return y


def stream_epochs(batches: Any, n_epochs: int) -> Iterator[tuple[int, Any, Any]]:
    """The number of the epoch, rows and targets of every batch of an iterable read ``n_epochs`` times."""
    if isinstance(batches, Iterator) and n_epochs > 1:
        raise TypeError(
            f"{n_epochs} epochs read the stream as often, and a {type(batches).__name__} can be read once: set "
            "n_epochs=1, or pass an object whose __iter__ starts again from the first batch."
        )
    for epoch in range(1, n_epochs + 1):
        for batch in batches:
            if not isinstance(batch, tuple) or len(batch) != 2:
                raise TypeError(f"A stream must yield pairs (rows, targets); got a {type(batch).__name__}.")
            if not streams.is_empty(batch[0]):
                yield epoch, *batch
