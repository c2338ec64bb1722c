"""k-means in one thread, and clusters as posteriors."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
import threadpoolctl
from sklearn import config_context
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning


def kmeans(x: np.ndarray, size: int, seed: int, n_init: int = 1, weights: np.ndarray | None = None) -> KMeans:
    """Clusters of rows."""
    with in_one_thread():
        return KMeans(size, n_init=n_init, random_state=seed).fit(x, sample_weight=weights)


def cluster_posteriors(clusters: KMeans, x: np.ndarray) -> np.ndarray:
    """The clusters of rows as posteriors, softened a little."""
    with in_one_thread():
        labels = clusters.predict(x)
    return 0.98 * np.eye(clusters.n_clusters)[labels] + 0.02 / clusters.n_clusters


@contextmanager
def in_one_thread() -> Iterator[None]:
    """Many small steps take up to thirty times as long where threads wait for each other on a busy machine.

    Warnings that few steps were made, or that fewer rows differ than clusters were asked for, are not for the user.
    """
    with warnings.catch_warnings(), _thread_pools().limit(limits=1), config_context(array_api_dispatch=False):
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@cache
def _thread_pools() -> threadpoolctl.ThreadpoolController:
    """The libraries with threads, all of them imported above; to look for them takes as long as a small k-means."""
    return threadpoolctl.ThreadpoolController()


CLUSTER_ROWS = 4000  # rows that k-means sees


def kmeans_posteriors(
    table: np.ndarray,
    used: list[int],
    rank: int,
    rng: np.random.Generator,
    weights: np.ndarray | None = None,
    n_init: int = 3,
) -> np.ndarray:
    """Clusters of the standardised columns, softened a little."""
    table = table[:, used]
    center, spread = np.nanmean(table, axis=0), np.nanstd(table, axis=0)
    table = np.where(np.isnan(table), 0.0, (table - center) / np.where(spread > 0, spread, 1.0))
    few = rng.permutation(len(table))[:CLUSTER_ROWS]
    seed = int(rng.integers(2**31))
    clusters = kmeans(table[few], rank, seed, n_init, None if weights is None else weights[few])
    return cluster_posteriors(clusters, table)
