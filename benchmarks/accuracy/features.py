"""How far inner products of random features are from the kernel, at equal numbers of features.

    python benchmarks/accuracy/features.py

Normal rows of 1, 4, 16 and 64 columns. Gaussian kernels with bandwidths of a half, one and two times the square root of
the number of columns: all selections of `FourierFeatures` beside scikit-learn's `RBFSampler`. Polynomial kernels of
degree two and three: `TensorSketchFeatures` beside `PolynomialCountSketch`. The error is the root mean square over
pairs of different rows and over draws of rows and features, as a share of the kernel's own root mean square. It takes
a minute.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import FourierFeatures, Gaussian, Polynomial, TensorSketchFeatures

RESULTS = Path(__file__).with_name("results") / "features.json"
DIMENSIONS = (1, 4, 16, 64)
FEATURES = (128, 512)
WIDTHS = (0.5, 1.0, 2.0)  # over the square root of the number of columns
DEGREES = (2, 3)
ROWS, DRAWS = 100, 100
SKETCHES = 1000  # draws of polynomial sketches, whose errors are those of a few collisions
SELECTIONS = ("independent", "orthogonal", "lattice", "fastfood")

Maps = dict[str, Callable[[int, int], Any]]  # from a number of features and a seed to a feature map


def fourier(dim: int, width: float) -> tuple[Maps, Callable[..., np.ndarray]]:
    """Maps for a Gaussian kernel at height one, and the kernel."""
    bandwidth = width * np.sqrt(dim)

    def ours(selection: str) -> Callable[[int, int], Any]:
        return lambda count, seed: FourierFeatures(
            Gaussian(bandwidth), count // 2, selection=selection, unit_height=True, random_state=seed
        )

    def theirs(count: int, seed: int) -> Any:
        return RBFSampler(gamma=0.5 / bandwidth**2, n_components=count, random_state=seed)

    return {**{name: ours(name) for name in SELECTIONS}, "RBFSampler": theirs}, Gaussian(bandwidth).correlation


def sketches(dim: int, degree: int) -> tuple[Maps, Callable[..., np.ndarray]]:
    """Maps for the polynomial kernel (xᵀy/d + 1)^degree, and the kernel."""
    kernel = Polynomial(degree, 1 / dim, 1.0)

    def ours(count: int, seed: int) -> Any:
        return TensorSketchFeatures(kernel, count, random_state=seed)

    def theirs(count: int, seed: int) -> Any:
        return PolynomialCountSketch(gamma=1 / dim, degree=degree, coef0=1, n_components=count, random_state=seed)

    return {"TensorSketchFeatures": ours, "PolynomialCountSketch": theirs}, kernel.gram


def errors(dim: int, count: int, maps: Maps, kernel: Callable[..., np.ndarray], draws: int) -> dict[str, float]:
    """The error of every map."""
    squares, size, apart = dict.fromkeys(maps, 0.0), 0.0, ~np.eye(ROWS, dtype=bool)
    for seed in range(_record.FIRST_DRAW, _record.FIRST_DRAW + draws):
        x = np.random.default_rng([seed, 1]).normal(size=(ROWS, dim))  # not the numbers that features are made of
        true = kernel(x, x)
        size += np.mean(true[apart] ** 2)
        for name, make in maps.items():
            phi = make(count, seed).fit_transform(x)
            squares[name] += np.mean((phi @ phi.T - true)[apart] ** 2)
    return {name: float(np.sqrt(square / size)) for name, square in squares.items()}


def main() -> None:
    """Measure all, print, save."""
    found = []
    for dim in DIMENSIONS:
        for count in FEATURES:
            for width in WIDTHS:
                case = {"columns": dim, "features": count, "bandwidth over root of columns": width}
                found.append({**case, "errors": errors(dim, count, *fourier(dim, width), DRAWS)})
            for degree in DEGREES:
                case = {"columns": dim, "features": count, "degree": degree}
                found.append({**case, "errors": errors(dim, count, *sketches(dim, degree), SKETCHES)})
    for row in found:
        row["errors"] = {name: float(f"{error:.3g}") for name, error in row["errors"].items()}
        print(*(f"{name} {value}" for name, value in row.items() if name != "errors"), sep=", ")
        print("   ", *(f"{name} {error:.2g}" for name, error in row["errors"].items()), sep="  ")
    _record.save(RESULTS, {"draws": DRAWS, "draws of sketches": SKETCHES, "rows": ROWS, "table": found})


if __name__ == "__main__":
    main()
