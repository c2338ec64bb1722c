"""Kernel logistic regression of the shape of ImageNet: 1.3 million rows of 9,216 numbers, 1,000 classes, on a GPU.

    python benchmarks/speed/imagenet_shape.py
    python benchmarks/speed/imagenet_shape.py --device cpu --rows 4096 --columns 64 --classes 10 --batch 512 \
        --blocks 4 --frequencies 64 --results none

The talk's recipe: rows are what a convolutional network's last pooling layer gives, and a kernel machine learns from
mini-batches. Here the rows are made on the device as they are needed and thrown away: every class has a few centres in
a space of 64 dimensions; noise, a fixed random layer and a rectifier make them nonnegative and sparse. Two runs: a
fixed number of blocks of random features, with steps shortened along eigenfunctions; and the doubly stochastic gradient
proper, a fresh block with every step. It needs PyTorch, and prints and saves rows per second, the device's memory,
and the accuracy on rows that were not learnt from.

Real features: store them as arrays of float16 or float32, (rows, 9216), with integer labels, and replace ``stream`` by
a loop over ``np.load(file, mmap_mode="r")`` that yields ``torch.from_numpy(rows[i:j]).to(device), labels[i:j]``:
`DoublyStochasticClassifier.partial_fit` takes any such batches.
"""

import argparse
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import DoublyStochasticClassifier, Gaussian

RESULTS = Path(__file__).with_name("results") / "imagenet_shape.json"
LATENT = 64
CENTRES = 3  # a class, drawn from N(0, I)
SPREAD = 1.3  # the standard deviation of rows about their centre


class Source:
    """Rows of known classes, made on the device."""

    def __init__(self, columns: int, classes: int, device: str, seed: int = 0):
        self.generator = torch.Generator(device=device).manual_seed(seed)
        self.device, self.classes = device, classes
        self.centres = self._normal(CENTRES, classes, LATENT)
        self.layer = self._normal(LATENT, columns) / LATENT**0.5

    def _normal(self, *shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=self.generator, device=self.device)

    def batch(self, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows and their classes."""
        labels = torch.randint(self.classes, (size,), generator=self.generator, device=self.device)
        which = torch.randint(CENTRES, (size,), generator=self.generator, device=self.device)
        latent = self.centres[which, labels] + SPREAD * self._normal(size, LATENT)
        rows = torch.relu(latent @ self.layer - 0.3)
        return rows + 0.05 * torch.rand(rows.shape, generator=self.generator, device=self.device), labels

    def stream(self, rows: int, size: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Batches until so many rows have come."""
        for start in range(0, rows, size):
            yield self.batch(min(size, rows - start))


def bandwidth(rows: torch.Tensor) -> float:
    """The median distance between some rows."""
    distances = torch.cdist(rows[:1024], rows[:1024])
    return float(distances[distances > 0].median())


def accuracy(model: DoublyStochasticClassifier, rows: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """The share of rows whose class is first, and among the first five."""
    scores = torch.cat([model.fit_(part) for part in rows.split(4096)])
    best = scores.topk(min(5, scores.shape[1]), dim=1).indices
    hits = best == labels[:, None]
    return {
        "top_1": round(float(hits[:, 0].float().mean()), 4),
        "top_5": round(float(hits.any(dim=1).float().mean()), 4),
    }


def synchronise(device: str) -> None:
    """Wait for the device."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def run(name: str, options: argparse.Namespace, model: DoublyStochasticClassifier) -> dict[str, Any]:
    """One pass over the stream: time, memory and accuracy."""
    source = Source(options.columns, options.classes, options.device)
    held_rows, held_labels = source.batch(min(8192, options.rows))
    model.set_params(kernel=Gaussian(bandwidth(held_rows)))
    classes, seen, marks = np.arange(options.classes), 0, []
    if options.device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
    synchronise(options.device)
    start, learning = time.perf_counter(), 0.0
    for rows, labels in source.stream(options.rows, options.batch):
        synchronise(options.device)
        begin = time.perf_counter()
        model.partial_fit(rows, labels, classes=classes)
        synchronise(options.device)
        learning += time.perf_counter() - begin
        seen += len(rows)
        if seen >= options.rows or seen >= (len(marks) + 1) * options.rows / 5:
            marks.append({"rows": seen, "seconds": round(learning, 2), **accuracy(model, held_rows, held_labels)})
            print(f"{name}: {marks[-1]}", flush=True)
        if time.perf_counter() - start > options.limit:
            print(f"{name}: stopped after {options.limit} seconds, {seen:,} rows", flush=True)
            break
    peak = torch.cuda.max_memory_allocated() / 2**20 if options.device.startswith("cuda") else np.nan
    coefficients = sum(int(np.prod(a.shape)) for a in model.fit_.functions.coefficients)
    return {
        "name": name,
        "rows": seen,
        "features": 2 * model.n_frequencies * len(model.fit_.functions.coefficients),
        "directions": len(model.fit_.preconditioner.damping),
        "learning_seconds": round(learning, 2),
        "rows_a_second": round(seen / learning),
        "peak_megabytes": None if np.isnan(peak) else round(peak),
        "coefficient_megabytes": round(coefficients * 4 / 2**20, 1),
        "rows_megabytes_had_they_been_kept": round(seen * options.columns * 4 / 2**20),
        "marks": marks,
    }


def main() -> None:
    """Run both, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_300_000)
    parser.add_argument("--columns", type=int, default=9216)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=8192)
    parser.add_argument("--blocks", type=int, default=16)
    parser.add_argument("--frequencies", type=int, default=2048)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--limit", type=float, default=200.0, help="seconds after which a run stops and reports")
    parser.add_argument("--tf32", action="store_true", help="let matrix products round to ten bits")
    parser.add_argument("--results", default=str(RESULTS), help='where to save; "none" saves nothing')
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = options.tf32
    torch.manual_seed(0)
    shared = {"batch_size": options.batch, "n_frequencies": options.frequencies, "random_state": 0}
    fresh = {**shared, "n_frequencies": max(options.frequencies // 2, 1)}
    runs = [
        run("fixed blocks", options, DoublyStochasticClassifier(n_blocks=options.blocks, **shared)),
        run("doubly stochastic", options, DoublyStochasticClassifier(n_blocks=None, **fresh)),
    ]
    found = {
        "device": torch.cuda.get_device_name() if options.device.startswith("cuda") else platform.processor(),
        "torch": torch.__version__,
        "tf32": options.tf32,
        "shape": {name: getattr(options, name) for name in ("rows", "columns", "classes", "batch")},
        "runs": runs,
    }
    print(found)
    if options.results != "none":
        _record.save(Path(options.results), found)


if __name__ == "__main__":
    main()
