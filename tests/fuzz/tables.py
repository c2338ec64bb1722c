"""Tables as measurements, accidents and mischief make them, from a random generator."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse

from catalogue import Batches, split

Rng = np.random.Generator
Makers = dict[
    str, Callable[[Rng, Any], Any]
]  # ways to make a thing from a random generator and a size or another thing
SIZES = [20, 40, 80, 150, 250]
WILD_SIZES = [1, 2, 3, 5, 12]


class Hostile(NamedTuple):
    """A table, the same as plain numbers, and how it was made."""

    given: Any  # what an estimator is told
    rows: np.ndarray  # (n, d)
    words: str


def _classes(rng: Rng, n: int, d: int) -> np.ndarray:
    return rng.normal(size=(n, d)) + 3 * rng.integers(0, 3, size=(n, 1)) * rng.normal(size=d)


def _walk(rng: Rng, n: int, d: int) -> np.ndarray:
    return np.cumsum(rng.normal(size=(n, d)), axis=0)


def _collinear(rng: Rng, n: int, d: int) -> np.ndarray:
    return rng.normal(size=(n, 1)) @ rng.normal(size=(1, d))


def _spike(rng: Rng, n: int, d: int) -> np.ndarray:
    return np.where(rng.random((n, d)) < 0.8, 0.0, rng.exponential(size=(n, d)))


def _sine(rng: Rng, n: int, d: int) -> np.ndarray:
    return np.sin(np.arange(n)[:, None] / (1 + np.arange(d)))


SHAPES: dict[str, Callable[[Rng, int, int], np.ndarray]] = {
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "classes": _classes,
    "uniform": lambda rng, n, d: rng.random((n, d)),
    "exponential": lambda rng, n, d: rng.exponential(size=(n, d)),
    "lognormal": lambda rng, n, d: rng.lognormal(0, 3, size=(n, d)),
    "pareto": lambda rng, n, d: rng.pareto(0.5, size=(n, d)),
    "cauchy": lambda rng, n, d: rng.standard_cauchy(size=(n, d)),
    "t2": lambda rng, n, d: rng.standard_t(2, size=(n, d)),
    "walk": _walk,
    "sine": _sine,
    "collinear": _collinear,
    "spike": _spike,
    "ties": lambda rng, n, d: rng.integers(0, 4, size=(n, d)).astype(float),
    "binary": lambda rng, n, d: rng.integers(0, 2, size=(n, d)).astype(float),
    "two values": lambda rng, n, d: np.where(rng.random((n, d)) < 0.5, -1e-3, 7.5),
    "large integers": lambda rng, n, d: rng.integers(0, 2**52, size=(n, d)).astype(float),
    "counting": lambda rng, n, d: np.arange(n * d, dtype=float).reshape(n, d),
}
WILD_SHAPES: dict[str, Callable[[Rng, int, int], np.ndarray]] = {
    "zeros": lambda rng, n, d: np.zeros((n, d)),
    "equal": lambda rng, n, d: np.full((n, d), rng.normal()),
}


def _cells(rng: Rng, x: np.ndarray, share: float) -> np.ndarray:
    return np.where(rng.random(x.shape) < share, np.nan, x)


def _put(x: np.ndarray, where: Any, value: Any) -> np.ndarray:
    x = x.copy()
    x[where] = value
    return x


def _column(rng: Rng, x: np.ndarray) -> tuple[slice, int]:
    return slice(None), int(rng.integers(x.shape[1]))


def _scaled_column(rng: Rng, x: np.ndarray, decades: float) -> np.ndarray:
    here = _column(rng, x)
    return _put(x, here, x[here] * 10 ** rng.uniform(-decades, decades))


def _copied_column(rng: Rng, x: np.ndarray, noise: float) -> np.ndarray:
    return _put(x, _column(rng, x), x[_column(rng, x)] * (1 + noise * rng.normal(size=len(x))))


def _shifted_column(rng: Rng, x: np.ndarray) -> np.ndarray:
    here = _column(rng, x)
    return _put(x, here, x[here] + 10.0 ** rng.integers(3, 13))


def _rounded(rng: Rng, x: np.ndarray) -> np.ndarray:
    """A column of hardly more than rounding errors around a number."""
    value = rng.choice([1.0, 1e9, 0.1])
    return _put(x, _column(rng, x), value * (1 + np.finfo(float).eps * rng.integers(-3, 4, size=len(x))))


MISHAPS: dict[str, Callable[[Rng, np.ndarray], np.ndarray]] = {
    "shifted column": _shifted_column,
    "near 1e9": lambda rng, x: x + 1e9,
    "scaled column": lambda rng, x: _scaled_column(rng, x, 9),
    "all scaled": lambda rng, x: x * 10 ** rng.uniform(-9, 9),
    "copied column": lambda rng, x: _copied_column(rng, x, 0.0),
    "nearly copied column": lambda rng, x: _copied_column(rng, x, 1e-9),
    "copied rows": lambda rng, x: x[rng.integers(0, len(x), size=len(x))],
    "outlier of 1e12": lambda rng, x: _put(x, (0, 0), 1e12),
    "two huge": lambda rng, x: _put(x, (slice(0, 2), 0), 1e30),
    "clipped": lambda rng, x: np.clip(x, *np.nanquantile(x, [0.2, 0.8])),
    "rounded": lambda rng, x: np.round(x, 1),
    "rounding errors": _rounded,
    "negative zeros": lambda rng, x: np.where(rng.random(x.shape) < 0.3, -0.0, x),
    "tiny values": lambda rng, x: np.where(rng.random(x.shape) < 0.3, 1e-310, x),
}
GAPS: dict[str, Callable[[Rng, np.ndarray], np.ndarray]] = {
    "row of NaN": lambda rng, x: _put(x, int(rng.integers(len(x))), np.nan),
    "cells of NaN": lambda rng, x: _cells(rng, x, 0.05),
    "half NaN": lambda rng, x: _cells(rng, x, 0.5),
    "mostly NaN": lambda rng, x: _cells(rng, x, 0.95),
}
ACCIDENTS: dict[str, Callable[[Rng, np.ndarray], np.ndarray]] = {
    "constant column": lambda rng, x: _put(x, _column(rng, x), 3.0),
    "column of NaN": lambda rng, x: _put(x, _column(rng, x), np.nan),
    "infinite": lambda rng, x: _put(x, (int(rng.integers(len(x))), 0), np.inf),
    "outlier of 1e100": lambda rng, x: _put(x, (0, 0), 1e100),
    "outlier of 1e149": lambda rng, x: _put(x, (0, 0), 1e149),
    "outlier of 1e300": lambda rng, x: _put(x, (0, 0), 1e300),
    "scaled column by a lot": lambda rng, x: _scaled_column(rng, x, 150),
    "all scaled by a lot": lambda rng, x: x * 10 ** rng.uniform(-150, 150),
    "all scaled to the limits": lambda rng, x: x * 10 ** rng.uniform(-300, 300),
    "all rows equal but one": lambda rng, x: np.concatenate([x[:1], np.repeat(x[-1:], len(x) - 1, axis=0)]),
}


def _names(d: int) -> list[str]:
    return [f"c{j}" for j in range(d)]


def _frame_of_text(x: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(x, columns=_names(x.shape[1])).assign(c0=["x"] * len(x))


def _twice_named(x: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(x, columns=["a"] * x.shape[1])


def _sparse(x: np.ndarray) -> Any:
    return sparse.csr_array(np.nan_to_num(x))


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda x: x,
    "Fortran": np.asfortranarray,
    "big-endian": lambda x: x.astype(">f8"),
    "float32": lambda x: x.astype(np.float32),
    "float16": lambda x: np.clip(x, -6e4, 6e4).astype(np.float16),
    "integers": lambda x: np.nan_to_num(x).clip(-1e9, 1e9).astype(np.int64),
    "booleans": lambda x: x > np.nan_to_num(x).mean(axis=0),
    "objects": lambda x: x.astype(object),
    "frame": lambda x: pd.DataFrame(x, columns=_names(x.shape[1])),
    "polars": lambda x: pl.DataFrame(x, schema=_names(x.shape[1])),
    "nullable frame": lambda x: pd.DataFrame(x, columns=_names(x.shape[1])).convert_dtypes(),
    "batches": lambda x: Batches(split(x, 37)),
}
OTHER_VALUES = {"float32", "float16", "integers", "booleans"}  # forms that hold other numbers than they are made of
WRONG_FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "one column": lambda x: x[:, 0],
    "no rows": lambda x: x[:0],
    "three axes": lambda x: x[None],
    "complex": lambda x: x + 1j,
    "nested list": lambda x: x.tolist(),
    "words": lambda x: np.full(x.shape, "word"),
    "dates": lambda x: np.nan_to_num(x, posinf=0, neginf=0).clip(-1e9, 1e9).astype("datetime64[s]"),
    "frame of text": _frame_of_text,
    "objects of text": lambda x: _frame_of_text(x).to_numpy(),
    "polars of text": lambda x: pl.from_pandas(_frame_of_text(x)),
    "names twice": _twice_named,
    "sparse": _sparse,
    "generator": lambda x: iter(split(x, 37)),
    "nothing": lambda x: None,
}


def hostile_table(rng: Rng, *, wild: bool, missing: bool, n_columns: tuple[int, int] = (3, 7)) -> Hostile:
    """A table from a shape, up to three mishaps and a form; ``wild`` ones may be what no model takes."""
    sizes = WILD_SIZES + SIZES if wild else SIZES
    n, d = int(rng.choice(sizes)), int(rng.integers(*((1, 7) if wild else n_columns)))
    shape, x = _drawn(rng, {**SHAPES, **(WILD_SHAPES if wild else {})}, n, d)
    words = [f"{shape} ({n}, {d})"]
    mishaps = {**MISHAPS, **(GAPS if wild or missing else {}), **(ACCIDENTS if wild else {})}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the mishaps themselves
        for name in rng.choice(list(mishaps), size=rng.integers(0, 4)):
            x = mishaps[name](rng, x)
            words.append(str(name))
        forms = WRONG_FORMS if wild and rng.random() < 0.25 else FORMS
        form = "array" if rng.random() < 0.5 and forms is FORMS else str(rng.choice(list(forms)))
        seen = np.asarray(forms[form](x), dtype=float) if form in OTHER_VALUES else x
        return Hostile(forms[form](x), seen, ", ".join([*words, form]))


def _drawn(rng: Rng, shapes: dict[str, Callable[[Rng, int, int], np.ndarray]], n: int, d: int) -> tuple[str, Any]:
    name = str(rng.choice(list(shapes)))
    return name, shapes[name](rng, n, d)


def made(
    rng: Rng, wild: bool, shapes: Makers, mishaps: Makers, accidents: Makers, forms: Makers, wrong_forms: Makers
) -> tuple[str, Any]:
    """Anything from a shape, up to two mishaps and a form, and how it was made."""
    n = int(rng.choice(WILD_SIZES + SIZES if wild else SIZES)) // 2 + 1
    name = str(rng.choice(list(shapes)))
    words, found = [f"{name} {n}"], shapes[name](rng, n)
    offers = {**mishaps, **(accidents if wild else {})}
    for name in map(str, rng.choice(list(offers), size=rng.integers(0, 3), replace=False)):
        found = offers[name](rng, found)
        words.append(name)
    form = str(rng.choice(list(wrong_forms if wild and rng.random() < 0.25 else forms)))
    return ", ".join([*words, form]), {**forms, **wrong_forms}[form](rng, found)
