"""Values for the parameters of an estimator by what its class declares: proper ones, and some that it must refuse."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import catalogue
from latentviews import Gaussian, Laplace
from latentviews import _parameters as declared

PARTS = [  # objects that a parameter with an ability may be
    *catalogue.KERNELS,
    *catalogue.FEATURES,
    *catalogue.SOLVERS,
    *catalogue.POLISHES,
    *catalogue.DEPENDENCES,
    *catalogue.DYNAMICS,
    *catalogue.METHODS,
    *catalogue.LOSSES,
    *(model.estimator for model in catalogue.MODELS),
]
KERNELS = [*catalogue.KERNELS, Gaussian("isj"), Gaussian("median"), Gaussian("cv"), Gaussian("scott"), Laplace("isj")]
FIXED = declared.Seed | declared.Verbosity | declared.Jobs
WRONG = [0, -1, 2.5, "x", None, float("nan"), True, (), np.zeros((2, 2)), object()]
RIGHT = [None, 0, 1, 2, 3, 0.1, 0.5, 0.9, 10.0, "auto", True, False, (1, 2), [0.5]]
SLOW = {"max_iter", "n_epochs", "n_landmarks", "n_frequencies", "n_sketch", "n_bins", "n_grid", "n_permutations"}


def proper_values(name: str, constraint: Any, n_columns: int) -> list[Any]:
    """Values that a parameter may have."""
    match constraint:
        case declared.Count():
            return [constraint.least + j for j in range(3)] + [constraint.least + 11] * (name not in {"n_components"})
        case declared.Positive():
            return [1e-6, 0.1, 1.0, 10]
        case declared.Nonnegative():
            return [0, 1e-6, 0.1, 1.0]
        case declared.Bandwidth():
            return ["isj", "silverman", "scott", "median", "cv", 0.1, 1.0, 1e-9, 1e9]
        case declared.Ability():
            return [part for part in PARTS if callable(getattr(part, constraint.method, None))]
        case declared.OneOf():
            return list(constraint.options())
        case declared.NoneOr():
            return [None, *proper_values(name, constraint.other, n_columns)]
        case declared.AutoOr():
            return ["auto", *proper_values(name, constraint.other, n_columns)]
        case declared.Several():
            each = proper_values(name, constraint.each, n_columns)
            return [(one,) for one in each] + [tuple(each[:2])]
        case declared.Such():
            return [value for value in RIGHT if _holds(constraint, value)]
        case declared.Flag():
            return [True, False]
    return _with_data(name, n_columns)


def _holds(constraint: declared.Such, value: Any) -> bool:
    try:
        return bool(constraint.holds(value))
    except Exception:  # a wrong value that the check itself stumbles over comes up in a fit
        return False


def _with_data(name: str, n_columns: int) -> list[Any]:
    """Values that make sense with so many columns."""
    if name == "views":
        sensible = [None, [[j] for j in range(n_columns)], list(range(n_columns))]
        return sensible + [[[0, 1], *([j] for j in range(2, n_columns))]] * (n_columns > 3)
    if name in {"kernel", "density_kernel"}:
        return [*KERNELS, [Gaussian()] * n_columns]
    if name == "features":
        return [None, *catalogue.FEATURES]
    if name == "values":
        return [(0.0,), [1.0, 2.0], ()]
    if name == "rank":
        return [1, 2, 3, "auto"]
    if name in {"exchangeable", "center", "ordered"}:
        return [True, False]
    return [None]


def wrong_values(name: str, n_rows: int) -> list[Any]:
    """Values that must be refused in a sentence, or do no harm."""
    if name == "views":
        return [[[0], [0], [1]], [[], [0], [1]], [[0], [1], [99]], [["a"], ["b"]], [], 3, [[None], [1], [2]], "auto"]
    if name in {"kernel", "bandwidth", "density_bandwidth"}:
        return [*WRONG, 1e-300, 1e300, Gaussian(1e-200), Gaussian(1e200), Gaussian(0.0), Gaussian("x"), Gaussian()]
    return WRONG if name in SLOW else [*WRONG, n_rows, n_rows + 1]


def with_parameters(rng: np.random.Generator, estimator: BaseEstimator, shape: tuple[int, ...], *, wild: bool) -> str:
    """Change up to three parameters of an estimator; gives them in words."""
    table = {name: one for name, one in getattr(estimator, "_parameters", {}).items() if not isinstance(one, FIXED)}
    if not table or rng.random() < 0.3:
        return ""
    names = rng.choice(list(table), size=min(int(rng.integers(1, 4)), len(table)), replace=False)
    words = []
    for name in map(str, names):
        values = proper_values(name, table[name], shape[1])
        if wild and rng.random() < 0.4:
            values = wrong_values(name, shape[0])
        value = values[int(rng.integers(len(values)))]
        estimator.set_params(**{name: value})
        words.append(f"{name}={' '.join(repr(value).split())}")
    return ", ".join(words)
