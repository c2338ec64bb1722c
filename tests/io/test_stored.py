"""Tables that stay in their files: the same answers as from memory, and sentences that name the file and the place."""

import re
import signal
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import zarr

from files import NAMES, VALUES, write_csv, write_fcs
from latentviews import KernelHMM, LandmarkPCA, LowRankDensity, MultiViewMixture, rank_test
from latentviews.datasets import make_hmm, make_multiview
from latentviews.io import InputError, StoredTable, open_table, source, stored

ROWS = make_multiview(1500, 3, design="gamma", random_state=0).X
GRID = np.linspace(0.1, 6, 15)


def parquet(path, values=ROWS, names=NAMES, size=400):
    pq.write_table(pa.table(dict(zip(names, values.T, strict=True))), path, row_group_size=size)


def in_parts(folder, write, suffix):
    folder.mkdir(exist_ok=True)
    for number, part in enumerate(np.split(ROWS, [300, 1100])):
        write(folder / f"part-{number}.{suffix}", part)
    (folder / "_SUCCESS").write_text("")


def saved(folder):
    np.save(folder / "rows.npy", ROWS)
    return folder / "rows.npy"


def in_zarr(folder):
    array = zarr.create_array(folder / "rows.zarr", shape=ROWS.shape, chunks=(256, 3), dtype="f8")
    array[:] = ROWS
    return folder / "rows.zarr"


def in_csv(folder):
    write_csv(folder / "rows.csv", values=ROWS)
    return str(folder / "rows.csv")


def in_parquet(folder):
    parquet(folder / "rows.parquet")
    return str(folder / "rows.parquet")


def in_folder(folder):
    in_parts(folder / "many", parquet, "parquet")
    return folder / "many"


STORED = {
    "npy": saved,
    "memory map": lambda folder: np.load(saved(folder), mmap_mode="r"),
    "csv": in_csv,
    "zarr": in_zarr,
    "zarr array": lambda folder: zarr.open(in_zarr(folder), mode="r"),
    "parquet": in_parquet,
    "folder": in_folder,
    "list of files": lambda folder: sorted(in_folder(folder).glob("*.parquet")),
    "arrow dataset": lambda folder: pyarrow.dataset.dataset(in_folder(folder), format="parquet"),
}
every_kind = pytest.mark.parametrize("write", STORED.values(), ids=STORED)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Pieces and memory maps of a few rows, as if the files were large."""
    monkeypatch.setattr(source, "ROWS", 250)
    monkeypatch.setattr(stored, "BIG", 1)


@every_kind
def test_pieces_hold_every_row_once(write, tmp_path):
    table = open_table(write(tmp_path))

    for _ in range(2):
        pieces = [np.asarray(piece) for piece in table]
        np.testing.assert_array_equal(np.concatenate(pieces), ROWS)
    assert max(map(len, pieces)) <= 256 or table.files[0].source.format == "csv"  # Arrow cuts text by bytes
    assert table.n_rows == len(ROWS)


@every_kind
def test_a_fit_from_files_is_the_fit_from_memory(write, tmp_path):
    model = MultiViewMixture(3, polish=None, pilot_size=600, random_state=0)
    truth = MultiViewMixture(3, polish=None, pilot_size=600, random_state=0).fit(ROWS)

    given = write(tmp_path)
    model.fit(given)

    np.testing.assert_allclose(model.weights_, truth.weights_, rtol=0, atol=1e-10)
    for found, wanted in zip(model.components_, truth.components_, strict=True):
        np.testing.assert_allclose(found.density(GRID), wanted.density(GRID), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(model.predict(given), truth.predict(ROWS))
    np.testing.assert_allclose(model.score_samples(given), truth.score_samples(ROWS), rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(given), truth.predict_proba(ROWS), rtol=0, atol=1e-8)


def test_a_polished_fit_from_a_file_is_the_one_from_memory(tmp_path):
    one, other = (MultiViewMixture(3, pilot_size=600, random_state=0) for _ in range(2))

    path = in_parquet(tmp_path)
    one.fit(path)
    other.fit(ROWS)

    np.testing.assert_allclose(one.weights_, other.weights_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(one.score(path), other.score(ROWS), rtol=0, atol=1e-10)
    assert one.feature_names_in_.tolist() == NAMES


def test_other_models_take_files_too(tmp_path):
    path = saved(tmp_path)

    density = [LowRankDensity(2, pilot_size=600, random_state=0).fit(X) for X in (path, ROWS)]
    axes = [LandmarkPCA(2, n_landmarks=40, pilot_size=600, random_state=0).fit(X) for X in (path, ROWS)]

    np.testing.assert_allclose(density[0].score_samples(path), density[1].score_samples(ROWS), rtol=0, atol=1e-8)
    np.testing.assert_allclose(axes[0].transform(path), axes[1].transform(ROWS), rtol=0, atol=1e-8)
    assert rank_test(path, random_state=0).n_components == rank_test(ROWS, random_state=0).n_components


def test_sequences_are_read_from_a_file_as_a_whole(tmp_path):
    X = make_hmm(600, random_state=0).X
    pd.DataFrame(X, columns=["level"]).to_parquet(tmp_path / "x.parquet")

    one, other = (
        KernelHMM(2, polish=None, random_state=0).fit(x, lengths=[200, 400]) for x in (tmp_path / "x.parquet", X)
    )

    np.testing.assert_array_equal(one.transition_, other.transition_)
    np.testing.assert_array_equal(one.predict(tmp_path / "x.parquet"), other.predict(X))


def test_named_views_choose_the_columns_of_a_file(tmp_path):
    values = np.column_stack([np.arange(len(ROWS)), ROWS])
    parquet(tmp_path / "rows.parquet", values, ["id", *NAMES])

    model = MultiViewMixture(3, views=[[name] for name in NAMES], polish=None, random_state=0)
    model.fit(tmp_path / "rows.parquet")
    by_hand = MultiViewMixture(3, polish=None, random_state=0).fit(
        open_table(tmp_path / "rows.parquet", exclude=["id"])
    )

    assert model.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(model.weights_, by_hand.weights_)


def test_single_precision_stays_so(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS.astype(np.float32))

    assert {piece.dtype for piece in open_table(tmp_path / "rows.npy")} == {np.dtype(np.float32)}


def test_a_memory_map_with_weights_is_taken_as_an_array(tmp_path):
    mapped, weights = np.load(saved(tmp_path), mmap_mode="r"), np.linspace(0.5, 1.5, len(ROWS))

    fits = [MultiViewMixture(3, polish=None, random_state=0).fit(X, sample_weight=weights) for X in (mapped, ROWS)]

    np.testing.assert_array_equal(fits[0].weights_, fits[1].weights_)


def test_what_was_written_to_a_private_map_is_not_forgotten(tmp_path):
    mapped = np.load(saved(tmp_path), mmap_mode="c")
    mapped[0] = -1.0

    for _ in range(2):
        assert next(iter(open_table(mapped)))[0, 0] == -1.0
        list(open_table(mapped))


def test_a_verbose_fit_tells_how_far_a_pass_is(tmp_path, capsys):
    MultiViewMixture(3, polish=None, pilot_size=600, verbose=1, random_state=0).fit(in_parquet(tmp_path))

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2  # the pilot, and the moments
    assert all(re.fullmatch(r"MultiViewMixture: rows.parquet, 1,500 of 1,500 rows, \d+\.\d s", line) for line in lines)


def test_an_interrupt_leaves_the_model_as_it_was(tmp_path, monkeypatch):
    model, placed, seen = MultiViewMixture(3, polish=None, pilot_size=600, random_state=0), StoredTable.placed, []

    def interrupted(table):
        for piece in placed(table):
            seen.append(piece)
            if len(seen) == 9:
                signal.raise_signal(signal.SIGINT)
            yield piece

    monkeypatch.setattr(StoredTable, "placed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(saved(tmp_path))

    assert not hasattr(model, "weights_")
    assert not hasattr(model, "n_features_in_")


# ---------------------------------------------------------------------------------------------------------- sentences


def fit(X):
    return MultiViewMixture(3, polish=None, random_state=0).fit(X)


def test_a_text_column_is_named(tmp_path):
    frame = pd.DataFrame(ROWS, columns=NAMES).assign(donor="ann")
    frame.to_parquet(tmp_path / "rows.parquet")

    with pytest.raises(
        InputError, match=r"rows.parquet has text in 'donor'; name the columns to use, open_table\(path, co"
    ):
        fit(tmp_path / "rows.parquet")
    assert fit(open_table(tmp_path / "rows.parquet", exclude=["donor"])).n_features_in_ == 3


def test_files_that_differ_in_columns_are_named(tmp_path):
    parquet(tmp_path / "a.parquet")
    parquet(tmp_path / "b.parquet", names=["CD3", "CD5", "CD20"])

    with pytest.raises(InputError, match=r"b.parquet has not the columns of .*a.parquet: 'CD19', 'CD20' are in one of"):
        fit(tmp_path)
    with pytest.raises(InputError, match=r"b.parquet has no column 'CD19'; it has 'CD3', 'CD5', 'CD20'"):
        open_table([tmp_path / "a.parquet", tmp_path / "b.parquet"], NAMES)


def test_columns_in_another_order_are_found_by_name(tmp_path):
    parquet(tmp_path / "a.parquet", ROWS[:700])
    parquet(tmp_path / "b.parquet", ROWS[700:, ::-1], NAMES[::-1])

    np.testing.assert_array_equal(np.concatenate([np.asarray(piece) for piece in open_table(tmp_path)]), ROWS)


def test_files_without_rows_are_refused(tmp_path):
    (tmp_path / "nothing.parquet").write_bytes(b"")
    with pytest.raises(InputError, match=r"nothing.parquet is empty"):
        fit(tmp_path / "nothing.parquet")
    parquet(tmp_path / "no_rows.parquet", ROWS[:0])
    with pytest.raises(InputError, match=r"no_rows.parquet has no rows"):
        fit(tmp_path / "no_rows.parquet")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="folder is a directory without a Parquet, NPY or text file"):
        fit(tmp_path / "folder")
    with pytest.raises(InputError, match="The list of files is empty"):
        open_table([])
    with pytest.raises(InputError, match="by its path, or a list of paths; got int"):
        open_table(3)
    with pytest.raises(InputError, match=r"nowhere\.npy does not exist"):
        fit("nowhere.npy")


@pytest.mark.parametrize(("value", "model", "sentence"), [
    (np.inf, MultiViewMixture(3, polish=None), r"row group 3 of 4, column 'CD5': the value in row 6 of these is inf"),
    (np.nan, LandmarkPCA(2), r"row group 3 of 4: X contains NaN, first in row 5 of column 1"),
])  # fmt: skip
def test_a_bad_value_is_placed_in_file_and_row_group(value, model, sentence, tmp_path):
    rows = ROWS.copy()
    rows[805, 1] = value
    parquet(tmp_path / "rows.parquet", rows)

    with pytest.raises(ValueError, match=f"rows.parquet, {sentence}"):
        model.fit(tmp_path / "rows.parquet")


def test_a_bad_value_at_the_beginning_is_placed_in_its_file(tmp_path):
    rows = ROWS.copy()
    rows[5, 1] = np.nan
    parquet(tmp_path / "rows.parquet", rows)

    with pytest.raises(ValueError, match=r"^rows.parquet: X contains NaN, first in row 5 of column 1"):
        LandmarkPCA(2).fit(tmp_path / "rows.parquet")


def test_a_damaged_row_group_is_named(tmp_path):
    path = in_parquet(tmp_path)
    group = pq.ParquetFile(path).metadata.row_group(2).column(0)
    with open(path, "r+b") as file:
        file.seek(group.dictionary_page_offset or group.data_page_offset)
        file.write(b"\xff" * 64)

    with pytest.raises(InputError, match=r"rows.parquet, row group 3 of 4: it cannot be read to its end"):
        fit(path)


def test_a_cell_that_is_no_number_is_placed_in_its_row(tmp_path):
    path = in_csv(tmp_path)
    with open(path, "a") as file:
        file.write("1.0,high,2.0\n")

    with pytest.raises(InputError, match=r"rows.csv, row 1,501 \(line 1,502\), column 'CD5': 'high' is not a number"):
        fit(path)


def test_a_file_whose_scales_need_all_of_it_is_read_at_once(tmp_path):
    write_fcs(tmp_path / "cells.fcs", VALUES)

    with pytest.raises(
        InputError, match=r"cells.fcs is a file of kind fcs, whose scales are read off all of it: fit\(read_"
    ):
        fit(tmp_path / "cells.fcs")


@pytest.mark.parametrize("options", [{"polish": None}, {}], ids=["spectral", "polished"])
def test_weights_beside_a_file_are_those_beside_an_array(options, tmp_path):
    weights = np.random.default_rng(0).uniform(0, 3, size=len(ROWS))
    fits = [
        MultiViewMixture(3, pilot_size=len(ROWS) // 2, random_state=0, **options).fit(X, sample_weight=weights)
        for X in (saved(tmp_path), ROWS)
    ]

    np.testing.assert_allclose(fits[0].weights_, fits[1].weights_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(fits[0].predict_proba(ROWS), fits[1].predict_proba(ROWS), rtol=0, atol=1e-8)
    assert np.abs(fits[0].weights_ - fit(saved(tmp_path)).weights_).max() > 1e-3


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_text_of_a_file_is_taken_as_categories_a_piece_at_a_time(kind, tmp_path):
    names = ["color", "a", "b", "c"]
    words = np.where(ROWS[:, 0] > np.median(ROWS[:, 0]), "red", "green").astype(object)
    words[::50] = None
    frame = pd.DataFrame(ROWS, columns=names[1:]).assign(color=words, note="x")
    path = tmp_path / f"rows.{kind}"
    frame.to_parquet(path, row_group_size=len(ROWS) // 3) if kind == "parquet" else frame.to_csv(path, index=False)
    table = open_table(path, names)
    fits = [MultiViewMixture(3, polish=None, random_state=0).fit(X) for X in (table, frame[names])]

    assert fits[0].categories_[0].tolist() == ["green", "red"]
    np.testing.assert_allclose(fits[0].weights_, fits[1].weights_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(fits[0].predict_proba(table), fits[1].predict_proba(frame[names]), rtol=0, atol=1e-8)


def test_a_word_among_the_numbers_of_a_file_with_text_is_told(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("t,a,b\n" + "x,1,2\n" * 200 + "y,much,2\n")
    with pytest.raises(InputError, match=r"row 201 \(line 202\), column 'a': 'much' is not a number"):
        list(open_table(path, ["t", "a", "b"]))


def test_a_store_without_text_refuses_it(tmp_path):
    opened = source.Source("npy", ["1", "2"], lambda _: ROWS, texts=[1], pieces=lambda _: iter(()), count=lambda: 3)
    with pytest.raises(InputError, match="of kind npy, of which columns of text cannot be read"):
        list(stored.stored_columns(tmp_path, opened, ["1", "2"]))


def test_weights_beside_a_file_are_as_many_as_its_rows(tmp_path):
    with pytest.raises(ValueError, match=rf"one number per row, shape \({len(ROWS)},\); got \(3,\)"):
        MultiViewMixture(3).fit(saved(tmp_path), sample_weight=np.ones(3))


def test_files_need_no_dask(tmp_path, monkeypatch):
    for name in ("dask", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)

    assert fit(saved(tmp_path)).n_components_ == 3


def test_many_files_take_no_more_memory_than_one(tmp_path):
    """A file that stays open keeps what was read of it."""
    table = pa.table(dict(zip("abc", np.random.default_rng(0).normal(size=(3, 50_000)), strict=True)))
    for number in range(40):
        pq.write_table(table, tmp_path / f"{number:02d}.parquet")
    held = []
    for _, _ in open_table(tmp_path).raw_pieces():
        held.append(pa.total_allocated_bytes())

    assert max(held[len(held) // 2 :]) < 2 * max(held[: len(held) // 4])
