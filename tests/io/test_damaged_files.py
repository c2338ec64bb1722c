"""Damaged files are told in a sentence, whatever the library that stumbles over them."""

import signal
import subprocess
import sys
import warnings

import h5py
import numpy as np
import pandas as pd
import pytest
import zarr

from files import VALUES, write_fcs, write_gzip, write_h5ad, write_zarr
from latentviews import (
    MultiViewMixture,
    load,
    save,
)
from latentviews.io import InputError, read_table
from latentviews.io.model_writer import SavingError
from latentviews.io.saving import name_aside, written_aside


def test_a_damaged_gzip_is_a_sentence(tmp_path):
    path = tmp_path / "cells.csv.gz"
    write_gzip(path)
    data = bytearray(path.read_bytes())
    data[12:30] = bytes(range(200, 218))
    path.write_bytes(data)

    with pytest.raises(InputError, match="cannot be read to its end; it may be cut short"):
        read_table(path)


def test_a_damaged_header_of_npy_is_a_sentence(tmp_path):
    path = tmp_path / "cells.npy"
    np.save(path, VALUES)
    path.write_bytes(path.read_bytes().replace(b"}", b"("))

    with pytest.raises(InputError, match="is not a whole NPY file of numbers"):
        read_table(path)


@pytest.mark.parametrize("place", [8, 10, 40], ids=["method", "flags", "data"])
def test_a_damaged_model_file_is_a_sentence(place, tmp_path):
    path = tmp_path / "model.latentviews"
    save(MultiViewMixture(2), path)
    data = bytearray(path.read_bytes())
    central = data.index(b"PK\x01\x02")
    spot = central + place if place < 40 else place + 10
    data[spot : spot + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(data)

    with pytest.raises(SavingError, match=r"cut short|damaged|not a model"):
        load(path)


def test_an_fcs_file_that_contradicts_itself_is_a_sentence(tmp_path):
    path = tmp_path / "cells.fcs"
    write_fcs(path)
    path.write_bytes(path.read_bytes().replace(b"$P2R", b"$P9R"))

    with pytest.raises(InputError, match="is not a whole FCS file"):
        read_table(path)


def test_an_h5ad_file_in_which_the_library_finds_no_end_is_a_sentence(tmp_path):
    path = tmp_path / "dense.h5ad"
    write_h5ad(path)
    data = bytearray(path.read_bytes())
    heap = data.index(b"GCOL")  # texts; an object of no size is followed by itself
    data[heap + 16 : heap + 44] = bytes(28)
    path.write_bytes(data)

    with pytest.raises(InputError, match=r"finds no end in it|not a whole AnnData file"):
        read_table(path)


def test_an_h5ad_file_that_would_crash_the_library_is_a_sentence_where_another_fault_comes_first(tmp_path):
    path = tmp_path / "cells.h5ad"
    write_h5ad(path)
    data = bytearray(path.read_bytes())
    data[data.rindex(b"_index\0\0") + 9] = 254  # the kind of text: reading this attribute of `var` by its name crashes
    data[data.rindex(b"encoding-type\0") + 40] = 148  # a version; listing all of its attributes ends in an error first
    path.write_bytes(data)

    with pytest.raises(InputError, match=r"not a whole AnnData file; it may be cut short \(var: .*version"):
        read_table(path)


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize(
    ("part", "place", "value", "words"),
    [
        ("indices", 7, 2_000_000_000, "puts a value at place 2000000000, of "),
        ("indices", 7, -5, "puts a value at place -5, of "),
        ("indptr", 0, 2, "pointers of its sparse matrix do not rise from 0"),
        ("indptr", 2, 4_000_000, "pointers of its sparse matrix do not rise from 0"),
        ("indptr", -1, 17, "pointers of its sparse matrix do not rise from 0"),
    ],
)
def test_a_sparse_matrix_whose_places_do_not_exist_is_a_sentence(kind, part, place, value, words, tmp_path):
    path, values = tmp_path / "cells.h5ad", np.tile(VALUES, (134, 1))[:400]
    write_h5ad(path, values, kind=kind)
    np.testing.assert_array_equal(read_table(path).values, values)
    with h5py.File(path, "r+") as file:
        places = file["X"][part]
        places[place % len(places)] = value

    with pytest.raises(InputError, match=f"is damaged: .*{words}"):
        read_table(path)


def test_a_zarr_store_without_a_chunk_says_so(tmp_path):
    path = tmp_path / "cells.zarr"
    write_zarr(path)
    chunk = next(file for file in sorted(path.rglob("*")) if file.is_file() and file.suffix != ".json")
    chunk.unlink()

    with pytest.warns(UserWarning, match="lacks 1 of its 2 chunks, whose values are read as 0"):
        read_table(path)


def test_a_whole_zarr_store_says_nothing(tmp_path):
    zarr.create_array(tmp_path / "a.zarr", data=np.ones((4, 3)))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read_table(tmp_path / "a.zarr")

    np.testing.assert_array_equal(table.values, np.ones((4, 3)))


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    code = f"import sys; sys.path[:] = {sys.path!r}\n" + (
        "import os, pathlib, signal\nfrom latentviews.io.saving import name_aside\n"
        "place = pathlib.Path(sys.argv[1])\n"
        "(place / name_aside('out')).mkdir()\n(place / name_aside('a.latentviews')).write_text('half')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], check=False)
    assert done.returncode == -signal.SIGKILL
    mine = tmp_path / name_aside("b.latentviews")  # of a process that is at work
    mine.write_text("half")
    assert len(list(tmp_path.iterdir())) == 3

    with written_aside(tmp_path / "c.latentviews") as aside:
        aside.write_text("whole")

    assert {file.name for file in tmp_path.iterdir()} == {mine.name, "c.latentviews"}


def test_a_parquet_file_whose_names_are_no_text_is_a_sentence(tmp_path):
    path = tmp_path / "cells.parquet"
    pd.DataFrame({"cell": [1.0, 2.0], "size": [3.0, 4.0]}).to_parquet(path)
    path.write_bytes(path.read_bytes().replace(b"cell", b"c\xb9ll"))

    with pytest.raises(InputError, match="is not a whole Parquet file"):
        read_table(path)


def test_numbers_of_fcs_that_are_none_are_read_without_noise(tmp_path):
    path = tmp_path / "cells.fcs"
    write_fcs(path)
    data = path.read_bytes()
    path.write_bytes(data[:600] + 10 * b"\xff\xff\xff\xff" + data[640:])  # one is cut to a signalling NaN

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert np.isnan(read_table(path).values).any()


def test_a_parquet_file_whose_row_groups_hold_fewer_rows_than_it_says_is_a_sentence(tmp_path):
    path = tmp_path / "cells.parquet"
    pd.DataFrame(VALUES, columns=["a", "b", "c"]).to_parquet(path)
    data = bytearray(path.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    rows = data.index(b"\x16\x06\x19", footer)  # Thrift: the number of rows, twice three, before the list of groups
    data[rows + 1] = 10
    path.write_bytes(data)

    with pytest.raises(InputError, match="it says that it holds 5 rows, its row groups 3"):
        read_table(path)


@pytest.mark.parametrize(
    ("kind", "shape", "words"),
    [
        ("csr", [3, 603_979_779], "X has 603,979,779 columns for 3 variables"),
        ("csc", [2_097_552, 3], "X has 2,097,552 rows for 3 observations"),
    ],
)
def test_a_matrix_of_another_size_than_its_names_is_a_sentence(kind, shape, words, tmp_path):
    path = tmp_path / "cells.h5ad"
    write_h5ad(path, VALUES, kind=kind)
    with h5py.File(path, "r+") as file:
        file["X"].attrs["shape"] = shape

    with pytest.raises(InputError, match=words):
        read_table(path)


def test_a_scale_of_fcs_without_an_end_is_a_sentence(tmp_path):
    path = tmp_path / "cells.fcs"
    write_fcs(path)
    data = path.read_bytes()
    assert b"262144" in data
    path.write_bytes(data.replace(b"262144", b"1.e400"))

    with pytest.raises(InputError, match="ends at inf"):
        read_table(path)
