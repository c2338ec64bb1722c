# ruff: noqa: D103 - a case is named by what it fits
"""Do all estimators still give the answers they gave? Fits of fixed seeds, recorded and compared.

    python benchmarks/answers.py record before.npz    # on the commit before a change
    python benchmarks/answers.py compare before.npz   # on the commit after it
    python benchmarks/answers.py history A..B         # every step between two commits, and which answers it moved
    python benchmarks/answers.py history A..B --ends  # the two alone; A..B..C are three

Only public names are used, so that the same script runs on both sides of a move. ``--only hmm`` takes the cases whose
name contains the word.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, load_digits

import latentviews as lv
from latentviews.baselines import HistogramSpectral, LatentTreeSpectral, NonparametricEM, SphericalSpectral
from latentviews.datasets import make_hmm, make_multiview

sys.path.insert(0, str(Path(__file__).resolve().parent))
import _record

HISTORY = Path(__file__).with_name("accuracy") / "results" / "answers.json"
CASES = {}


def case(function):
    """Register a function that gives named arrays."""
    CASES[function.__name__] = function
    return function


def _mixture_answers(model, X):
    answers = {"weights": model.weights_, "proba": model.predict_proba(X), "labels": model.predict(X)}
    answers["scores"] = model.score_samples(X)
    answers["sample"] = model.sample(20)[0]
    return answers


def _mixture_case(name, data, n_components, with_bic=True, **options):
    def answers():
        X = data()
        model = lv.MultiViewMixture(n_components, random_state=0, **options).fit(X)
        found = _mixture_answers(model, X)
        found["components"] = np.concatenate([part.mmd().ravel() for part in model.components_])
        if with_bic:
            found["bic"] = np.array([model.aic(X), model.bic(X)])
        return found

    CASES[f"mixture_{name}"] = answers


def _gamma(n=1200, k=3, views=3, seed=0, **options):
    return make_multiview(n, k, design="gamma", random_state=seed, **options).X


def _wide(n=900):
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=n)
    return np.hstack([rng.normal(size=(n, 2)) + 3 * rng.permutation(3)[y][:, None] for _ in range(3)])


def _missing():
    X = _gamma()
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    return X


def _codes(n=1500):
    rng = np.random.default_rng(3)
    y = rng.integers(2, size=n)
    table = rng.dirichlet(np.ones(4), size=(4, 2))
    return np.stack([[rng.choice(4, p=table[t, h]) for h in y] for t in range(4)], axis=1).astype(float)


def _angles(n=1000):
    rng = np.random.default_rng(4)
    y = rng.integers(2, size=n)
    return rng.vonmises(np.array([0.0, 2.0])[y][:, None] + np.arange(3), 4.0)


def _rounded():
    return np.round(_gamma(2000), 1)


_mixture_case("default", _gamma, 3)
_mixture_case("overlapping", lambda: _gamma(2000, 4, separation=2.0), 4)
_mixture_case("auto", _gamma, "auto")
_mixture_case("spectral", _gamma, 3, polish=None)
_mixture_case("paper", _gamma, 3, polish=None, density_bandwidth=None, bandwidth="silverman")
_mixture_case("npem", _gamma, 3, polish=lv.SmoothedEM())
_mixture_case("power", _gamma, 3, solver=lv.PowerMethod())
_mixture_case("laplace", _gamma, 3, kernel=lv.Laplace(0.5), with_bic=False)
_mixture_case("matern", _gamma, 3, kernel=lv.Matern(0.5), with_bic=False)
_mixture_case("landmarks", _gamma, 3, features=lv.LandmarkFeatures(n_landmarks=50), polish=None)
_mixture_case(
    "fourier", _gamma, 3, features=lv.FourierFeatures(n_frequencies=64, random_state=0), polish=None, with_bic=False
)
_mixture_case("wide", _wide, 3, views=[[0, 1], [2, 3], [4, 5]])
_mixture_case("wide_spectral", _wide, 3, views=[[0, 1], [2, 3], [4, 5]], polish=None)
_mixture_case("missing", _missing, 3)
_mixture_case("codes", _codes, 2, kernel=lv.Delta())
_mixture_case("codes_spectral", _codes, 2, kernel=lv.Delta(), polish=None)
_mixture_case("angles", _angles, 2, kernel=lv.VonMises())
_mixture_case("rounded", _rounded, 3)
_mixture_case("exchangeable", lambda: np.sort(_gamma(), axis=1)[:, [1, 1, 1]] + _angles(1200), 2, exchangeable=True)
_mixture_case("blocks", lambda: np.hstack([_gamma(), _gamma(seed=1)])[:, :4], 2, exchangeable=[0, 0, 1, 1])
_mixture_case("copula", _gamma, 3, dependence="copula", with_bic=False)
_mixture_case("copula_auto", _gamma, "auto", dependence="copula", with_bic=False)
_mixture_case("noise", _wide, 3, dependence=lv.Copulas(noise=True), with_bic=False)
_mixture_case("pilot", lambda: _gamma(6000), 3, pilot_size=2000)
_mixture_case("four_views", lambda: np.hstack([_gamma(), _gamma()[:, :1] + 1]), 3)


@case
def mixture_weights_and_labels():
    X, y, _ = make_multiview(1000, 3, design="gamma", random_state=5)
    known = np.where(np.arange(1000) % 10 == 0, y, -1)
    weights = np.random.default_rng(0).random(1000)
    model = lv.MultiViewMixture(3, random_state=0).fit(X, known, sample_weight=weights)
    found = _mixture_answers(model, X)
    estimate = model.expectation(lambda x: x[:, 0], X, view=0)
    found["expectation"] = np.concatenate([np.ravel(estimate.values), np.ravel(estimate.standard_errors)])
    found["conditional"] = model.conditional(X[:50], view=1).mean()
    return found


@case
def mixture_inference():
    X = _gamma(800)
    model = lv.MultiViewMixture(3, random_state=0).fit(X)
    low, high = model.bootstrap(X, 5, random_state=0).interval()
    return {"low": low, "high": high, "diagnosis": np.array([hash_of(lv.diagnose(model, X, random_state=0).summary())])}


@case
def mixture_stream():
    X = _gamma(6000)
    model = lv.MultiViewMixture(3, random_state=0)
    for batch in np.split(X, 3):
        model.partial_fit(batch)
    return _mixture_answers(model, X[:500])


def hash_of(text):
    """A number for a text."""
    return float(int.from_bytes(text.encode(), "big") % 1_000_003)


def _chain_case(name, n_states=3, views=1, **options):
    def answers():
        series = make_hmm(1500, random_state=0)
        X = series.X if views == 1 else np.hstack([series.X, np.roll(series.X, 1, axis=0) ** 2])
        model = lv.KernelHMM(n_states, random_state=0, **options).fit(X, lengths=[700, 800])
        ahead = model.forecast(X, 4)
        return {
            "transition": model.transition_,
            "start": model.start_,
            "proba": model.predict_proba(X),
            "filter": model.filter(X),
            "scores": model.score_samples(X),
            "states": model.predict(X),
            "mean": ahead.mean(),
            "quantile": ahead.quantile([0.1, 0.5]),
            "sample": model.sample(20)[0],
        }

    CASES[f"hmm_{name}"] = answers


_chain_case("default")
_chain_case("auto", "auto")
_chain_case("spectral", polish=None)
_chain_case("two_columns", views=2)
_chain_case("laplace", kernel=lv.Laplace(0.5))


@case
def hmm_codes():
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(2, size=60), 15)
    X = np.where(rng.random(900) < 0.8, states, rng.integers(3, size=900)).astype(float)[:, None]
    model = lv.KernelHMM(2, kernel=lv.Delta(), random_state=0).fit(X)
    return {"transition": model.transition_, "proba": model.predict_proba(X), "scores": model.score_samples(X)}


@case
def hmm_stream():
    X = make_hmm(4000, random_state=1).X
    model = lv.KernelHMM(3, random_state=0)
    for batch in np.split(X, 2):
        model.partial_fit(batch)
    return {"transition": model.transition_, "proba": model.predict_proba(X[:300])}


def _wave(n=700):
    rng = np.random.default_rng(0)
    return (np.sin(np.arange(n) / 4) + 0.2 * rng.normal(size=n))[:, None]


def _predictive_case(name, **options):
    def answers():
        X = _wave()
        model = lv.PredictiveStateModel(horizon=4, random_state=0, **options).fit(X)
        ahead = model.forecast(X, 4)
        found = {"mean": ahead.mean(), "quantile": ahead.quantile([0.1, 0.9]), "filter": model.filter(X)}
        found["score"] = np.array([model.score(X)])
        return found

    CASES[f"predictive_{name}"] = answers


_predictive_case("default")
_predictive_case("operators", dynamics=lv.ObservableOperators())


def _density_case(name, data, rank="auto", **options):
    def answers():
        X = data()
        model = lv.LowRankDensity(rank, random_state=0, **options).fit(X)
        given = model.conditional([0], {1: float(X[0, 1])})
        found = {"scores": model.score_samples(X), "sample": model.sample(20)}
        found["marginal"] = model.marginal([0, 1]).score_samples(X[:, [0, 1]])
        found["conditional"] = given.score_samples(X[:, :1])
        return found

    CASES[f"density_{name}"] = answers


_density_case("default", lambda: _gamma(400))
_density_case("product", lambda: _gamma(400), method=lv.ProductMixture())
_density_case("signed", lambda: _gamma(300), 3, method=lv.SignedTrain(0.5), tree=((0, 1), 2))
_density_case("mixed", lambda: np.hstack([_gamma(300)[:, :1], _codes(300)[:, :1], _angles(300)[:, :1]]),
              kernel=[lv.Gaussian(), lv.Delta(), lv.VonMises()])  # fmt: skip
_density_case("diabetes", lambda: load_diabetes().data[:200, :5])


@case
def density_transformed():
    X = load_diabetes().data[:200, :4]
    model = lv.TransformedDensity(lv.LowRankDensity(2, random_state=0), lv.WhitenScale()).fit(X)
    return {"scores": model.score_samples(X)}


@case
def kernel_pca():
    X = load_digits().data[:1000] / 16
    kernel = lv.Gaussian(2.0)
    stochastic = lv.DoublyStochasticPCA(3, kernel=kernel, random_state=0).fit(X)
    landmarks = lv.LandmarkPCA(3, kernel=kernel, n_landmarks=100, random_state=0).fit(X)
    return {"stochastic": stochastic.transform(X[:50]), "landmarks": landmarks.transform(X[:50])}


@case
def machines():
    digits, diabetes = load_digits(), load_diabetes()
    classifier = lv.DoublyStochasticClassifier(n_epochs=3, random_state=0).fit(
        digits.data[:800] / 16, digits.target[:800]
    )
    regressor = lv.DoublyStochasticRegressor(n_epochs=3, random_state=0).fit(diabetes.data, diabetes.target)
    return {
        "classifier": classifier.predict_proba(digits.data[800:900] / 16),
        "regressor": regressor.predict(diabetes.data),
    }


@case
def baselines():
    X = _gamma(600)
    found = {}
    for model in (NonparametricEM(3, random_state=0), HistogramSpectral(3, random_state=0),
                  SphericalSpectral(3, random_state=0)):  # fmt: skip
        found[type(model).__name__] = model.fit(X).predict_proba(X)
    found["tree"] = LatentTreeSpectral(2, random_state=0).fit(X).score_samples(X)
    return found


@case
def comparisons():
    X = _gamma(300)
    two, independent = (
        lv.two_sample_test(X[:150], X[150:], random_state=0),
        lv.independence_test(X[:, :1], X[:, 1:], random_state=0),
    )
    curve = lv.rank_test(X, random_state=0)
    return {"tests": np.array([two.statistic, two.pvalue, independent.statistic, independent.pvalue]),
            "count": np.array([curve.n_components])}  # fmt: skip


def answers(only):
    """Every array of every case, under the name of both; a case that fails has its error as its answer."""
    found = {}
    for name, compute in CASES.items():
        if only not in name:
            continue
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                arrays = compute()
            except Exception as error:
                arrays = {"error": np.array([f"{type(error).__name__}: {error}"])}
                print(name, "fails:", arrays["error"][0])
        found.update({f"{name}/{key}": np.asarray(value) for key, value in arrays.items()})
        print(f"{name} {time.perf_counter() - began:.1f} s", flush=True)
    return found


def difference(before, after):
    """The largest difference relative to the spread of the values, infinite where shapes differ."""
    if before.shape != after.shape or before.dtype.kind != after.dtype.kind:
        return np.inf
    if before.dtype.kind not in "fiub":
        return 0.0 if np.array_equal(before, after) else np.inf
    if np.array_equal(before, after, equal_nan=before.dtype.kind == "f"):
        return 0.0
    gap = np.abs(before.astype(float) - after.astype(float))
    return float(np.nanmax(gap) / max(np.nanmax(np.abs(before)), 1e-300)) if np.isfinite(gap).any() else np.inf


def _git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


def _answers_at(commit, folder, only):
    """What the package of a commit answers to the questions of this file."""
    tree, file = Path(folder) / "tree", Path(folder) / "answers.npz"
    _git("worktree", "add", "--force", "--detach", str(tree), commit)
    try:
        child = [sys.executable, str(Path(__file__).resolve()), "record", str(file), "--only", only]
        subprocess.run(child, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(tree / "src")})
    finally:
        _git("worktree", "remove", "--force", str(tree))
    with np.load(file, allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def history(span, only, tol, ends):
    """The answers that every commit of the main line, or all together, moved from those before; saved as it goes on."""
    first, *later = span.split("..")
    steps, table = [], []
    for before, after in itertools.pairwise([first, *later]):
        changes = _git("log", "--first-parent", "--reverse", "--format=%h %s", f"{before}..{after}", "--", "src")
        steps += changes.splitlines()[-1:] if ends else changes.splitlines()
    with tempfile.TemporaryDirectory() as folder:
        before = _answers_at(first, folder, only)
        for commit, subject in (step.split(" ", 1) for step in steps):
            after = _answers_at(commit, folder, only)
            gaps = {name: difference(before[name], after[name]) for name in before if name in after}
            moved = {name: gap for name, gap in gaps.items() if gap > tol}
            told = {name: float(f"{gap:.1e}") if np.isfinite(gap) else "another shape" for name, gap in moved.items()}
            table.append({"commit": commit, "subject": subject, "answers": len(gaps), "moved": told})
            print(commit, subject, f"{len(moved)} of {len(gaps)}", max(moved.values(), default=0.0), flush=True)
            _record.save(HISTORY, {"from": first, "beyond": tol, "steps": table})
            before = after


def main():
    """Record answers, or compare with recorded ones and exit with one where some differ by more than ``--tol``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["record", "compare", "history"])
    parser.add_argument("file", help="of answers, or for a history two commits, A..B")
    parser.add_argument("--only", default="")
    parser.add_argument("--tol", type=float, default=0.0)
    parser.add_argument("--ends", action="store_true", help="of a history, its two ends alone")
    args = parser.parse_args()
    if args.action == "history":
        history(args.file, args.only, args.tol, args.ends)
        return 0
    found = answers(args.only)
    if args.action == "record":
        np.savez_compressed(args.file, **found)
        return 0
    before = np.load(args.file, allow_pickle=False)
    names = [name for name in before.files if args.only in name.split("/")[0]]
    gaps = {name: difference(before[name], found[name]) if name in found else np.inf for name in names}
    moved = {name: gap for name, gap in gaps.items() if gap > args.tol}
    for name, gap in moved.items():
        print(f"{name}: {gap:.1e}")
    print(f"{len(names)} answers, {len(moved)} differ by more than {args.tol:g}")
    return int(bool(moved))


if __name__ == "__main__":
    sys.exit(main())
