"""One hostile call of a public function."""

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

import latentviews
from latentviews import (
    BlockMMD,
    Delta,
    Gaussian,
    LandmarkMMD,
    Laplace,
    Linear,
    MultiViewMixture,
    QuadraticMMD,
    TreeMMD,
    covariate_shift_weights,
    global_alignment_gram,
    independence_test,
    label_shift,
    likelihood_curve,
    patch_gram,
    rank_test,
    spectrum_gram,
    suggest_views,
    two_sample_test,
    weisfeiler_lehman_gram,
)

from .measures import MEASURES
from .tables import Hostile, hostile_table
from .verdicts import Judge

Rng = np.random.Generator
STATISTICS = [None, None, QuadraticMMD(), LandmarkMMD(), BlockMMD(), TreeMMD()]
KERNELS = [None, None, Delta(), Laplace(), Gaussian(1e-200), Linear()]


def _picked(rng: Rng, values: list[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def _two_samples(rng: Rng, judge: Judge, table: Hostile, wild: bool) -> None:
    rows = table.rows
    other = _picked(
        rng, [table.given, rows[: len(rows) // 2 + 1], rows + 1, *([rows[:, :1], rows[:1]] if wild else [])]
    )
    kernel, n = _picked(rng, KERNELS), _picked(rng, [1, 19, *([0, -1, 2.5] if wild else [])])
    statistic = _picked(rng, STATISTICS)
    found = judge.call(
        "two_sample_test",
        lambda: two_sample_test(
            table.given, other, kernel=kernel, statistic=statistic, n_permutations=n, random_state=0
        ),
    )
    _judge_test(judge, "two_sample_test", found)


def _independence(rng: Rng, judge: Judge, table: Hostile, wild: bool) -> None:
    rows, n = table.rows, len(table.rows)
    other = _picked(
        rng, [rows[:, 0], rows[:, -1:], rng.normal(size=n), *([rng.normal(size=(n + 1, 1))] if wild else [])]
    )
    weights = _picked(
        rng, [None, None, rng.random(n), *([np.zeros(n), -np.ones(n), np.full(n, np.nan)] if wild else [])]
    )
    kernel = _picked(rng, KERNELS)
    found = judge.call(
        "independence_test",
        lambda: independence_test(
            table.given, other, kernel=kernel, sample_weight=weights, n_permutations=19, random_state=0
        ),
    )
    _judge_test(judge, "independence_test", found)


def _judge_test(judge: Judge, name: str, found: Any) -> None:
    if found is not None:
        judge.faults.numbers(name, [found.statistic, found.effect, found.pvalue])
        if not 0 < found.pvalue <= 1:
            judge.faults.append(f"{name} has the p-value {found.pvalue}")


def _rank(rng: Rng, judge: Judge, table: Hostile, wild: bool) -> None:
    kernel = _picked(rng, [None, None, Delta(), Laplace(), *([Linear(), "x"] if wild else [])])
    found = judge.call("rank_test", lambda: rank_test(table.given, kernel=kernel, n_permutations=19, random_state=0))
    if found is not None and not found.n_components >= 1:
        judge.faults.append(f"rank_test counts {found.n_components}")


def _suggestion(rng: Rng, judge: Judge, table: Hostile, wild: bool) -> None:
    count = _picked(rng, ["auto", 2, *([0, "x"] if wild else [])])
    judge.call("suggest_views", suggest_views, table.given, count, random_state=0)


def _curve(rng: Rng, judge: Judge, table: Hostile, wild: bool) -> None:
    counts = _picked(rng, [[1, 2], *([[], [0], "x"] if wild else [])])
    found = judge.call(
        "likelihood_curve",
        lambda: likelihood_curve(MultiViewMixture(random_state=0, polish=None), table.given, counts, cv=2),
    )
    if found is not None:
        judge.faults.numbers("likelihood_curve", found.scores)


def _covariate_shift(rng: Rng, judge: Judge, table: Hostile, wild: bool) -> None:
    other = _picked(rng, [table.rows, table.rows + 1, *([table.rows[:, :1]] if wild else [])])
    found = judge.call("covariate_shift_weights", covariate_shift_weights, table.given, other, random_state=0)
    judge.faults.numbers("covariate_shift_weights", found) if found is not None else None


def _label_shift(rng: Rng, judge: Judge, table: Hostile, wild: bool) -> None:
    labels = _picked(rng, [np.arange(len(table.rows)) % 2, *([np.zeros(len(table.rows)), "x"] if wild else [])])
    judge.call("label_shift", label_shift, table.given, labels, table.rows, random_state=0)


def _three_steps(rng: Rng, wild: bool) -> dict[str, Any]:
    """Settings of the last of three steps."""
    return {
        "correction": _picked(rng, [None, "ML", "BCH", *(["ml"] if wild else [])]),
        "assignment": _picked(rng, ["modal", "proportional"]),
        "n_resamples": _picked(rng, [0, 0, 12, *([1, -1, 2.5] if wild else [])]),
        "random_state": 0,
    }


def _class_regression(rng: Rng, judge: Judge, table: Hostile, wild: bool) -> None:
    posteriors = rng.dirichlet(np.full(2, 0.3), size=len(table.rows))
    judge.call("class_regression", latentviews.class_regression, posteriors, table.given, **_three_steps(rng, wild))


def _distal_outcome(rng: Rng, judge: Judge, table: Hostile, wild: bool) -> None:
    posteriors = rng.dirichlet(np.full(2, 0.3), size=len(table.rows))
    outcome, settings = _picked(rng, [table.rows[:, 0], table.rows[:, 0].astype(str)]), _three_steps(rng, wild)
    found = judge.call("distal_outcome", latentviews.distal_outcome, posteriors, outcome, **settings)
    judge.faults.numbers("distal_outcome", found.means) if found is not None else None


def _strings(rng: Rng, judge: Judge, table: Hostile, wild: bool) -> None:
    letters = _picked(rng, ["AC", "ACGT", "a", "äß漢"])
    strings = ["".join(rng.choice(list(letters), size=rng.integers(3, 20))) for _ in range(rng.integers(1, 20))]
    strings = _picked(rng, [strings, strings, *([[], "text", [1, 2], ["", "a"], None] if wild else [])])
    length, most = _picked(rng, [1, 2, 3]), _picked(rng, [0, 0, 1, *([-1, 5, "x"] if wild else [])])
    found = judge.call("spectrum_gram", spectrum_gram, strings, length, most)
    judge.faults.numbers("spectrum_gram", found) if found is not None else None


def _graphs(rng: Rng, judge: Judge, table: Hostile, wild: bool) -> None:
    graphs = [nx.gnp_random_graph(int(rng.integers(1, 9)), rng.random(), seed=i) for i in range(rng.integers(1, 9))]
    graphs = _picked(rng, [graphs, graphs, *([[], [nx.Graph()], [1], nx.path_graph(3), None] if wild else [])])
    n_iter, label = (
        _picked(rng, [0, 1, 3, *([-1, "x"] if wild else [])]),
        _picked(rng, [None, *(["x"] if wild else [])]),
    )
    found = judge.call("weisfeiler_lehman_gram", weisfeiler_lehman_gram, graphs, n_iter, label)
    judge.faults.numbers("weisfeiler_lehman_gram", found) if found is not None else None


def _series(rng: Rng, judge: Judge, table: Hostile, wild: bool) -> None:
    width = int(rng.integers(1, 3))
    series = [
        rng.normal(size=(rng.integers(1, 12), width)) * 10 ** rng.uniform(-9, 9) for _ in range(rng.integers(2, 9))
    ]
    odd = [[], [1, 2], [np.full((3, width), np.nan)], [series[0], np.ones((2, width + 1))], None]
    series = _picked(rng, [series, series, *(odd if wild else [])])
    bandwidth = _picked(rng, ["median", 1.0, *([0, -1, "x", 1e-300] if wild else [])])
    found = judge.call("global_alignment_gram", global_alignment_gram, series, bandwidth)
    judge.faults.numbers("global_alignment_gram", found) if found is not None else None


def _images(rng: Rng, judge: Judge, table: Hostile, wild: bool) -> None:
    images: Any = rng.normal(size=(rng.integers(2, 7), 6, 6)) * 10 ** rng.uniform(-9, 9)
    odd = [images[0], np.full((2, 6, 6), np.nan), [], np.zeros((3, 2, 2)), None]
    images = _picked(rng, [images, images, np.zeros((3, 6, 6)), *(odd if wild else [])])
    size, stride = _picked(rng, [2, 4, *([0, 9, "x"] if wild else [])]), _picked(rng, [1, 2, *([0] if wild else [])])
    found = judge.call("patch_gram", patch_gram, images, size, stride)
    judge.faults.numbers("patch_gram", found) if found is not None else None


FUNCTIONS: dict[str, Callable[[Rng, Judge, Hostile, bool], None]] = {
    "two_sample_test": _two_samples,
    "independence_test": _independence,
    "rank_test": _rank,
    "suggest_views": _suggestion,
    "likelihood_curve": _curve,
    "covariate_shift_weights": _covariate_shift,
    "label_shift": _label_shift,
    "class_regression": _class_regression,
    "distal_outcome": _distal_outcome,
    "spectrum_gram": _strings,
    "weisfeiler_lehman_gram": _graphs,
    "global_alignment_gram": _series,
    "patch_gram": _images,
}


def function_case(rng: Rng, judge: Judge, *, wild: bool, name: str | None = None) -> str:
    """One call, of a function by chance or of this one, judged; gives it in words."""
    name = name or _picked(rng, [*FUNCTIONS, *MEASURES])
    if name in MEASURES:
        MEASURES[name](rng, judge, wild)
        return name
    table = hostile_table(rng, wild=wild, missing=bool(rng.random() < 0.3))
    FUNCTIONS[name](rng, judge, table, wild)
    return f"{name}; {table.words}"
