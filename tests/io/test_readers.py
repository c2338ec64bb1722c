"""Files in, numbers out; or the file, row and column that are wrong."""

import gzip
import re
import sys

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

from catalogue import WRITERS
from files import NAMES, VALUES, write_csv, write_fcs, write_h5ad
from latentviews import MultiViewMixture, load, save
from latentviews.datasets import make_multiview
from latentviews.io import Arcsinh, InputError, Logicle, binary, h5ad, open_table, read_table, write_labels
from latentviews.io.h5ad import write_labels as write_h5ad_labels
from latentviews.io.labels import LabelsFile


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_numbers_and_names(name, tmp_path):
    WRITERS[name](tmp_path / name)

    table = read_table(tmp_path / name)

    np.testing.assert_array_equal(table.values, VALUES)
    assert table.columns == tuple(NAMES)
    assert table.source == name
    assert table.left_out == ()
    pd.testing.assert_frame_equal(table.frame(), pd.DataFrame(VALUES, columns=NAMES))


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_some_columns_in_the_order_asked_for(name, tmp_path):
    WRITERS[name](tmp_path / name)

    table = read_table(tmp_path / name, ["CD19", "CD3"])

    np.testing.assert_array_equal(table.values, VALUES[:, [2, 0]])
    assert table.columns == ("CD19", "CD3")
    assert table.left_out == ("CD5",)


@pytest.mark.parametrize("name", WRITERS)
def test_missing_columns_are_named_with_their_nearest_matches(name, tmp_path):
    WRITERS[name](tmp_path / name)

    with pytest.raises(InputError, match=re.escape(f"{tmp_path / name} has no column 'cd33'; did you mean 'CD3'")):
        read_table(tmp_path / name, ["cd33"])
    with pytest.raises(InputError, match="has no columns 'q', 'xyz'; it has 'CD3', 'CD5', 'CD19'"):
        read_table(tmp_path / name, ["q", "CD3", "xyz"])


def test_npy_columns_are_numbered(tmp_path):
    np.save(tmp_path / "a.npy", VALUES.astype(np.float32))

    table = read_table(tmp_path / "a.npy", ["3", "1"])

    np.testing.assert_array_equal(table.values, VALUES.astype(np.float32)[:, [2, 0]])
    assert table.values.dtype == float


# ---------------------------------------------------------------------------------------------------------- text


def text(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "columns", "values"),
    [
        ("1,2,3\n4,5,6\n", ("1", "2", "3"), [[1, 2, 3], [4, 5, 6]]),
        ("1 2 3\n4 5 6\n", ("1", "2", "3"), [[1, 2, 3], [4, 5, 6]]),
        ("a;b\n1,5;2\n3,25;4\n", ("a", "b"), [[1.5, 2], [3.25, 4]]),
        ("a\tb\n1,5\t2\n", ("a", "b"), [[1.5, 2]]),
        ("a,b\n1,\nNA,4\nnan,null\n", ("a", "b"), [[1, np.nan], [np.nan, 4], [np.nan, np.nan]]),
        ('"a, or b",c\n"1.5",2\n', ("a, or b", "c"), [[1.5, 2]]),
        (" a , b \n 1 , 2 \n", ("a", "b"), [[1, 2]]),
        ("\n\na,b\n\n1,2\n\n3,4\n", ("a", "b"), [[1, 2], [3, 4]]),
        ("a,b\r\n1,2\r\n", ("a", "b"), [[1, 2]]),
        ("a,b\n1,2", ("a", "b"), [[1, 2]]),
        ("a\n1\n2\n", ("a",), [[1], [2]]),
        (",a,b\n0,1,2\n1,3,4\n", ("a", "b"), [[1, 2], [3, 4]]),
        ("a,b\n1e-3,-.5E+2\n", ("a", "b"), [[1e-3, -50]]),
        ("NA,nan\n1,2\n", ("NA", "nan"), [[1, 2]]),
        ("\ufeffµ,b\n1,2\n", ("µ", "b"), [[1, 2]]),
        ("µ,b\n1,2\n".encode("latin-1"), ("µ", "b"), [[1, 2]]),
        ("µ,b\n1,2\n".encode("utf-16"), ("µ", "b"), [[1, 2]]),
    ],
    ids=["no header", "spaces", "decimal comma", "tabs and commas", "missing", "quotes", "padded", "blank lines",
         "crlf", "no last newline", "one column", "index", "exponents", "odd names", "bom", "latin-1", "utf-16"],
)  # fmt: skip
def test_how_a_text_is_written_is_found_out(content, columns, values, tmp_path):
    table = read_table(text(tmp_path, content))

    assert table.columns == columns
    np.testing.assert_array_equal(table.values, values)


def test_delimiter_and_header_can_be_said(tmp_path):
    path = text(tmp_path, "7:8\n1:2\n")

    table = read_table(path, delimiter=":", header=True)

    assert table.columns == ("7", "8")
    np.testing.assert_array_equal(table.values, [[1, 2]])


def test_columns_that_are_not_asked_for_may_hold_anything(tmp_path):
    path = text(tmp_path, "a,note,b\n1,good,2\n3,bad,4\n")

    np.testing.assert_array_equal(read_table(path, ["a", "b"]).values, [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "t.csv is empty"),
        ("\n \n", "t.csv is empty"),
        ("a,b\n", "t.csv has a header and no rows"),
        ("a,b\n1,2\n3,oops\n", r"t.csv, row 2 \(line 3\), column 'b': 'oops' is not a number"),
        ("a,b\n\n1,2\n\n3,4 5\n", r"t.csv, row 2 \(line 5\), column 'b': '4 5' is not a number"),
        ("a,b\n1,2\n3\n", r"t.csv, row 2 \(line 3\): it has 1 cells where 2 were expected. Is the delimiter ','\?"),
        ("a,b\n1,2\n3,4,5\n", r"t.csv, row 2 \(line 3\): it has 3 cells where 2"),
        ("1,x\n3,4\n", r"t.csv, row 1 \(line 1\), column '2': 'x' is not a number.* set the option `header`"),
        ("a,b\n1,2\n3,inf\n", "t.csv, row 2, column 'b': the value is infinite"),
        ("a,b,a\n1,2,3\n", "has the column 'a' in places 1 and 3; rename one"),
        (b"\x01\x00\x02\x00", "is not text"),
    ],
    ids=["empty", "blank", "header alone", "word", "two numbers", "short row", "long row", "word in row 1", "infinite",
         "twice", "binary"],
)  # fmt: skip
def test_errors_in_a_text_name_the_row_and_column(content, sentence, tmp_path):
    with pytest.raises(InputError, match=sentence):
        read_table(text(tmp_path, content))


def test_errors_far_down_a_zipped_text_are_found(tmp_path):
    rows = ["1,2,3"] * 300_000
    rows[250_000] = "1,2,x"
    path = text(tmp_path, gzip.compress("\n".join(["a,b,c", *rows]).encode(), 1), "t.csv.gz")

    with pytest.raises(InputError, match=r"t.csv.gz, row 250,001 \(line 250,002\), column 'c': 'x' is not a number"):
        read_table(path)


def test_another_delimiter_is_asked_for_where_there_is_one_column(tmp_path):
    path = text(tmp_path, "CD3:CD5\n1:2\n")

    with pytest.raises(InputError, match=r"single column, 'CD3:CD5'. Is its delimiter another one"):
        read_table(path, ["CD9000"])


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_zipped_text_cut_short_is_one_sentence(share, tmp_path):
    rows = np.random.default_rng(0).normal(size=(20_000, 3))
    content = gzip.compress("\n".join(["a,b,c"] + [",".join(map(repr, row)) for row in rows.tolist()]).encode())
    path = text(tmp_path, content[: int(share * len(content))], "t.csv.gz")

    with pytest.raises(InputError, match=r"t.csv.gz cannot be read to its end; it may be cut short"):
        read_table(path)


def test_many_rows_are_read_in_little_memory(tmp_path):
    rows = np.random.default_rng(0).integers(0, 10**6, size=(10**5, 10)).astype(str)
    block = "\n".join(map(",".join, rows.tolist())) + "\n"
    path = text(tmp_path, ",".join("abcdefghij") + "\n" + 3 * block)

    before = pa.default_memory_pool().max_memory()
    table = read_table(path)

    assert table.values.shape == (300_000, 10)
    assert pa.default_memory_pool().max_memory() - before < 4 * table.values.nbytes


# ----------------------------------------------------------------------------------------------------------- FCS


def with_version(path, version):
    content = path.read_bytes()
    path.write_bytes(f"FCS{version}".encode() + content[6:])


@pytest.mark.parametrize("version", ["2.0", "3.0", "3.1"])
def test_fcs_channels_go_by_their_marker_and_answer_to_their_detector(version, tmp_path):
    path = tmp_path / "a.fcs"
    write_fcs(path, markers=["CD3", "", "CD19"])
    with_version(path, version)

    table = read_table(path, transform="none")

    assert table.columns == ("CD3", "FL2-A", "CD19")
    np.testing.assert_allclose(table.values, VALUES, rtol=1e-6)
    np.testing.assert_array_equal(read_table(path, ["FL3-A", "CD3"], transform="none").values, table.values[:, [2, 0]])


def test_fcs_markers_that_occur_twice_give_way_to_detectors(tmp_path):
    write_fcs(tmp_path / "a.fcs", markers=["CD3", "CD3", "CD19"])

    assert read_table(tmp_path / "a.fcs").columns == ("FL1-A", "FL2-A", "CD19")


def test_fcs_is_compensated_by_its_spillover(tmp_path, rng):
    true = rng.uniform(0, 1000, size=(50, 3))
    spill = np.array([[1, 0.2], [0.05, 1]])
    observed = true.copy()
    observed[:, [2, 0]] = true[:, [2, 0]] @ spill
    write_fcs(tmp_path / "a.fcs", observed, spillover="2,FL3-A,FL1-A,1,0.2,0.05,1")

    table = read_table(tmp_path / "a.fcs", transform="none")

    np.testing.assert_allclose(table.values, true, rtol=1e-5)
    assert table.reading.compensated
    raw = read_table(tmp_path / "a.fcs", transform="none", compensate=False)
    np.testing.assert_allclose(raw.values, observed, rtol=1e-6)


@pytest.mark.parametrize("spillover", ["2,FL1-A,FL9-A,1,0,0,1", "2,FL1-A,FL2-A,1,0,0", "2,FL1-A,FL2-A,1,1,1,1", "x"])
def test_a_spillover_that_cannot_be_used_is_one_sentence(spillover, tmp_path):
    write_fcs(tmp_path / "a.fcs", spillover=spillover)

    with pytest.raises(InputError, match=r"a.fcs has a spillover matrix that cannot be used .*the option `compensate`"):
        read_table(tmp_path / "a.fcs")
    assert read_table(tmp_path / "a.fcs", compensate=False).values.shape == (3, 3)


def test_fluorescence_is_transformed_and_scatter_and_time_are_not(tmp_path, rng):
    values = rng.normal(1000, 2000, size=(500, 4)).astype(np.float32).astype(float)
    write_fcs(tmp_path / "a.fcs", values, ["FSC-A", "SSC-A", "FL1-A", "Time"], ["", "", "CD3", ""], P3R="262144")

    table = read_table(tmp_path / "a.fcs")

    assert table.columns == ("FSC-A", "SSC-A", "CD3")
    assert table.left_out == ("Time",)
    np.testing.assert_array_equal(table.values[:, :2], values[:, :2])
    logicle = table.reading.transforms[2]
    assert logicle.top == 262144
    extreme = -np.quantile(values[values[:, 2] < 0, 2], 0.05)
    assert logicle.linear == pytest.approx((4.5 - np.log10(262144 / extreme)) / 2)
    np.testing.assert_allclose(logicle.inverse(table.values[:, 2]), values[:, 2], atol=1e-6)
    arcsinh = read_table(tmp_path / "a.fcs", ["CD3", "Time"], transform="arcsinh", cofactor=5).values
    np.testing.assert_array_equal(arcsinh, np.column_stack([np.arcsinh(values[:, 2] / 5), values[:, 3]]))


def raw_fcs(path, channels, events, *, kind="I", bits=16, order=">", version="2.0", **more):
    """FCS as instruments write it: a channel has a name, $PnE and a range; more keywords as they are."""
    byte_order = {">": "4,3,2,1", "<": "1,2,3,4"}[order]
    words = {"$MODE": "L", "$DATATYPE": kind, "$BYTEORD": byte_order, "$NEXTDATA": "0"}
    words |= {"$PAR": str(len(channels)), "$TOT": str(len(events))}
    for n, (name, amplification, size) in enumerate(channels, 1):
        words |= {f"$P{n}N": name, f"$P{n}E": amplification, f"$P{n}R": str(size), f"$P{n}B": str(bits)}
    words |= more
    code = {"I": f"u{bits // 8}", "F": "f4", "D": "f8"}[kind]
    data = np.asarray(events).astype(np.dtype(code).newbyteorder(order)).tobytes()
    start = 58 + sum(len(key) + len(value) + 2 for key, value in words.items()) + 1 + 40
    words |= {"$BEGINDATA": f"{start:08d}", "$ENDDATA": f"{start + len(data) - 1:08d}"}  # 40 characters with delimiters
    segment = ("\\" + "\\".join(part for pair in words.items() for part in pair) + "\\").encode().ljust(start - 58)
    ends = "".join(f"{end:8d}" for end in [58, start - 1, start, start + len(data) - 1])
    path.write_bytes(f"FCS{version}    {ends}".encode() + b" " * 16 + segment + data)


@pytest.mark.parametrize("order", ["<", ">"], ids=["little endian", "big endian"])
@pytest.mark.parametrize(("kind", "bits"), [("I", 8), ("I", 16), ("I", 32), ("F", 32), ("D", 64)])
def test_numbers_of_every_kind_width_and_byte_order_are_read(kind, bits, order, tmp_path):
    events = [[1, 200], [17, 3], [100, 255]]
    size = 2 ** min(bits, 18)
    options = {"kind": kind, "bits": bits, "order": order, "version": "3.1"}
    raw_fcs(tmp_path / "a.fcs", [("FSC-A", "0,0", size), ("FL1-A", "0,0", size)], events, **options)

    np.testing.assert_array_equal(read_table(tmp_path / "a.fcs", transform="none").values, events)


def test_bits_beyond_the_range_of_a_channel_are_masked(tmp_path):
    """FCS 3.1, $PnR: "a bit mask is applied when reading", since instruments use the upper bits for other things."""
    raw_fcs(tmp_path / "a.fcs", [("FS", "0,0", 1024), ("SS", "0,0", 1000)], [[1024 + 5, 7], [1023, 4096 + 999]])

    np.testing.assert_array_equal(read_table(tmp_path / "a.fcs", transform="none").values, [[5, 7], [1023, 999]])


def test_gain_and_time_step_are_taken_out(tmp_path):
    channels = [("FL1-A", "0,0", 262144), ("Time", "0,0", 262144)]
    more = {"$P1G": "4", "$TIMESTEP": "0.5"}
    raw_fcs(tmp_path / "a.fcs", channels, [[8, 10], [20, 11]], bits=32, version="3.1", **more)

    table = read_table(tmp_path / "a.fcs", ["FL1-A", "Time"], transform="none")

    np.testing.assert_allclose(table.values, [[2, 5], [5, 5.5]])
    assert read_table(tmp_path / "a.fcs", ["FL1-A"]).reading.transforms[0].top == 262144 / 4


@pytest.mark.parametrize("key", ["$SPILLOVER", "SPILL", "SPILLOVER", "spillover"])
def test_every_name_of_the_spillover_is_known(key, tmp_path):
    channels = [("FL1-A", "0,0", 1024), ("FL2-A", "0,0", 1024)]
    raw_fcs(tmp_path / "a.fcs", channels, [[100, 10], [20, 2]], version="3.1", **{key: "2,FL1-A,FL2-A,1,0.1,0,1"})

    np.testing.assert_allclose(read_table(tmp_path / "a.fcs", transform="none").values, [[100, 0], [20, 0]], atol=1e-9)


def test_logarithmic_channels_of_old_files_become_linear(tmp_path):
    events = [[100, 0], [512, 512], [1023, 1023]]
    raw_fcs(tmp_path / "old.fcs", [("FS", "0,0", 1024), ("FL1", "4,1", 1024)], events)

    table = read_table(tmp_path / "old.fcs", transform="none")

    np.testing.assert_allclose(table.values[:, 0], [100, 512, 1023])
    np.testing.assert_allclose(table.values[:, 1], 10 ** (4 * np.array([0, 512, 1023]) / 1024))
    scaled = read_table(tmp_path / "old.fcs")
    assert scaled.reading.transforms[0] is None
    assert scaled.reading.transforms[1].top == 1e4


def test_floating_point_channels_are_linear_whatever_the_file_says(tmp_path):
    write_fcs(tmp_path / "a.fcs")
    content = (tmp_path / "a.fcs").read_bytes()
    assert b"$P1E/0,0/" in content
    (tmp_path / "a.fcs").write_bytes(content.replace(b"$P1E/0,0/", b"$P1E/4,1/"))

    np.testing.assert_allclose(read_table(tmp_path / "a.fcs", transform="none").values, VALUES, rtol=1e-6)


@pytest.mark.parametrize("size", [3, 40, 200, 700, -1])
def test_a_truncated_fcs_is_one_sentence(size, tmp_path):
    path = tmp_path / "a.fcs"
    write_fcs(path, np.ones((100, 3)))
    path.write_bytes(path.read_bytes()[:size])

    with pytest.raises(InputError, match=r"a.fcs is not a whole FCS file; it may be cut short"):
        read_table(path)


def test_an_fcs_without_events_is_one_sentence(tmp_path):
    write_fcs(tmp_path / "a.fcs", np.empty((0, 3)))

    with pytest.raises(InputError, match=r"a.fcs (holds no events|is not a whole FCS file)"):
        read_table(tmp_path / "a.fcs")


def test_another_file_is_read_the_same_way(tmp_path, rng):
    first, second = rng.normal(1000, 2000, size=(2, 300, 3))
    write_fcs(tmp_path / "a.fcs", first)
    write_fcs(tmp_path / "b.fcs", second[:, ::-1], ["FL3-A", "FL2-A", "FL1-A"], NAMES[::-1])

    reading = read_table(tmp_path / "a.fcs", ["CD3", "CD19"]).reading
    table = read_table(tmp_path / "b.fcs", reading=reading)

    assert table.columns == ("CD3", "CD19")
    assert table.reading.transforms == reading.transforms
    np.testing.assert_allclose(reading.transforms[1].inverse(table.values[:, 1]), second[:, 2], rtol=1e-4, atol=0.01)


def test_a_model_keeps_how_its_file_was_read(tmp_path, rng):
    write_fcs(tmp_path / "a.fcs", rng.normal(1000, 2000, size=(300, 3)))
    table = read_table(tmp_path / "a.fcs")
    model = MultiViewMixture(1, random_state=0).fit(table.frame())
    model.reading_ = table.reading
    save(model, tmp_path / "model.latentviews")

    loaded = load(tmp_path / "model.latentviews")
    again = read_table(tmp_path / "a.fcs", reading=loaded.reading_)

    assert again.values.tobytes() == table.values.tobytes()
    np.testing.assert_array_equal(loaded.predict_proba(again.frame()), model.predict_proba(table.frame()))


# -------------------------------------------------------------------------------------------------------- scales


GATING_ML = {  # Gating-ML 2.0, table 8: T, W, M and A, and the scale at the data below
    (1000, 1, 4, 0): [0.067574, 0.147986, 0.228752, 0.25, 0.256384, 0.271248, 0.312897, 0.432426, 0.739548, 1],
    (1000, 1, 4, 1): [0.254059, 0.318389, 0.383001, 0.4, 0.405107, 0.416999, 0.450318, 0.545941, 0.791638, 1],
    (1000, 0, 4, 1): [-0.200009, -0.139829, -0.000856, 0.2, 0.303776, 0.400856, 0.495521, 0.600009, 0.8, 1],
}


@pytest.mark.parametrize("parameters", GATING_ML, ids=str)
def test_logicle_agrees_with_the_values_of_gating_ml(parameters):
    data = [-10, -5, -1, 0, 0.3, 1, 3, 10, 100, 1000]

    np.testing.assert_allclose(Logicle(*parameters)(data), GATING_ML[parameters], atol=1e-6)


SCALES = [Logicle(), Logicle(1000, 0), Logicle(1e4, 2.25), Logicle(1e4, 0.3, 4.5, 1), Logicle(1e3, 1, 4, -0.5)]


@pytest.mark.parametrize("scale", SCALES, ids=repr)
def test_logicle_is_what_its_papers_say(scale):
    zero, end = (scale.negative + scale.linear) / (scale.decades + scale.negative), 1.0

    assert scale(0.0) == pytest.approx(zero)
    assert scale(scale.top) == pytest.approx(end)
    y = zero + np.array([-1e-3, 0, 1e-3])
    slope = np.diff(scale.inverse(y)) / 1e-3
    assert slope[1] == pytest.approx(slope[0], rel=1e-6)  # straight at zero
    u = np.linspace(0, 1, 50)
    np.testing.assert_allclose(scale.inverse(zero + u), -scale.inverse(zero - u), rtol=1e-12)
    high = scale.inverse(np.array([1, 1 + 1 / (scale.decades + scale.negative)]))
    assert high[1] / high[0] == pytest.approx(10, rel=0.02 if scale.linear < 2 else 0.5)  # a decade far up


@pytest.mark.parametrize("scale", [*SCALES, Arcsinh(), Arcsinh(5.0)], ids=repr)
def test_scales_have_inverses_and_keep_the_order(scale, rng):
    x = np.sort(np.concatenate([rng.normal(size=500) * 10.0 ** rng.uniform(-3, 6, size=500), [0.0]]))

    y = scale(x)

    assert np.all(np.diff(y) > 0)
    np.testing.assert_allclose(scale.inverse(y), x, rtol=1e-9, atol=1e-9)
    assert np.isnan(scale(np.array([np.nan]))).all()


@pytest.mark.parametrize("arguments", [(-1,), (1000, -1), (1000, 3), (1000, 1, 4, -2)])
def test_a_scale_that_cannot_be_is_one_sentence(arguments):
    with pytest.raises(ValueError, match="A logicle scale needs"):
        Logicle(*arguments)(1.0)


def test_scales_can_be_asked_for_in_any_format(tmp_path):
    write_csv(tmp_path / "a.csv")

    np.testing.assert_array_equal(read_table(tmp_path / "a.csv", transform="arcsinh").values, np.arcsinh(VALUES / 150))
    logicle = read_table(tmp_path / "a.csv", ["CD19"], transform="logicle").reading.transforms[0]
    assert logicle.top == 3e5
    with pytest.raises(InputError, match="transform must be one of"):
        read_table(tmp_path / "a.csv", transform="log")
    with pytest.raises(InputError, match="option `cofactor` must be positive and finite"):
        read_table(tmp_path / "a.csv", transform="arcsinh", cofactor=0)
    with pytest.raises(InputError, match="option `cofactor` must be positive and finite"):
        read_table(tmp_path / "a.csv", transform="arcsinh", cofactor=np.inf)
    for delimiter in ("", "ab", "é", '"'):
        with pytest.raises(InputError, match="option `delimiter` is one character"):
            read_table(tmp_path / "a.csv", delimiter=delimiter)


# --------------------------------------------------------------------------------------------- the other formats


def test_parquet_takes_any_numbers_and_missing_ones(tmp_path):
    table = pa.table({"i": pa.array([1, None, 3], pa.int32()), "f": pa.array([0.5, 1, None], pa.float32()),
                      "b": [True, False, None], "t": ["a", "b", "c"]})  # fmt: skip
    pq.write_table(table, tmp_path / "a.parquet")

    values = read_table(tmp_path / "a.parquet", ["i", "f", "b"]).values

    np.testing.assert_array_equal(values, [[1, 0.5, 1], [np.nan, 1, 0], [3, np.nan, np.nan]])
    with pytest.raises(InputError, match=r"a.parquet, column 't': it holds string, not numbers"):
        read_table(tmp_path / "a.parquet", ["i", "t"])
    rest = read_table(tmp_path / "a.parquet")
    assert rest.columns == ("i", "f", "b")
    assert rest.texts == ("t",)
    with pytest.raises(InputError, match="The option `exclude` leaves no column"):
        read_table(tmp_path / "a.parquet", exclude=["i", "f", "b", "t"])


def test_an_index_of_pandas_is_not_a_column(tmp_path):
    pd.DataFrame(VALUES, columns=NAMES, index=[5, 7, 9]).to_parquet(tmp_path / "a.parquet")

    assert read_table(tmp_path / "a.parquet").columns == tuple(NAMES)


def test_a_zarr_group_with_one_table_is_that_table(tmp_path):
    group = zarr.create_group(tmp_path / "g.zarr")
    group.create_array("table", shape=(3, 3), dtype="f4")[:] = VALUES
    group.create_array("vector", shape=(3,), dtype="f4")

    np.testing.assert_allclose(read_table(tmp_path / "g.zarr").values, VALUES, rtol=1e-6)
    group.create_array("other", shape=(3, 3), dtype="f4")
    with pytest.raises(InputError, match=r"Zarr group with 2 2-D arrays; name one of them: \['other', 'table'\]"):
        read_table(tmp_path / "g.zarr")


@pytest.mark.parametrize("array", [np.ones(3), np.ones((2, 2, 2)), np.array([["a", "b"]]), np.ones((0, 3))], ids=repr)
def test_arrays_that_are_no_table_are_one_sentence(array, tmp_path):
    np.save(tmp_path / "a.npy", array)

    with pytest.raises(InputError, match=r"a.npy (needs a 2-D array of numbers|has no rows)"):
        read_table(tmp_path / "a.npy")


@pytest.mark.parametrize("name", ["cells.parquet", "dense.h5ad", "a.npy"])
def test_binary_files_cut_short_are_one_sentence(name, tmp_path):
    path = tmp_path / name
    np.save(path, VALUES) if name == "a.npy" else WRITERS[name](path)
    content = path.read_bytes()
    path.write_bytes(content[: 3 * len(content) // 4])

    with pytest.raises(InputError, match=re.escape(f"{path} is not a whole")):
        read_table(path)


def test_a_pickled_npy_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)

    with pytest.raises(InputError, match="not a whole NPY file of numbers"):
        read_table(tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("absent.csv", None, "absent.csv does not exist"),
        ("a.fcs", b"1,2,3", "named like a fcs file, but its content is not that"),
        ("a.parquet", b"1,2,3", "named like a parquet file"),
        ("a.xlsx", b"PK\x03\x04....", "is a zip archive, perhaps a workbook"),
        ("a.fcs", b"", "a.fcs is empty"),
    ],
)
def test_files_that_are_no_table_are_one_sentence(name, content, sentence, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)

    with pytest.raises(InputError, match=sentence):
        read_table(tmp_path / name)


def test_a_directory_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="is a directory; name a file in it"):
        read_table(tmp_path)


def test_another_hdf5_file_is_one_sentence(tmp_path):
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        file["something"] = 1

    with pytest.raises(InputError, match="not of AnnData's layout"):
        read_table(tmp_path / "a.h5ad")


def test_a_package_that_is_not_there_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    write_csv(tmp_path / "a.csv")

    with pytest.raises(InputError, match=r"needs pyarrow; install it with `pip install latentviews\[io\]`"):
        read_table(tmp_path / "a.csv")


# -------------------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize("name", ["labels.csv", "labels.parquet"])
def test_labels_come_back(name, tmp_path):
    posteriors = np.array([[0.25, 0.75], [1 - 1e-9, 1e-9]])

    write_labels(tmp_path / name, np.array([1, 0]), posteriors)

    table = read_table(tmp_path / name)
    assert table.columns == ("row", "class", "p0", "p1")
    np.testing.assert_array_equal(table.values[:, :2], [[1, 1], [2, 0]])
    np.testing.assert_allclose(table.values[:, 2:], posteriors, atol=0 if name.endswith("parquet") else 5e-7)


def test_labels_go_into_the_observations_of_a_copy(tmp_path):
    write_h5ad(tmp_path / "a.h5ad")
    before = (tmp_path / "a.h5ad").read_bytes()
    posteriors = np.array([[0.2, 0.8], [0.9, 0.1], [0.5, 0.5]])

    write_h5ad_labels(tmp_path / "a.h5ad", tmp_path / "b.h5ad", np.array([1, 0, 0]), posteriors)
    write_h5ad_labels(tmp_path / "b.h5ad", tmp_path / "c.h5ad", np.array([1, 0, 1]), posteriors)

    assert (tmp_path / "a.h5ad").read_bytes() == before
    with h5py.File(tmp_path / "c.h5ad") as file:
        obs = file["obs"]
        assert list(obs.attrs["column-order"]) == ["latentviews_class", "latentviews_p0", "latentviews_p1"]
        np.testing.assert_array_equal(obs["latentviews_class/codes"], [1, 0, 1])
        assert obs["latentviews_class/categories"].asstr()[:].tolist() == ["0", "1"]
        np.testing.assert_array_equal(obs["latentviews_p1"], posteriors[:, 1])
        assert dict(obs["latentviews_class"].attrs) == {
            "encoding-type": "categorical", "encoding-version": "0.2.0", "ordered": False
        }  # fmt: skip
    np.testing.assert_array_equal(read_table(tmp_path / "c.h5ad").values, VALUES)


@pytest.mark.parametrize("name", ["dense.h5ad", "csr.h5ad", "cells.zarr"])
def test_rows_come_in_blocks(name, tmp_path, monkeypatch):
    for module in (binary, h5ad):
        monkeypatch.setattr(module, "ROWS", 2)
    WRITERS[name](tmp_path / name)

    np.testing.assert_array_equal(read_table(tmp_path / name).values, VALUES)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_of_either_library_are_taken_by_models(frame):
    X = make_multiview(300, 2, random_state=0).X
    model = MultiViewMixture(2, views=[["a"], ["b"], ["c"]], random_state=0)

    labels = model.fit(frame(dict(zip("abc", X.T, strict=True)))).predict(frame(dict(zip("abc", X.T, strict=True))))

    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(labels, MultiViewMixture(2, random_state=0).fit(X).predict(X))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            ["1,5;2,5", "1,5;2.5", "1,25;3,5"],
            r"row 2 \(line 3\), column 'b': '2.5' has the decimal mark '.', and other",
        ),
        (
            ["1,5;2.5;3,5", "1,5;2.5;3,5"],
            "column 'b': '2.5' has the decimal mark '.', and other numbers of the file ','",
        ),
        (
            ["1.5;2.5;3,5", "1.5;2.5;3,5"],
            "column 'c': '3,5' has the decimal mark ',', and other numbers of the file '.'",
        ),
    ],
)
def test_numbers_with_two_decimal_marks_are_told_by_their_column(lines, words, tmp_path):
    (tmp_path / "cells.csv").write_text("\n".join(["a;b;c"[: len(lines[0].split(";")) * 2 - 1], *lines, ""]))

    with pytest.raises(InputError, match=words):
        read_table(tmp_path / "cells.csv")


def test_a_header_of_an_fcs_file_that_holds_no_numbers_is_told_in_words(tmp_path):
    (tmp_path / "a.fcs").write_bytes(b"FCS3.1garbageFCS3.1garbage" * 20)
    with pytest.raises(InputError, match=r"its header has '.+' where a number says at which byte a part") as caught:
        read_table(tmp_path / "a.fcs")
    assert "literal" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"columns": 3}, "option `columns` is a list of strings; got 3"),
        ({"columns": "a"}, "option `columns` is a list of strings; got 'a'"),
        ({"columns": [0]}, r"option `columns` is a list of strings; got \[0\]"),
        ({"exclude": 3}, "option `exclude` is a list of strings"),
        ({"words": 3}, "option `words` is a list of strings"),
        ({"missing": 3}, "option `missing` is a list of strings"),
        ({"delimiter": 3}, "option `delimiter` is one character.*got 3"),
        ({"header": "x"}, "option `header` is True, False or None; got 'x'"),
        ({"cofactor": "x"}, "option `cofactor` must be positive and finite; got 'x'"),
    ],
)
def test_an_option_of_another_kind_is_told(options, sentence, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")

    with pytest.raises(InputError, match=sentence):
        read_table(path, **options)
    if not options.keys() & {"words", "missing", "cofactor"}:
        with pytest.raises(InputError, match=sentence):
            open_table(path, **options)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((None, np.eye(2)), r"labels needs a class per row of posteriors, 2; got shape \(\)"),
        (([0], np.eye(2)), r"labels needs a class per row of posteriors, 2; got shape \(1,\)"),
        (([0, 1], [1.0, 0.0]), r"posteriors needs a row per object and a column per class; got shape \(2,\)"),
        (([0, 1], ["a", "b"]), "posteriors must hold real numbers"),
        (([0, 1], np.eye(2), "x"), "kind must be 'csv', 'parquet' or None; got 'x'"),
        (([0, 1], np.eye(2), None, [0.5]), r"noise needs a probability per row of posteriors, 2; got shape \(1,\)"),
        (([0, 1], np.eye(2), None, "x"), "noise must hold real numbers"),
    ],
)
def test_labels_of_another_kind_are_told_and_nothing_is_written(arguments, sentence, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        write_labels(tmp_path / "labels.csv", *arguments)
    assert not list(tmp_path.iterdir())


def test_labels_go_to_a_file_in_a_folder_that_is_there(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"Labels cannot be written: .* is a directory; name a file in it"):
        write_labels(tmp_path, [0], [[1.0]])
    with pytest.raises(FileNotFoundError, match=r"Labels cannot be written: there is no directory .*; make it first"):
        write_labels(tmp_path / "none" / "labels.csv", [0], [[1.0]])


def test_labels_are_numbers_or_names_and_whole_or_as_they_were(tmp_path, monkeypatch):
    path, shares = tmp_path / "labels.csv", np.eye(2)
    for labels, written in (
        (np.array(["no", "yes"]), ["no", "yes"]),
        (np.array([0, 1], dtype=">i2"), ["0", "1"]),
        ([True, False], ["true", "false"]),
        (np.ma.array([0, 7], mask=[0, 1]), ["0", "nan"]),
    ):
        write_labels(path, labels, shares.astype(np.float16))
        assert [line.split(",")[1] for line in path.read_text().splitlines()[1:]] == written
    before = path.read_text()

    def full(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(LabelsFile, "add", full)
    with pytest.raises(OSError, match="no room"):
        write_labels(path, [1, 1], shares)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


def test_columns_are_at_least_one_and_each_once(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")

    for read in (read_table, open_table):
        for columns in ([], ["b", "b"]):
            with pytest.raises(InputError, match="option `columns` names at least one column, and each once"):
                read(path, columns)
    with pytest.raises(InputError, match="reading is the `reading` of a table that was read; got a Table"):
        read_table(path, reading=read_table(path))
    assert read_table(path, header=np.True_).columns == ("a", "b")
    with pytest.raises(ValueError, match="holds no null character"):
        open_table("a\0b")
