"""Rows with their classes, and what `diagnose` says of the fit on them: where reports and the command line start."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from latentviews._arrays import unmasked
from latentviews._no_tables import as_list_of_names, refuse_no_table
from latentviews.core import streams
from latentviews.core.tables import read_table
from latentviews.core.view_names import view_names
from latentviews.diagnosis.diagnose import Diagnosis, diagnose, most_probable
from latentviews.diagnosis.shares import RowShares, row_shares

ROWS = 200_000  # rows that are classified; more would not change a picture
PERMUTATIONS = 99  # of tests at a level of a twentieth: more would hardly find more


class CheckedRows(NamedTuple):
    """Rows with their classes and checks."""

    model: Any  # without names for its columns
    table: np.ndarray
    names: list[str]  # of the columns
    some: np.ndarray  # the rows that were classified
    posteriors: np.ndarray
    here: RowShares
    diagnosis: Diagnosis


def checked_rows(model: Any, X: Any, columns: Sequence[str] | None, rng: np.random.Generator) -> CheckedRows:
    """Read and classify rows, and check the fit on them."""
    plain, table, names = read_rows(model, X, columns)
    (some,) = streams.sample(table, ROWS, rng)
    posteriors = plain.predict_proba(some)
    labels, k = most_probable(posteriors)[0], posteriors.shape[1]
    here, counts = row_shares(plain, posteriors), np.bincount(labels[labels >= 0], minlength=k)
    diagnosis = _diagnosis(plain, table, rng, names, counts, here)
    return CheckedRows(plain, table, names, some, posteriors, here, diagnosis)


def _diagnosis(
    model: Any, table: np.ndarray, rng: np.random.Generator, names: list[str], counts: np.ndarray, here: RowShares
) -> Diagnosis:
    """What `diagnose` says with these names, and of as many rows as were classified."""
    found = diagnose(model, table, n_permutations=PERMUTATIONS, random_state=rng)
    outside = {names[int(j)]: share for j, share in found.outside.items()}
    exact = {names[int(j)]: values for j, values in found.exact.items()}
    apart = {names[int(j)]: value for j, value in found.apart.items()}
    copies = tuple((names[int(s)], names[int(t)]) for s, t in found.copies)
    named = replace(
        found, outside=outside, exact=exact, apart=apart, copies=copies, view_names=view_names(model, names)
    )
    return replace(named, counts=counts, shares=here.shares, shifted=here.shifted)


def read_rows(model: Any, X: Any, columns: Sequence[str] | None) -> tuple[Any, np.ndarray, list[str]]:
    """The model without names for its columns, the rows as the array that it takes, and the names.

    Where the model was fitted to named columns they are found by name, in any order, others left out.
    """
    known = getattr(model, "feature_names_in_", None)
    refuse_no_table(type(model).__name__, X)
    given = getattr(X, "columns", None) if columns is None else as_list_of_names(columns)
    names = None if given is None else [str(each) for each in given]
    if names is not None and len(names) != np.shape(X)[1]:
        raise ValueError(f"columns must name every column of X, {np.shape(X)[1]}; got {len(names)} names.")
    places = None
    if known is not None and names is not None:
        absent = [each for each in known if each not in names]
        if absent:
            raise ValueError(f"The model was fitted to columns {absent} that the rows lack; they have {names}.")
        places = [names.index(each) for each in known]
    if hasattr(X, "columns"):
        X = X[[list(X.columns)[j] for j in places]] if places else X
        reader = _named(model, list(X.columns))
    else:
        X = np.asarray(unmasked(X))
        X = X if places is None else X[:, places]
        reader = _named(model, None)
    table, _ = read_table(reader, X, reset=False)
    if not isinstance(table, np.ndarray):
        raise TypeError(f"A report takes rows as an array or a data frame; got {type(X).__name__}.")
    if known is not None:
        names = [str(each) for each in known]
    return _named(model, None), table, names or [f"column {j}" for j in range(table.shape[1])]


def _named(model: Any, names: list[Any] | None) -> Any:
    """A copy of the model that expects columns of these names, or none."""
    other = copy.copy(model)
    vars(other).pop("feature_names_in_", None)
    if names is not None and all(isinstance(each, str) for each in names):
        other.feature_names_in_ = np.array(names, dtype=object)
    return other
