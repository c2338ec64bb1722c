"""Protein backbones: angles (φ, ψ) of residues along chains, on chains that were held out.

    LATENTVIEWS_DATA=../shared/data python benchmarks/accuracy/torus.py
    LATENTVIEWS_DATA=../shared/data python benchmarks/accuracy/torus.py --part figure

Needs hmmlearn in the same environment, and matplotlib for the figure. 14 of 35 chains are held out. Every method has
the number of classes under which seven of the other chains are likeliest by a fit to the rest of them (ours of 4, 8 and
12, others of nine numbers up to 40, and up to 120 where 40 is the best); then it is fitted to all 21. Three questions:

* ``chains``: log p of the angles per residue, and the adjusted Rand index between three classes and secondary structure
  (helix, strand, coil). `KernelHMM` beside a Gaussian HMM on sines and cosines; mixtures of residues by themselves:
  Gaussian on angles, Gaussian on sines and cosines, von Mises.
* ``triples``: the same of residues i−1, i, i+1 as three views, for `MultiViewMixture` beside mixtures of all six
  angles.
* ``from amino acids``: log p(angles of a residue | amino acids of the chain), beside what the own residue says, and
  nothing; of `KernelHMM.conditional`.

All densities are per square radian. A Gaussian on sines and cosines has its density off the torus too: that of every
component is taken given that points lie on the torus. What is saved is not run again; every answer names its commit.
"""

import argparse
import json
import logging
import os
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ive, logsumexp
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import Delta, KernelHMM, MultiViewMixture, VonMises

RESULTS = Path(__file__).with_name("results")
PACKAGES = (*_record.PACKAGES, "hmmlearn")
COUNTS, PEER_COUNTS = (4, 8, 12), (4, 8, 12, 16, 20, 24, 28, 32, 40)
MORE = (60, 80, 120)  # of peers for which the last of these is the best
KINDS, STARTS, GRID = 3, 3, 120  # kinds of secondary structure; starts of peers; points a turn
HELIX = "HEC"


class Chains(NamedTuple):
    """Residues of some chains, in order."""

    angles: np.ndarray  # (n, 2), radians
    acids: np.ndarray  # (n,)
    kinds: np.ndarray  # (n,), H, E or C
    lengths: np.ndarray  # of unbroken segments

    @property
    def points(self) -> np.ndarray:
        """Cosines and sines, (n, 4)."""
        return embedded(self.angles)

    def triples(self) -> tuple[np.ndarray, np.ndarray]:
        """Angles of residues i−1, i, i+1 of one segment, (m, 6), and the kind of residue i."""
        starts = np.cumsum(self.lengths) - self.lengths
        middle = np.concatenate([np.arange(s + 1, s + n - 1) for s, n in zip(starts, self.lengths, strict=True)])
        return np.hstack([self.angles[middle + step] for step in (-1, 0, 1)]), self.kinds[middle]


class Fitted(NamedTuple):
    """How a fitted model judges held-out rows."""

    score: Callable[[Any], float]  # the mean log-density
    predict: Callable[[Any], np.ndarray]


def embedded(angles: np.ndarray) -> np.ndarray:
    """Cosines and sines side by side."""
    return np.hstack([np.cos(angles), np.sin(angles)])


def load(folder: Path) -> list[Chains]:
    """Fit, choose and judge: 14 chains, seven, 14."""
    frame = pd.read_csv(folder / "torus" / "backbone_dihedrals_dssp.csv.gz", keep_default_na=False)
    chain = (frame["pdb"] + frame["chain"]).to_numpy()
    piece = pd.factorize(pd.Series(chain) + "." + frame["segment"].astype(str))[0]
    acids = pd.factorize(frame["aa"], sort=True)[0].astype(float)
    names = pd.unique(chain)
    fifths = np.array_split(np.random.default_rng(1).permutation(len(names)), 5)
    parts = []
    for chosen in (np.concatenate(fifths[2:4]), fifths[4], np.concatenate(fifths[:2])):
        rows = np.flatnonzero(np.isin(chain, names[chosen]))
        ends = np.append(np.flatnonzero(np.diff(piece[rows])) + 1, len(rows))
        angles = np.deg2rad(frame[["phi_deg", "psi_deg"]].to_numpy()[rows])
        parts.append(Chains(angles, acids[rows], frame["label"].to_numpy()[rows], np.diff(ends, prepend=0)))
    return parts


def joined(first: Chains, second: Chains) -> Chains:
    """The chains of both."""
    return Chains(*(np.concatenate(pair) for pair in zip(first, second, strict=True)))


# ------------------------------------------------------------------------------------------------------------- chains


def kernel_hmm(data: Chains, k: int) -> Fitted:
    """`KernelHMM` on angles."""
    model = KernelHMM(k, kernel=VonMises(), random_state=0).fit(data.angles, lengths=data.lengths)
    return Fitted(
        lambda held: model.score(held.angles, lengths=held.lengths),
        lambda held: model.predict(held.angles, lengths=held.lengths),
    )


def gaussian_hmm(data: Chains, k: int) -> Fitted:
    """The likeliest of three starts of a Gaussian HMM on sines and cosines, its states restricted to the torus."""
    from hmmlearn.hmm import GaussianHMM

    def start(seed: int) -> Any:
        return GaussianHMM(k, "full", n_iter=80, random_state=seed).fit(data.points, data.lengths)

    model = max((start(seed) for seed in range(STARTS)), key=lambda one: one.score(data.points, data.lengths))
    grid, area = torus_grid()
    inside = logsumexp(model._compute_log_likelihood(grid), axis=0) + np.log(area)  # of every state, on the torus

    def score(held: Chains) -> float:
        emitted = model._compute_log_likelihood(held.points) - inside
        starts = np.cumsum(held.lengths) - held.lengths
        pairs = zip(starts, held.lengths, strict=True)
        return sum(log_forward(model, emitted[at : at + n]) for at, n in pairs) / len(emitted)

    return Fitted(score, lambda held: model.predict(held.points, held.lengths))


def log_forward(model: Any, emitted: np.ndarray) -> float:
    """The log-density of one sequence from the log-densities of its rows in every state."""
    logs = np.log(model.startprob_ + 1e-300) + emitted[0]
    for row in emitted[1:]:
        logs = logsumexp(logs[:, None] + np.log(model.transmat_ + 1e-300), axis=0) + row
    return float(logsumexp(logs))


def torus_grid() -> tuple[np.ndarray, float]:
    """Points of the torus, embedded, and the area of each."""
    turn = np.linspace(-np.pi, np.pi, GRID, endpoint=False)
    angles = np.stack(np.meshgrid(turn, turn), axis=-1).reshape(-1, 2)
    return embedded(angles), (2 * np.pi / GRID) ** 2


# ----------------------------------------------------------------------------------------------------------- mixtures


def gaussian_mixture(x: np.ndarray, k: int) -> Any:
    """The likeliest of three starts."""
    return GaussianMixture(k, reg_covar=1e-5, n_init=STARTS, max_iter=500, random_state=0).fit(x)


def on_angles(x: np.ndarray, k: int) -> Fitted:
    """A Gaussian mixture on angles as they are written."""
    model = gaussian_mixture(x, k)
    return Fitted(model.score, model.predict)


def on_circles(x: np.ndarray, k: int) -> Fitted:
    """A Gaussian mixture on sines and cosines, every component given that points are on the torus."""
    model = gaussian_mixture(embedded(x), k)
    log_weights = np.log(model.weights_) - log_torus_masses(model, x)
    return Fitted(
        lambda held: float(logsumexp(model._estimate_log_prob(embedded(held)) + log_weights, axis=1).mean()),
        lambda held: model.predict(embedded(held)),
    )


def log_torus_masses(model: Any, x: np.ndarray) -> np.ndarray:
    """The logs of the components' integrals over the torus: a grid for two angles, else draws around rows."""
    if x.shape[1] == 2:
        grid, area = torus_grid()
        return logsumexp(model._estimate_log_prob(grid), axis=0) + np.log(area)
    rng, n, kappa = np.random.default_rng(0), 20_000, 8.0
    centres = x[rng.permutation(len(x))[:1500]]
    drawn = rng.vonmises(centres[rng.integers(len(centres), size=n)], kappa)
    everywhere = rng.random(n) < 0.2
    drawn[everywhere] = rng.uniform(-np.pi, np.pi, size=(everywhere.sum(), x.shape[1]))
    logs = log_von_mises(drawn, centres, np.full(centres.shape, kappa))
    flat = -x.shape[1] * np.log(2 * np.pi)
    law = np.logaddexp(logsumexp(logs, axis=1) - np.log(len(centres)) + np.log(0.8), flat + np.log(0.2))
    return logsumexp(model._estimate_log_prob(embedded(drawn)) - law[:, None], axis=0) - np.log(n)


def log_von_mises(x: np.ndarray, means: np.ndarray, kappas: np.ndarray) -> np.ndarray:
    """Log-densities (n, k) of products of von Mises laws, one per row of ``means``."""
    heights = (-kappas - np.log(2 * np.pi * ive(0, kappas))).sum(axis=1)
    return np.cos(x) @ (kappas * np.cos(means)).T + np.sin(x) @ (kappas * np.sin(means)).T + heights


def von_mises(x: np.ndarray, k: int) -> Fitted:
    """The likeliest of three starts of EM for a mixture of products of von Mises laws."""
    fits = [von_mises_em(x, k, seed) for seed in range(STARTS)]
    _, weights, means, kappas = max(fits, key=lambda fit: fit[0])

    def joint(held: np.ndarray) -> np.ndarray:
        return log_von_mises(held, means, kappas) + np.log(weights)

    return Fitted(lambda held: float(logsumexp(joint(held), axis=1).mean()), lambda held: joint(held).argmax(axis=1))


def von_mises_em(x: np.ndarray, k: int, seed: int) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """EM from rows drawn as means: the log-likelihood reached, weights, means and concentrations."""
    rng = np.random.default_rng(seed)
    weights, means, kappas = np.full(k, 1 / k), x[rng.permutation(len(x))[:k]], np.full((k, x.shape[1]), 2.0)
    before = -np.inf
    for _ in range(500):
        logs = log_von_mises(x, means, kappas) + np.log(weights)
        objective = float(logsumexp(logs, axis=1).mean())
        if objective - before < 1e-6:
            break
        before = objective
        posteriors = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        masses = posteriors.sum(axis=0) + 1e-10
        sums = posteriors.T @ np.exp(1j * x) / masses[:, None]
        r = np.clip(np.abs(sums), 1e-6, 0.9999)
        weights, means, kappas = masses / masses.sum(), np.angle(sums), r * (2 - r**2) / (1 - r**2)
    return before, weights, means, kappas


def three_views(x: np.ndarray, k: int) -> Fitted:
    """`MultiViewMixture` with three residues as views."""
    model = MultiViewMixture(k, views=[[0, 1], [2, 3], [4, 5]], kernel=VonMises(), random_state=0).fit(x)
    return Fitted(model.score, model.predict)


# ---------------------------------------------------------------------------------------------------------- questions

Method = Callable[[Any, int], Fitted]
OF_CHAINS: dict[str, tuple[Method, tuple[int, ...]]] = {
    "KernelHMM": (kernel_hmm, COUNTS),
    "Gaussian HMM, sines and cosines": (gaussian_hmm, PEER_COUNTS),
}
OF_ROWS: dict[str, Method] = {
    "Gaussian mixture, angles": on_angles,
    "Gaussian mixture, sines and cosines": on_circles,
    "von Mises mixture": von_mises,
}


def judged(method: Method, parts: list[Any], kinds: np.ndarray, counts: tuple[int, ...]) -> dict[str, Any]:
    """The count that the second part likes best, and what a fit to both says of the third."""
    inner, choosing, both, held = parts
    tried = {k: method(inner, k).score(choosing) for k in counts}
    k = max(tried, key=lambda one: tried[one])
    if k == PEER_COUNTS[-1]:
        tried |= {more: method(inner, more).score(choosing) for more in MORE}
        k = max(tried, key=lambda one: tried[one])
    classes = method(both, KINDS).predict(held)
    return {
        "classes": k,
        "tried": {str(one): round(float(value), 4) for one, value in tried.items()},
        "log-likelihood": round(float(method(both, k).score(held)), 4),
        f"ARI of {KINDS} classes": round(float(adjusted_rand_score(kinds, classes)), 4),
    }


def from_acids(inner: Chains, choosing: Chains, both: Chains, held: Chains) -> dict[str, Any]:
    """The log-density of angles given amino acids, of `KernelHMM` with angles and amino acids as views."""
    tried = {k: acid_scores(acid_model(inner, k), choosing) for k in COUNTS}
    k = max(tried, key=lambda one: tried[one]["given the chain"])
    return {
        "states": k,
        "tried": {str(one): value["given the chain"] for one, value in tried.items()},
        **acid_scores(acid_model(both, k), held),
    }


def acid_model(data: Chains, k: int) -> KernelHMM:
    """Angles and amino acids, independent given the state."""
    table = np.column_stack([data.angles, data.acids])
    return KernelHMM(k, views=[[0, 1], [2]], kernel=[VonMises(), Delta()], random_state=0).fit(
        table, lengths=data.lengths
    )


def acid_scores(model: KernelHMM, held: Chains) -> dict[str, float]:
    """Mean log-densities of angles given all amino acids, the own one, and none."""
    table = np.column_stack([held.angles, held.acids])
    emitted = model.components_[0].log_density(held.angles)
    chain = np.log(model.conditional(table, 0, lengths=held.lengths).posteriors + 1e-300)
    own = model.components_[1].log_density(held.acids) + np.log(model.weights_)
    own -= logsumexp(own, axis=1, keepdims=True)
    laws = {"given the chain": chain, "given the own residue": own, "given nothing": np.log(model.weights_)}
    return {name: round(float(logsumexp(emitted + law, axis=1).mean()), 4) for name, law in laws.items()}


# ------------------------------------------------------------------------------------------------------------- figure


def draw(data: Chains, k: int) -> None:
    """Ramachandran figures: the density of every state, and the amino acids that stand out in it."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    model, letters = acid_model(data, k), np.array(list("ACDEFGHIKLMNPQRSTVWY"))
    turn = np.linspace(-np.pi, np.pi, GRID)
    grid = np.stack(np.meshgrid(turn, turn), axis=-1).reshape(-1, 2)
    density = np.exp(model.components_[0].log_density(grid)).reshape(GRID, GRID, k)
    shares = model.components_[1].density(np.arange(20.0))
    states = model.predict(np.column_stack([data.angles, data.acids]), lengths=data.lengths)
    figure, axes = plt.subplots(-(-k // 4), 4, figsize=(10, 2.7 * -(-k // 4)), sharex=True, sharey=True)
    for h, ax in enumerate(axes.ravel()[:k]):
        ax.contourf(np.rad2deg(turn), np.rad2deg(turn), np.sqrt(density[:, :, h]), 12, cmap="Blues")
        lift = shares[:, h] / (shares @ model.weights_)
        kinds = [f"{np.mean(data.kinds[states == h] == kind):.0%} {kind}" for kind in HELIX]
        title = f"state {h}, {model.weights_[h]:.0%}: {', '.join(kinds)}\n{' '.join(letters[np.argsort(-lift)[:4]])}"
        ax.set_title(title, fontsize=8)
        ax.set(xticks=[-180, 0, 180], yticks=[-180, 0, 180])
    figure.supxlabel("φ, degrees")
    figure.supylabel("ψ, degrees")
    figure.tight_layout()
    figure.savefig(RESULTS / "torus.png", dpi=100, facecolor="white", pil_kwargs={"optimize": True})


def keep(question: str, name: str, ask: Callable[[], dict[str, Any]]) -> None:
    """Ask, print and save, unless the answer is saved already."""
    path = RESULTS / "torus.json"
    if name in saved(path).get(question, {}):
        return
    found = {**ask(), "commit": _record.COMMIT}
    print(f"{question}: {name:<40}", {key: value for key, value in found.items() if key != "tried"}, flush=True)
    results = saved(path)  # another part may have been saved since
    results.setdefault(question, {})[name] = found
    _record.save(path, results, PACKAGES)


def saved(path: Path) -> dict[str, Any]:
    """What was measured before."""
    return json.loads(path.read_text())["results"] if path.exists() else {}


def main() -> None:
    """All questions, or some, and the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["acids", "chains", "triples", "figure"])
    part = parser.parse_args().part
    warnings.simplefilter("ignore")
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    inner, choosing, held = load(Path(os.environ["LATENTVIEWS_DATA"]))
    chains = [inner, choosing, joined(inner, choosing), held]
    if part in (None, "acids"):
        keep("from amino acids", "KernelHMM", lambda: from_acids(*chains))
    if part in (None, "chains"):
        rows = [some.angles for some in chains]
        for name, way in OF_ROWS.items():
            keep("chains", name, partial(judged, way, rows, held.kinds, PEER_COUNTS))
        for name, (way, counts) in OF_CHAINS.items():
            keep("chains", name, partial(judged, way, chains, held.kinds, counts))
    if part in (None, "triples"):
        rows, kinds = [some.triples()[0] for some in chains], held.triples()[1]
        keep("triples", "MultiViewMixture", partial(judged, three_views, rows, kinds, COUNTS))
        for name, way in OF_ROWS.items():
            keep("triples", name, partial(judged, way, rows, kinds, PEER_COUNTS))
    if part in (None, "figure"):
        draw(chains[2], 8)


if __name__ == "__main__":
    main()
