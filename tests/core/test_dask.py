"""Rows in Dask's chunks: the same answers as from memory, and nothing but small sums and the pilot travels."""

import re
import signal

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from latentviews import Delta, KernelHMM, LandmarkPCA, LowRankDensity, MultiViewMixture, Sieve, SignedTrain
from latentviews.core.streams import dask as chunks
from latentviews.datasets import make_hmm, make_multiview

ROWS = make_multiview(1500, 3, design="gamma", random_state=0).X
FRAME = pd.DataFrame(ROWS, columns=["a", "b", "c"])
GRID = np.linspace(0.1, 6, 15)


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def unknown(x):
    """A Dask array whose chunks are of unknown size, one of them empty."""
    return x[x[:, 0] > -np.inf]


def delayed(*parts):
    return [dask.delayed(lambda part: part, pure=False)(part) for part in parts]


ARRAY = da.from_array(ROWS, chunks=(400, 3))
COLLECTIONS = {
    "array": ARRAY,
    "chunks along columns": da.from_array(ROWS, chunks=(700, 2)),
    "unknown sizes": unknown(ARRAY),
    "unknown sizes along columns": unknown(da.from_array(ROWS, chunks=(700, 2))),
    "dataframe": dd.from_pandas(FRAME, npartitions=4),
    "delayed batches": delayed(ROWS[:600], ROWS[600:600], ROWS[600:]),
    "delayed frames": delayed(FRAME[:600], FRAME[600:]),
    "one delayed batch": dask.delayed(ROWS),
    "some weighted": delayed((ROWS[:600], np.ones(600)), ROWS[600:]),
    "weighted pairs": delayed((ROWS[:600], np.ones(600)), (ROWS[600:], np.ones(900))),
}
every_kind = pytest.mark.parametrize("given", COLLECTIONS.values(), ids=COLLECTIONS)


def mixture(**options):
    return MultiViewMixture(3, polish=None, pilot_size=600, random_state=0, **options)


@pytest.fixture(scope="module")
def from_memory():
    return mixture().fit(ROWS)


@every_kind
def test_a_fit_to_chunks_is_the_fit_to_the_rows(given, from_memory):
    model = mixture().fit(given)

    np.testing.assert_allclose(model.weights_, from_memory.weights_, rtol=0, atol=1e-10)
    for found, wanted in zip(model.components_, from_memory.components_, strict=True):
        np.testing.assert_allclose(found.density(GRID), wanted.density(GRID), rtol=0, atol=1e-10)


@every_kind
def test_answers_are_lazy_arrays_in_the_order_of_the_rows(given, from_memory, monkeypatch):
    named = given is COLLECTIONS["dataframe"] or given is COLLECTIONS["delayed frames"]
    model = mixture().fit(given) if named else from_memory
    monkeypatch.setattr(chunks, "computed", lambda tasks: pytest.fail("a chunk was computed"))

    answers = [getattr(model, name)(given) for name in ("predict", "predict_proba", "score_samples")]

    assert all(isinstance(answer, da.Array) for answer in answers)
    assert [(answer.ndim, answer.dtype.kind) for answer in answers] == [(1, "i"), (2, "f"), (1, "f")]
    wanted = [getattr(from_memory, name)(ROWS) for name in ("predict", "predict_proba", "score_samples")]
    for found, truth in zip(dask.compute(*answers), wanted, strict=True):
        np.testing.assert_allclose(found, truth, rtol=0, atol=1e-8)


def test_scores_are_means_over_all_chunks(from_memory):
    assert from_memory.score(unknown(ARRAY)) == pytest.approx(from_memory.score(ROWS), abs=1e-12)


def test_the_chunks_of_known_size_stay_known(from_memory):
    assert from_memory.predict(ARRAY).chunks == ((400, 400, 400, 300),)
    assert from_memory.predict_proba(ARRAY).chunks == ((400, 400, 400, 300), (3,))


def test_a_polished_fit_to_chunks_is_the_one_to_the_rows():
    fits = [MultiViewMixture(3, pilot_size=600, random_state=0).fit(X) for X in (ARRAY, ROWS)]

    assert fits[0].n_iter_ == fits[1].n_iter_
    np.testing.assert_allclose(fits[0].weights_, fits[1].weights_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(fits[0].predict_proba(ROWS), fits[1].predict_proba(ROWS), rtol=0, atol=1e-8)


@pytest.mark.parametrize("method", [None, SignedTrain()], ids=["stack", "signed train"])
def test_a_joint_density_of_chunks_is_that_of_the_rows(method):
    rows = ROWS.copy()
    rows[::40, 1] = np.nan
    fits = [
        LowRankDensity(2, method=method, pilot_size=600, random_state=0).fit(X)
        for X in (unknown(da.from_array(rows, chunks=(400, 3))), rows)
    ]

    np.testing.assert_allclose(fits[0].score_samples(ARRAY).compute(), fits[1].score_samples(ROWS), rtol=0, atol=1e-8)


def test_principal_components_of_chunks_are_those_of_the_rows():
    fits = [LandmarkPCA(2, n_landmarks=40, pilot_size=600, random_state=0).fit(X) for X in (unknown(ARRAY), ROWS)]

    assert fits[0].n_samples_seen_ == len(ROWS)
    np.testing.assert_allclose(fits[0].explained_variance_, fits[1].explained_variance_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(fits[0].transform(ARRAY).compute(), fits[1].transform(ROWS), rtol=0, atol=1e-8)


def test_missing_values_are_missing_in_chunks_too():
    rows = ROWS.copy()
    rows[::7, 1] = np.nan

    fits = [mixture().fit(X) for X in (da.from_array(rows, chunks=(400, 3)), rows)]

    np.testing.assert_allclose(fits[0].weights_, fits[1].weights_, rtol=0, atol=1e-10)


def test_weights_of_delayed_batches_count_as_those_of_rows(rng):
    weights = rng.uniform(0.0, 2.0, size=len(ROWS))
    weights /= weights.mean()
    parts = delayed((ROWS[:600], weights[:600]), (ROWS[600:], weights[600:]))

    one, other = mixture().fit(parts), mixture().fit(ROWS, sample_weight=weights)

    np.testing.assert_allclose(one.weights_, other.weights_, rtol=0, atol=1e-10)


def test_named_views_choose_the_columns_of_a_dataframe(from_memory):
    frame = dd.from_pandas(FRAME.assign(id=range(len(FRAME))), npartitions=3)

    model = mixture(views={"first": ["a"], "second": ["b"], "third": ["c"]}).fit(frame)

    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(model.weights_, from_memory.weights_, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(model.predict(frame).compute(), from_memory.predict(ROWS))


def test_nothing_but_sums_and_the_pilot_travels(monkeypatch):
    wide = da.from_array(np.tile(ROWS, (20, 1)), chunks=(10_000, 3))
    sizes, computed = [], chunks.computed

    def weighed(tasks):
        found = computed(tasks)
        sizes.append(sum(part.nbytes for one in found for part in parts_of(one)))
        return found

    monkeypatch.setattr(chunks, "computed", weighed)
    model = mixture().fit(wide)

    head, pilot, moments = sizes  # in bytes; a chunk has 240,000
    assert head == 24 * chunks.HEAD
    assert pilot == 24 * 600
    grids = sum(len(view.grid) for view in model.components_)
    assert moments <= 8 * (grids * 9 + 10_000)  # E[ψ z'], three z of three coordinates each, and what is smaller


def parts_of(result):
    """The arrays in what a task gave."""
    if isinstance(result, np.ndarray):
        return [result]
    return [part for one in result for part in parts_of(one)] if isinstance(result, tuple) else []


def test_sums_are_added_as_a_tree(monkeypatch):
    many, seen = da.from_array(ROWS, chunks=(15, 3)), []
    monkeypatch.setattr(chunks, "_added", lambda sums, added=chunks._added: seen.append(len(sums)) or added(sums))

    mixture().fit(many)

    assert sorted(seen) == sorted([8] * 12 + [4] + [8, 5] + [2])  # 100 chunks, 13 sums, 2, and one


def test_a_verbose_fit_tells_of_every_pass(capsys):
    mixture(verbose=1).fit(ARRAY)

    assert re.fullmatch(r"MultiViewMixture: 4 chunks, \d+\.\d s\n", capsys.readouterr().err)


def test_an_interrupt_leaves_the_model_as_it_was():
    def interrupted(rows, block_id):
        if block_id == (2, 0):
            signal.raise_signal(signal.SIGINT)
        return rows

    model = mixture()
    with pytest.raises(KeyboardInterrupt), dask.config.set(scheduler="threads"):
        model.fit(ARRAY.map_blocks(interrupted, dtype=float))

    assert not hasattr(model, "n_features_in_")


# ---------------------------------------------------------------------------------------------------------- sequences

ONE_WIDTH = Sieve(factors=(2.0,), n_init=0)
CHAIN = make_hmm(1800, random_state=0).X
SIZES, LENGTHS = (500, 900, 400), [200, 300, 900, 150, 250]
CHAIN_CHUNKS = da.from_array(CHAIN, chunks=(SIZES, 1))


def chains(X, **options):
    return KernelHMM(3, polish=None, pilot_size=700, random_state=0).fit(X, **options)


@pytest.mark.parametrize(("own", "lengths"), [(None, SIZES), (LENGTHS, LENGTHS)], ids=["chunks", "lengths"])
def test_states_of_chunks_are_those_of_sequences(own, lengths):
    one, other = chains(unknown(CHAIN_CHUNKS), lengths=own), chains(CHAIN, lengths=lengths)

    np.testing.assert_allclose(one.transition_, other.transition_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(one.start_, other.start_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(one.weights_, other.weights_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(
        one.components_[0].density(GRID[:, None]), other.components_[0].density(GRID[:, None]), rtol=0, atol=1e-8
    )
    for name in ("predict", "predict_proba", "filter", "score_samples"):
        answer = getattr(one, name)(CHAIN_CHUNKS, lengths=own)
        assert isinstance(answer, da.Array)
        np.testing.assert_allclose(answer.compute(), getattr(one, name)(CHAIN, lengths=lengths), rtol=0, atol=1e-12)


def test_baum_welch_over_chunks_is_that_over_sequences():
    one, other = (KernelHMM(2, polish=ONE_WIDTH, random_state=0).fit(X, lengths=LENGTHS) for X in (CHAIN_CHUNKS, CHAIN))

    np.testing.assert_allclose(one.transition_, other.transition_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(one.score(CHAIN, lengths=LENGTHS), other.score(CHAIN, lengths=LENGTHS), atol=1e-8)


def test_steps_over_chunks_are_taken_where_the_pilot_is_not_all():
    one, other = (
        KernelHMM(2, polish=ONE_WIDTH, pilot_size=900, random_state=0).fit(X, lengths=SIZES)
        for X in (CHAIN_CHUNKS, CHAIN)
    )

    # the laws come of all rows; how emissions are smoothed is read off the pilot in one fit, off all rows in the other
    np.testing.assert_allclose(one.transition_, other.transition_, atol=0.02)
    assert abs(one.score(CHAIN) - other.score(CHAIN)) < 0.02


def test_a_sequence_over_the_end_of_a_chunk_is_refused():
    with pytest.raises(ValueError, match="A sequence goes over the end of chunk 1, after row 500; chunks hold whole"):
        chains(CHAIN_CHUNKS, lengths=[900, 900])
    with pytest.raises(ValueError, match="they add up to 1000, and X has 1800 rows"):
        chains(CHAIN_CHUNKS, lengths=[500, 500])


# ---------------------------------------------------------------------------------------------------------- sentences

SENTENCES = {
    "text": (
        dd.from_pandas(FRAME.assign(donor="ann"), npartitions=2),
        r"Columns \['donor'\] of the Dask DataFrame are not numbers; leave them out, X\[\[",
    ),
    "text in an array": (da.from_array(ROWS.astype(str)), "A Dask array of rows holds numbers; got <U"),
    "one dimension": (ARRAY[:, 0], r"have two dimensions; got shape \(1500,\). Make x of one column"),
    "three dimensions": (ARRAY[:, :, None], r"have two dimensions; got shape \(1500, 3, 1\)"),
    "series": (dd.from_pandas(FRAME["a"], npartitions=2), "have two dimensions; got a Series"),
    "no rows": (ARRAY[:0], "The Dask collection holds no row"),
    "all chunks empty": (ARRAY[ARRAY[:, 0] > np.inf], "The Dask collection holds no row"),
    "no delayed rows": (delayed(ROWS[:0], ROWS[:0]), "The Dask collection holds no row"),
    "infinity": (
        da.concatenate([ARRAY, da.full((5, 3), np.inf)]),
        "Chunk 5 of 5: X contains infinity, first in row 0 of column 0, and",
    ),
    "fewer columns": (delayed(ROWS[:700], ROWS[700:, :2]), "Chunk 2 of 2: X has 2 features, but MultiViewMixture is"),
    "weights": (
        delayed((ROWS[:700], np.ones(700)), (ROWS[700:], np.ones(3))),
        r"Chunk 2 of 2: A batch of 800 rows needs as many nonnegative weights; got shape \(3,\)",
    ),
    "no weight": (delayed((ROWS, np.zeros(1500))), "need at least 3 rows; got n_samples = 0"),
    "list of arrays": ([ARRAY, ARRAY], "A list of Dask collections is taken for neither views nor batches"),
}  # fmt: skip


@pytest.mark.parametrize(("given", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_what_is_no_table_gets_a_sentence(given, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        MultiViewMixture(3, polish=None, random_state=0).fit(given)


def test_nan_is_refused_where_rows_are_complete():
    holed = ROWS.copy()
    holed[900, 1] = np.nan

    with pytest.raises(ValueError, match="Chunk 3 of 4: X contains NaN, first in row 100 of column 1, and LandmarkPCA"):
        LandmarkPCA(2, n_landmarks=40, random_state=0).fit(da.from_array(holed, chunks=(400, 3)))


def test_text_of_a_discrete_view_is_asked_for_as_codes():
    with pytest.raises(ValueError, match=r"Categories in Dask's chunks are codes"):
        MultiViewMixture(2, kernel=Delta(), polish=None).fit(delayed(FRAME.astype(str)))


def test_what_goes_along_rows_is_no_part_of_a_collection():
    with pytest.raises(ValueError, match=r"in a stream, yield pairs \(rows, weights\) instead"):
        mixture().fit(ARRAY, sample_weight=np.ones(len(ROWS)))


def test_chunks_are_not_read_one_by_one():
    with pytest.raises(TypeError, match="The chunks of a Dask collection are not fetched one by one"):
        iter(chunks.as_chunks(ARRAY))


def test_a_model_without_a_fit_says_so():
    with pytest.raises(ValueError, match="is not fitted yet"):
        mixture().predict(ARRAY)
