"""Two worker processes: the answer does not depend on them, nor on one of them dying in the middle of a fit."""

import os
import signal
import threading
import time
from importlib import import_module

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from latentviews import MultiViewMixture
from latentviews.datasets import make_multiview
from slow_rows import Slow

ROWS = make_multiview(1200, 3, design="gamma", random_state=0).X
PASSES = 2  # of a spectral fit: the pilot, and the moments


@pytest.fixture(scope="module")
def client():
    options = {"processes": True, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    patience = {"distributed.scheduler.no-workers-timeout": "60s"}  # without workers a fit would wait for ever
    with dask.config.set(patience), LocalCluster(**options) as cluster, Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        client.run(import_module, "latentviews.mixtures.mixture")
        yield client


def after(slow, count, act):
    """Do something once so many chunks have been read."""

    def wait():
        while sum(slow.notes().values()) < count:
            time.sleep(0.01)
        act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def mixture():
    return MultiViewMixture(3, polish=None, pilot_size=500, random_state=0)


def test_a_worker_that_is_killed_costs_a_retry_and_not_the_answer(client, tmp_path):
    slow, truth = Slow(tmp_path), mixture().fit(ROWS)
    workers, killed = set(client.run(os.getpid).values()), []

    def kill():
        killed.append(max(slow.notes(), key=slow.notes().get))
        os.kill(killed[0], signal.SIGKILL)

    killer = after(slow, 30, kill)
    model = mixture().fit(slow.rows(ROWS, 24))
    killer.join()

    np.testing.assert_allclose(model.weights_, truth.weights_, rtol=0, atol=1e-10)
    assert workers - set(client.run(os.getpid).values()) == set(killed)
    assert sum(slow.notes().values()) >= 24 * PASSES  # no chunk was left out


def test_predictions_are_found_where_the_chunks_are(client):
    model = mixture().fit(ROWS)

    labels = model.predict(da.from_array(ROWS, chunks=(400, 3))).persist()

    assert all(future.status in ("pending", "finished") for future in client.futures.values())
    np.testing.assert_array_equal(labels.compute(), model.predict(ROWS))


def wait_without(client, tasks_of_a_worker):
    """Wait until no worker has a task of this kind, and the scheduler none at all."""
    end = time.monotonic() + 120
    while any(client.run(tasks_of_a_worker).values()) or client.run_on_scheduler(
        lambda dask_scheduler: len(dask_scheduler.tasks)
    ):
        assert time.monotonic() < end, "tasks were not taken back"
        time.sleep(0.05)


def test_an_interrupt_stops_the_workers_too(client, tmp_path):
    slow, model = Slow(tmp_path, limit=5), mixture()
    interrupt = after(slow, 5, lambda: os.kill(os.getpid(), signal.SIGINT))

    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(slow.rows(ROWS, 300))
        interrupt.join()
        wait_without(client, lambda dask_worker: len(dask_worker.state.tasks) > 1)  # but for the chunk it is in
    finally:
        slow.go_on()
    wait_without(client, lambda dask_worker: len(dask_worker.state.tasks))

    assert sum(slow.notes().values()) <= 6  # the limit, and the chunk that the other worker had begun
    assert not hasattr(model, "n_features_in_")


def test_rows_that_were_on_a_cluster_that_is_closed_are_missed():
    with LocalCluster(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as own, Client(own):
        rows = da.from_array(ROWS, chunks=(400, 3)).persist()

    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(RuntimeError, match="and so are rows that were persisted"),
    ):
        mixture().fit(rows)


def test_a_scheduler_that_is_gone_is_said_so(tmp_path):
    slow = Slow(tmp_path)
    with LocalCluster(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as own, Client(own):
        closing = after(slow, 3, own.close)
        with pytest.raises(RuntimeError, match="Dask's scheduler is closed or cannot be reached"):
            mixture().fit(slow.rows(ROWS, 100))
        closing.join()
