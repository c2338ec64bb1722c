"""`LatentClass` beside StepMix on classical tables: the likelihood reached, the time, and three-step estimates.

    LATENTVIEWS_DATA=../shared/data python benchmarks/accuracy/latent_classes.py                # both parts
    LATENTVIEWS_DATA=../shared/data python benchmarks/accuracy/latent_classes.py --part maxima --sets carcinoma values

Needs StepMix in the same environment: ``pip install stepmix``. Part "maxima": for k = 2, 3, 4 classes on every table,
the default call with three seeds, of which the worst counts, StepMix with its one start and with twenty, and the best
of 200 random starts of our EM. Part "three_steps": on made-up rows, coefficients of a covariate and means of an outcome
with every correction, and their standard errors. StepMix has none but those of a bootstrap of all steps, which err by
1/√(2B) themselves with B resamples: so they stand beside ours by ``n_resamples`` on the very same resamples, and beside
StepMix's own with other resamples. Our standard errors by formula stand beside ours by more resamples.
"""

import argparse
import json
import os
import sys
import time
import warnings
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import LatentClass, class_regression, distal_outcome
from latentviews.discrete.answers import distinct_answers
from latentviews.discrete.expectation import accelerated_em
from latentviews.discrete.starts import random_start

RESULTS = Path(__file__).with_name("results")
PACKAGES = (*_record.PACKAGES, "stepmix")
SETS = {  # the columns that are items
    "carcinoma": None,
    "alzheimer": None,
    "cheating": slice(0, 4),
    "election": slice(0, 12),
    "gss82": None,
    "values": None,
    "dentistry": None,
    "myocardial": None,
    "hivtests": None,
}
SEEDS, RANDOM_STARTS, PEER_STARTS = 3, 200, 20
CORRECTIONS = (None, "BCH", "ML")
N_ROWS, N_ITEMS, RESAMPLES, MORE = 1000, 6, 200, 1500


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Codes with NaN where an answer is missing, and how often each row occurs."""
    frame = pd.read_csv(folder / f"{name}.csv.gz")
    weights = frame.pop("freq").to_numpy(float) if "freq" in frame else None
    items = frame if SETS[name] is None else frame.iloc[:, SETS[name]]
    codes = np.stack([pd.factorize(items[column], sort=True)[0] for column in items], axis=1)
    return np.where(codes < 0, np.nan, codes), weights


def timed(call: Any) -> tuple[Any, float]:
    """What a call gives, and its seconds."""
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def stepmix(x: np.ndarray, weights: np.ndarray | None, k: int, n_init: int) -> tuple[float, float]:
    """The log-likelihood that StepMix reaches, and its seconds."""
    from stepmix.stepmix import StepMix

    kind = "categorical_nan" if np.isnan(x).any() else "categorical"
    model = StepMix(k, measurement=kind, n_init=n_init, random_state=0, progress_bar=0)
    table = pd.DataFrame(x)
    _, seconds = timed(partial(model.fit, table, sample_weight=weights))
    total = len(x) if weights is None else weights.sum()
    return float(model.score(table, sample_weight=weights) * total), seconds


def random_best(x: np.ndarray, weights: np.ndarray | None, k: int) -> float:
    """The best of 200 random starts, each taken to its end."""
    codes = np.where(np.isnan(x), -1, x).astype(int)
    answers, _ = distinct_answers(codes, codes.max(axis=0) + 1, weights)
    starts = random_start(answers, k, RANDOM_STARTS, np.random.default_rng(10_000))
    return float(accelerated_em(answers, starts, 5000, 1e-7).log_likelihood.max())


def maxima(folder: Path, names: list[str]) -> list[dict[str, Any]]:
    """Likelihoods and times on some tables, for k = 2, 3, 4."""
    found = []
    for name in names:
        x, weights = load(folder, name)
        for k in (2, 3, 4):
            runs = [timed(partial(LatentClass(k, random_state=s).fit, x, sample_weight=weights)) for s in range(SEEDS)]
            values = [model.log_likelihood_ for model, _ in runs]
            one, one_seconds = stepmix(x, weights, k, 1)
            twenty, twenty_seconds = stepmix(x, weights, k, PEER_STARTS)
            best = max(twenty, random_best(x, weights, k))
            seconds = float(np.median([s for _, s in runs]))
            row = {
                "set": name,
                "k": k,
                "ours, worst seed": min(values),
                "StepMix": one,
                "StepMix, 20 starts": twenty,
                "best of StepMix's 20 and 200 random": best,
                "below the best": best - min(values),
                "seconds": seconds,
                "StepMix seconds": one_seconds,
                "StepMix seconds, 20 starts": twenty_seconds,
                "times faster than 20 starts": twenty_seconds / seconds,
                "commit": _record.COMMIT,
            }
            print(
                f"{name:11s} k={k} ours {min(values):11.4f} StepMix {one:11.4f} x20 {twenty:11.4f} best {best:11.4f} "
                f"below {best - min(values):7.4f} | {seconds:6.2f} s, {one_seconds:6.2f} s, {twenty_seconds:6.2f} s",
                flush=True,
            )
            found.append(row)
    return found


def made_up(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Answers, a covariate and an outcome of two classes."""
    z = rng.normal(size=N_ROWS)
    labels = (rng.random(N_ROWS) < 1 / (1 + np.exp(-(0.3 + 0.8 * z)))).astype(int)
    x = (rng.random((N_ROWS, N_ITEMS)) < np.where(labels, 0.8, 0.2)[:, None]).astype(float)
    return x, z, 3 + 1.5 * labels + rng.normal(size=N_ROWS)


def peer_steps(
    x: np.ndarray, other: pd.DataFrame, structural: str, correction: str | None
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Coefficients of class 1 against 0, or two means, by StepMix's three steps, and errors by two bootstraps."""
    from stepmix.stepmix import StepMix

    settings = {"structural_params": {"method": "newton-raphson", "max_iter": 100}} if structural == "covariate" else {}
    model = StepMix(
        2, n_steps=3, measurement="binary", structural=structural, correction=correction, assignment="modal",
        random_state=0, progress_bar=0, abs_tol=1e-12, max_iter=5000, **settings,
    )  # fmt: skip
    model.fit(pd.DataFrame(x), other)
    parameters = model.get_parameters()["structural"]
    is_regression = structural == "covariate"
    values = parameters["beta"][1] - parameters["beta"][0] if is_regression else parameters["means"].ravel()
    errors = []
    for seed in (0, 1):
        samples, _ = model.bootstrap(
            pd.DataFrame(x), other, n_repetitions=RESAMPLES, progress_bar=False, random_state=seed
        )
        samples = samples.reset_index()
        wide = samples[samples["param"] == ("beta" if is_regression else "means")]
        wide = wide.pivot_table(index="rep", columns=["variable", "class_no"], values="value")
        contrasts = [(wide[v][1] - wide[v][0]).std() for v in ("intercept", *other.columns)] if is_regression else None
        errors.append(wide.std().to_numpy() if contrasts is None else np.array(contrasts))
    return values, errors


class AsStepMix(np.random.Generator):
    """Resamples of rows as StepMix's bootstrap draws them."""

    def __init__(self, seed: int):
        super().__init__(np.random.PCG64(seed))
        self.drawing = np.random.RandomState(seed)

    def integers(self, high: int, *, size: int) -> np.ndarray:  # type: ignore[override]
        """Rows drawn with replacement."""
        return self.drawing.choice(high, size=size, replace=True)


def told(found: Any) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients of class 1, or the means, and their standard errors."""
    if hasattr(found, "coefficients"):
        return found.coefficients[:, 1], found.standard_errors[:, 1]
    return found.means[0], found.standard_errors[0]


def three_steps() -> list[dict[str, Any]]:
    """Both last steps with every correction, ours and StepMix's on the same rows and the same resamples."""
    x, z, y = made_up(np.random.default_rng(_record.FIRST_DRAW))
    first = LatentClass(2, random_state=0).fit(x).first_step(x)
    others = {"covariate": pd.DataFrame({"z": z}), "gaussian_diag": pd.DataFrame({"y": y})}
    found = []
    for kind, correction in product(others, CORRECTIONS):
        ask = partial(class_regression, first, z) if kind == "covariate" else partial(distal_outcome, first, y)
        values, errors = told(ask(correction=correction))
        same = told(ask(correction=correction, n_resamples=RESAMPLES, random_state=AsStepMix(0)))[1]
        more = told(ask(correction=correction, n_resamples=MORE, random_state=1))[1]
        theirs, (one, two) = peer_steps(x, others[kind], kind, correction)
        if kind == "covariate" and np.sign(theirs[1]) != np.sign(values[1]):
            theirs = -theirs
        if kind != "covariate" and abs(theirs[0] - values[0]) > abs(theirs[1] - values[0]):
            theirs, one, two = theirs[::-1], one[::-1], two[::-1]
        row = {
            "correction": correction,
            "what": "coefficients" if kind == "covariate" else "means",
            "ours": values.tolist(),
            "StepMix": theirs.tolist(),
            "largest relative difference": float(np.max(np.abs(values / theirs - 1))),
            "StepMix's standard errors, by bootstrap": one.tolist(),
            "our bootstrap of the same resamples over it": (same / one).tolist(),
            "StepMix's of other resamples over it": (two / one).tolist(),
            "a bootstrap error's own error": 1 / np.sqrt(2 * RESAMPLES),
            "our standard errors, by formula": errors.tolist(),
            f"by formula over our bootstrap of {MORE} others": (errors / more).tolist(),
            "the larger bootstrap's own error": 1 / np.sqrt(2 * MORE),
        }
        print({key: np.round(value, 4) if not isinstance(value, str | None) else value for key, value in row.items()})
        found.append(row)
    return found


def main() -> None:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["maxima", "three_steps"])
    parser.add_argument("--sets", nargs="+", choices=SETS, help="of the first part; others keep their saved rows")
    part, sets = vars(parser.parse_args()).values()
    folder = Path(os.environ.get("LATENTVIEWS_DATA", "../shared/data")) / "raters"
    warnings.simplefilter("ignore")
    if part in (None, "maxima"):
        path = RESULTS / "latent_classes_maxima.json"
        saved = json.loads(path.read_text())["results"] if sets and path.exists() else []
        rows = maxima(folder, sets or list(SETS)) + [row for row in saved if row["set"] not in sets]
        _record.save(path, sorted(rows, key=lambda row: (list(SETS).index(row["set"]), row["k"])), PACKAGES)
    if part in (None, "three_steps"):
        _record.save(RESULTS / "latent_classes_three_steps.json", three_steps(), PACKAGES)


if __name__ == "__main__":
    main()
