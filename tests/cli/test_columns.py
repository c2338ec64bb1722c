"""Which columns `latentviews fit` uses and as what, the classes that it writes back, and how it starts."""

import gc
import io
import json
import os
import pty
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import flowio
import numpy as np
import pandas as pd
import pytest
import zarr

from files import write_fcs
from latentviews import MultiViewMixture, cli, diagnose, load, report
from latentviews.cli import columns, main, wanted
from latentviews.cli.common import in_options
from latentviews.core import whitening
from latentviews.datasets import make_multiview
from latentviews.diagnosis.diagnose import Diagnosis, Finding
from latentviews.diagnosis.point_masses import apart_sentence
from latentviews.io import InputError, read_table
from latentviews.io.fcs_labels import CHANNEL, write_labels

HEAVY = ("numpy", "scipy", "sklearn", "pandas", "matplotlib")


@pytest.fixture
def people(tmp_path, monkeypatch):
    """A directory with people.csv: text, row numbers, a label and codes beside numbers; no report is written."""
    monkeypatch.chdir(tmp_path)
    data, rng = make_multiview(200, 2, n_views=4, random_state=0), np.random.default_rng(0)
    frame = pd.DataFrame(data.X, columns=["height", "weight", "rr", "pulse"])
    frame.insert(0, "row", np.arange(1, 201))
    frame = frame.assign(name=[f"p{i}" for i in range(200)], label=data.y, sex=(rng.random(200) < 0.2 + 0.6 * data.y))
    frame.assign(sex=frame.sex.astype(int)).to_csv("people.csv", index=False)

    def short(model, X, **options):
        return SimpleNamespace(diagnosis=diagnose(model, X, n_permutations=19, random_state=0))

    monkeypatch.setattr(report.contents, "report_contents", short)
    monkeypatch.setattr(report, "write_contents", lambda contents, path: path.touch())
    return frame


def fitted(capsys, *argv):
    status = main(["fit", *map(str, argv), "-k", "2", "--out", "o", "--force"])
    return status, capsys.readouterr(), json.loads(Path("o/summary.json").read_text()) if status == 0 else None


def refused(capsys, *argv):
    assert main(["fit", "people.csv", *argv]) == 2
    return capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------------- columns


def test_text_row_numbers_and_labels_are_left_out_with_a_sentence_each(people, capsys):
    _, shown, summary = fitted(capsys, "people.csv")

    assert summary["columns"] == ["height", "weight", "rr", "pulse", "sex"]
    assert "note: left out: name, which holds 200 words in 200 rows, too many for categories.\n" in shown.err
    assert "--codes text" not in shown.err
    assert "note: left out: row, which numbers the rows; --columns takes it in, with a list of all" in shown.err
    assert "left out: label, which holds whole numbers, 2 different ones (0, 1) and is taken for a label" in shown.err
    assert "sex holds 2 different whole numbers, taken as numbers; --codes takes them as categories" in shown.err
    assert summary["notes"] == [line[6:] for line in shown.err.splitlines() if line.startswith("note: ")]


def test_whole_numbers_that_may_be_categories_are_told_with_their_count(people, capsys):
    some = people[["height", "weight", "rr"]].assign(sex=np.arange(200) % 2, births=np.arange(200) % 17)
    some.to_csv("some.csv", index=False)

    _, shown, _ = fitted(capsys, "some.csv", "--no-report")

    assert "note: sex, births hold 2 to 17 different whole numbers each, taken as numbers; --codes takes" in shown.err


def test_all_columns_of_few_whole_numbers_are_codes_where_that_is_asked_for(people, capsys):
    some = people[["height", "weight", "rr", "label"]].assign(sex=np.arange(200) % 2, births=np.arange(200) % 17)
    some.to_csv("some.csv", index=False)
    _, shown, _ = fitted(capsys, "some.csv", "--no-report")
    assert "--codes takes them as categories, `--codes whole` all, --exclude leaves them out." in shown.err

    _, shown, summary = fitted(capsys, "some.csv", "--no-report", "--codes", "whole")

    assert summary["codes"] == ["sex", "births"]
    assert "taken as numbers" not in shown.err
    some.assign(whole=some.sex).to_csv("named.csv", index=False)
    assert fitted(capsys, "named.csv", "--no-report", "--codes", "whole")[2]["codes"] == ["whole"]
    assert "and there is none; leave it out" in refused(capsys, "--codes", "whole", "--columns", "height,weight,rr")
    assert "The view rr,sex holds codes" in refused(
        capsys, "--codes", "whole", "--views", "rr,sex", "height", "weight", "pulse"
    )


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_few_numbers_that_are_not_whole_may_be_codes(kind, people, capsys):
    table = people[["height", "weight", "rr"]].assign(sex=np.where(people.sex, 0.0506801, -0.0446416))
    table.to_csv("some.csv", index=False)
    table.to_parquet("some.parquet", index=False)

    _, _, summary = fitted(capsys, f"some.{kind}", "--no-report", "--codes", "sex")

    assert "sex is taken as codes: 0 is -0.0446416, 1 is 0.0506801." in summary["notes"]
    assert load("o/model.latentviews").components_[3].space.finite
    assert main(["predict", "o", f"some.{kind}", "--out", "again.csv"]) == 0
    assert capsys.readouterr().err.count("warning") == 0
    first, again = (pd.read_csv(file) for file in ("o/labels.csv", "again.csv"))
    np.testing.assert_array_equal(first["p0"], again["p0"])


def test_what_readers_leave_out_has_its_note(people, tmp_path, capsys):
    X = 200 * np.sinh(make_multiview(150, 2, n_views=4, random_state=0).X)
    X[:, 3] = np.sort(np.random.default_rng(0).random(150))
    write_fcs(tmp_path / "timed.fcs", X, ["FSC-A", "SSC-A", "FL1-A", "Time"], ["", "", "CD3", ""])
    people[["height", "weight", "rr"]].to_csv("indexed.csv")

    _, shown, _ = fitted(capsys, "timed.fcs", "--no-report", "--dependence", "none")
    assert "note: left out: Time, the time or number of events, which measures no cell; --columns takes" in shown.err
    _, shown, _ = fitted(capsys, "indexed.csv", "--no-report")
    assert "note: left out: unnamed 1, without a name, as an index has it; --columns takes it in" in shown.err
    _, shown, _ = fitted(capsys, "timed.fcs", "--no-report", "--dependence", "none", "--exclude", "Time")
    assert "note" not in shown.err


def test_info_says_what_fit_leaves_out(cells, capsys):
    fitted(capsys, cells, "--dependence", "none")

    assert main(["info", "o/labelled.fcs"]) == 0

    said = capsys.readouterr().out
    assert re.search(f"{CHANNEL} .* left out by `fit`\n", said)
    assert f"labels, which `fit` leaves out unless --columns names it: {CHANNEL}\n" in said
    assert main(["info", "o/labelled.fcs", "--columns", CHANNEL]) == 0
    assert "left out by" not in capsys.readouterr().out


def test_marks_of_missing_values_may_be_named(people, capsys):
    table = people[["height", "weight", "rr", "pulse"]].round(3)
    table.where(np.arange(200)[:, None] % 9 != np.arange(4)).to_csv("holes.csv", index=False, na_rep="?")
    holes = table.where(np.arange(200)[:, None] % 9 != np.arange(4)).fillna(-999.0)
    holes.to_parquet("holes.parquet", index=False)
    assert main(["fit", "holes.csv"]) == 2
    said = "'?' is not a number; a missing value is an empty cell, NA, or what --missing says"
    assert said in capsys.readouterr().err

    assert fitted(capsys, "holes.csv", "--no-report", "--missing", "?")[0] == 0
    first = load("o/model.latentviews")
    assert main(["predict", "o", "holes.csv", "--out", "again.csv"]) == 0  # the model knows the mark
    np.testing.assert_array_equal(pd.read_csv("o/labels.csv")["p0"], pd.read_csv("again.csv")["p0"])
    assert fitted(capsys, "holes.parquet", "--no-report", "--missing", "-999")[0] == 0
    np.testing.assert_allclose(load("o/model.latentviews").weights_, first.weights_, atol=1e-12)
    assert main(["info", "holes.csv", "--missing", "?", "--missing", "0"]) == 0
    assert "23" in capsys.readouterr().out


def test_a_column_without_a_value_is_told_where_classes_are_found(people, capsys):
    fitted(capsys, "people.csv", "--columns", "height,weight,rr,pulse", "--no-report")
    people.assign(rr=np.nan).to_csv("empty.csv", index=False)

    assert main(["predict", "o", "empty.csv", "--out", "labels.csv"]) == 0

    told = "warning: rr has no value in any row: classes are told by the other columns alone.\n"
    assert told in capsys.readouterr().err


def test_times_and_numbers_of_series_are_left_out(people, capsys):
    lines = Path("people.csv").read_text().splitlines()
    timed = [f"{lines[0]},t,series"]
    timed += [f"{line},{i / 52!r},{1 + i // 100}" for i, line in enumerate(lines[1:])]
    Path("timed.csv").write_text("\n".join(timed) + "\n")
    _, shown, summary = fitted(capsys, "timed.csv")

    assert summary["columns"] == ["height", "weight", "rr", "pulse", "sex"]
    assert "left out: t, which rises by 0.0192308 from row to row; --columns takes it in, with a list" in shown.err
    assert "left out: series, which holds whole numbers" in shown.err


def test_a_column_in_order_is_said_to_be_as_a_clock_is(tmp_path, capsys, rng):
    X = rng.normal(size=(120, 3)) + 4 * rng.integers(2, size=(120, 1))
    time = np.sort(rng.integers(0, 40, size=120)) / 8.0
    np.savetxt(tmp_path / "cells.csv", np.column_stack([X, time]), delimiter=",", header="a,b,c,Time", comments="")

    main(["fit", str(tmp_path / "cells.csv"), "-k", "2", "--out", str(tmp_path / "out"), "--no-report"])

    shown = capsys.readouterr().err
    assert "Time never falls from row to row" in shown
    assert "--exclude Time leaves it out" in shown
    assert "a never falls" not in shown


def test_a_column_of_one_value_is_left_out_and_checks_are_called_so(people, capsys):
    people[["height", "weight", "rr"]].assign(flat=2.5).to_csv("flat.csv", index=False)

    _, shown, summary = fitted(capsys, "flat.csv", "--no-report")

    assert summary["columns"] == ["height", "weight", "rr"]
    assert summary["left_out"] == ["flat"]
    assert "note: left out: flat, with one value in all rows, which tells no classes apart." in shown.err
    assert "checks" in summary["seconds_of"]
    assert "report" not in summary["seconds_of"]


def test_checks_are_the_same_without_a_report_and_have_a_time_of_their_own(people, capsys):
    people[["height", "weight", "rr"]].to_csv("people.csv", index=False)

    without, whole = (fitted(capsys, "people.csv", "--force", *more)[2] for more in (("--no-report",), ()))

    assert whole["checks"] == without["checks"]
    assert list(whole["seconds_of"])[-3:] == ["checks", "report", "the rest"]


def test_more_classes_than_a_report_shows_are_refused_before_the_fit(people, capsys):
    pd.concat([people[["height", "weight", "rr"]]] * 2).to_csv("people.csv", index=False)

    assert main(["fit", "people.csv", "-k", "300", "--out", "o"]) == 2
    assert "A report shows at most 254 classes; -k 300 needs --no-report." in capsys.readouterr().err


def test_a_warning_of_the_reader_is_one_line(people, capsys, recwarn):
    store = zarr.create_array("cells.zarr", shape=(200, 3), chunks=(150, 3), dtype="f8")
    store[:] = people[["height", "weight", "rr"]].to_numpy()
    Path("cells.zarr/c/1/0").unlink()

    _, shown, summary = fitted(capsys, "cells.zarr", "--no-report")
    assert main(["info", "cells.zarr"]) == 0

    assert [warning for warning in summary["warnings"] if "lacks 1 of its 2 chunks" in warning]
    for err in (shown.err, capsys.readouterr().err):
        assert "warning: cells.zarr lacks 1 of its 2 chunks" in err
    assert not [one for one in recwarn if "chunks" in str(one.message)]


def test_checks_name_options_of_the_command_line(people, capsys, monkeypatch):
    advice = 'Fit with dependence="auto", which allows for it.'
    monkeypatch.setattr(Diagnosis, "findings", [Finding(False, advice)])
    monkeypatch.setattr(Diagnosis, "worst", advice)

    _, shown, summary = fitted(capsys, "people.csv", "--columns", "height,weight,rr", "--no-report")

    assert summary["checks"] == [{"trusted": False, "text": "Fit with --dependence auto, which allows for it."}]
    assert "the worst: Fit with --dependence auto, which" in shown.out


def test_named_columns_are_taken_whatever_they_hold(people, capsys):
    _, shown, summary = fitted(capsys, "people.csv", "--columns", "row,height,label,sex")

    assert summary["columns"] == ["row", "height", "label", "sex"]
    assert "note" not in shown.err


def test_excluded_columns_are_left_out(people, capsys):
    _, shown, summary = fitted(capsys, "people.csv", "--exclude", "sex,label,row,name")

    assert summary["columns"] == ["height", "weight", "rr", "pulse"]
    assert "note" not in shown.err


def test_codes_are_compared_and_numbers_are_not(people, capsys):
    _, _, summary = fitted(capsys, "people.csv", "--codes", "sex", "--exclude", "pulse", "--transform", "arcsinh")

    model = load("o/model.latentviews")
    assert summary["codes"] == ["sex"]
    assert summary["transforms"]["sex"] is None
    assert [view.space.finite for view in model.components_] == [False, False, False, True]
    table = model.components_[3].density(np.array([0.0, 1.0]))
    np.testing.assert_allclose(table.sum(axis=0), 1, rtol=1e-6)


def test_views_have_the_names_that_were_given(people, capsys):
    _, shown, summary = fitted(capsys, "people.csv", "--views", "size=height,weight", "rr", "heart rate=pulse")

    assert summary["view_names"] == ["size", "rr", "heart rate"]
    assert summary["views"] == [["height", "weight"], ["rr"], ["pulse"]]
    assert "views: size | rr | heart rate" in shown.out


def test_suggested_views_leave_codes_alone(people, capsys):
    _, _, summary = fitted(capsys, "people.csv", "--views", "auto", "--codes", "sex")

    assert ["sex"] in summary["views"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--exclude", "age"], "has no column 'age'"),
        (["--columns", "rr,pulse,sex", "--exclude", "sex"], "--columns and --exclude both name sex"),
        (["--views", "rr", "pulse", "sex", "--exclude", "sex"], "--views and --exclude both name sex"),
        (["--codes", "sex,sex"], "--codes names sex more than once"),
        (["--codes", "rr"], "codes are whole numbers"),
        (["--codes", "sex", "--columns", "rr,pulse,height"], "--codes names sex, which is not among the columns"),
        (["--views", "rr,sex", "pulse", "height", "--codes", "sex"], "The view rr,sex holds codes and numbers"),
        (["--views", "a=rr", "a=pulse", "height"], "--views names a more than once"),
        (["--views", "rr=pulse", "rr", "height"], "--views calls two views rr; give each a name of its own"),
        (["--views", "=rr", "pulse", "height"], "'=rr' has no name before its ="),
        (["--views", "rr"], "--views needs at least three views, or two with --dependence copula"),
        (["--codes", "sex", "--dependence", "copula"], "--dependence copula is for columns of numbers, and sex is"),
        (["--codes", "sex,label", "--noise"], "--noise is for columns of numbers, and sex, label are taken as codes"),
    ],
)  # fmt: skip
def test_columns_that_cannot_be_are_one_sentence(argv, said, people, capsys):
    assert said in refused(capsys, *argv)


@pytest.mark.parametrize(
    ("options", "needed", "came"),
    [
        (["--columns", "rr"], "three views, or two with --dependence copula", "1, rr"),
        (["--columns", "rr", "--dependence", "copula"], "two views with --dependence copula", "1, rr"),
        (["--columns", "rr", "--noise"], "two views with --noise", "1, rr"),
        (["--columns", "rr,sex", "--dependence", "none"], "three views, or two with --depend", "2, rr and sex"),
        (["--columns", "rr,sex", "--codes", "sex"], "three views where some are codes", "2, rr and sex"),
        (["--columns", "rr", "--views", "auto"], "three views, or two with --dependence copula", "1, rr"),
        (["--views", "rr,pulse", "--dependence", "copula"], "two views with --dependence copula", "1, rr,pulse"),
        (["--views", "rr", "sex", "--codes", "sex"], "three views where some are codes", "2, rr and sex"),
    ],
)  # fmt: skip
def test_too_few_views_are_told_with_what_is_needed_and_what_came(options, needed, came, people, capsys):
    said = refused(capsys, *options)

    assert f"needs at least {needed}" in said
    assert f", since fewer do not determine the classes; got {came}.\n" in said


def test_a_column_with_an_equals_sign_goes_into_quotes():
    assert wanted.parse_views(['"a=b",c', "d", 'e="x,y"']) == ([["a=b", "c"], ["d"], ["x,y"]], [None, None, "e"])


@pytest.mark.parametrize(
    ("answers", "used", "coded"),
    [
        (["", ""], ["height", "weight", "rr", "pulse", "sex"], []),
        (["n\n", "c\n"], ["height", "weight", "rr", "pulse", "label", "sex"], ["sex"]),
        (["L\n", "l\n"], ["height", "weight", "rr", "pulse"], []),
    ],
)
def test_whoever_is_at_the_terminal_is_asked_about_labels(answers, used, coded, people):
    asked = []

    def ask(question):
        asked.append(question)
        return answers[len(asked) - 1]

    table = read_table("people.csv")
    settled = columns.settle(columns.Chosen(table, ()), ask)

    assert list(settled.table.columns) == used
    assert list(settled.codes) == coded
    assert asked[0].startswith("Column label holds whole numbers, 2 different ones (0, 1). Leave it out (l)")
    assert "[L/c/n]" in asked[0]
    assert "[l/c/N]" in asked[1]


def test_nobody_is_asked_where_nobody_is_or_nothing_is_to_be_printed(monkeypatch):
    def at(terminal, **options):
        for stream in (sys.stdin, sys.stderr):
            monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
        return columns.ask_at_terminal(SimpleNamespace(**{"quiet": False, "json": False} | options))

    assert at(False) is None
    assert at(True, quiet=True) is None
    assert at(True, json=True) is None
    assert at(True) is not None


def test_two_columns_are_enough_for_copulas(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    label = rng.random(300) < 0.5
    pd.DataFrame(rng.normal(size=(300, 2)) + 6 * label[:, None], columns=["a", "b"]).to_csv("two.csv", index=False)

    assert main(["fit", "two.csv", "-k", "2", "--out", "o"]) == 0

    out = capsys.readouterr().out
    assert "views may depend on each other inside classes (copula)" in out
    found = read_table("o/labels.csv").values[:, 1]
    assert max(np.mean(found == label), np.mean(found != label)) > 0.98
    page = Path("o/report.html").read_text()
    assert "<!DOCTYPE html>" in page
    assert "latentviews fit two.csv -k 2 --out o" in page
    assert ">-k<" in page
    assert not re.search(">--(views|dependence)<", page)  # beside values of Python, which nobody can type there


# ------------------------------------------------------------------------------------------------- labels in FCS files


def events(path):
    flow = flowio.FlowData(path)
    return flow, np.reshape(flow.events, (flow.event_count, flow.channel_count))


@pytest.fixture
def cells(people, tmp_path):
    X = 200 * np.sinh(make_multiview(150, 2, n_views=4, random_state=0).X)
    write_fcs(tmp_path / "cells.fcs", X, ["FSC-A", "SSC-A", "FL1-A", "FL2-A"], ["", "", "CD3", "CD5"], patient="7/8 A")
    return "cells.fcs"


def test_classes_are_one_more_channel_of_a_copy_and_the_rest_is_as_it_was(cells, capsys):
    status, _, summary = fitted(capsys, cells, "--dependence", "none")

    assert status == 0
    assert "labelled.fcs" in summary["files"]
    before, values = events(cells)
    after, labelled = events("o/labelled.fcs")
    np.testing.assert_array_equal(labelled[:, :-1], values)
    np.testing.assert_array_equal(labelled[:, -1], read_table("o/labels.csv").values[:, 1])
    assert after.pnn_labels == [*before.pnn_labels, CHANNEL]
    changed = {key for key in before.text if after.text[key] != before.text[key]}
    assert changed <= {"par", "begindata", "enddata"}

    assert main(["predict", "o", "o/labelled.fcs", "--out", "again.fcs"]) == 0
    again, relabelled = events("again.fcs")
    assert again.pnn_labels == after.pnn_labels
    np.testing.assert_array_equal(relabelled, labelled)


def test_noise_is_the_number_after_the_last_class(cells, tmp_path):
    labels = np.where(np.arange(150) % 5 == 0, -1, np.arange(150) % 3)

    write_labels(Path(cells), tmp_path / "noise.fcs", labels, 3)

    np.testing.assert_array_equal(events("noise.fcs")[1][:, -1], np.where(labels < 0, 3, labels))


@pytest.mark.parametrize(("kind", "bits", "order"), [("I", 16, "1,2,3,4"), ("I", 32, "4,3,2,1"), ("D", 64, "4,3,2,1")])
def test_channels_of_every_type_are_added(kind, bits, order, tmp_path):
    path, parts = tmp_path / "cells.fcs", {"I16": "u2", "I32": "u4", "D64": "f8"}
    data = np.arange(12).reshape(4, 3).astype((">" if order[0] == "4" else "<") + parts[f"{kind}{bits}"]).tobytes()
    channel = "".join(f"|$P{n}N|c{n}|$P{n}B|{bits}|$P{n}E|0,0|$P{n}R|1024" for n in (1, 2, 3))
    fixed = f"|$PAR|3|$TOT|4|$MODE|L|$DATATYPE|{kind}|$BYTEORD|{order}|$NEXTDATA|0|$BEGINANALYSIS|0|$ENDANALYSIS|0"
    fixed += f"|$BEGINSTEXT|0|$ENDSTEXT|0{channel}|note|as it was"
    begin = 58 + len(fixed) + len("|$BEGINDATA|1000|$ENDDATA|1000|")
    text = f"{fixed}|$BEGINDATA|{begin:04d}|$ENDDATA|{begin + len(data) - 1:04d}|"
    offsets = [58, begin - 1, begin, begin + len(data) - 1, 0, 0]
    path.write_bytes(b"FCS3.1    " + b"".join(b"%8d" % one for one in offsets) + text.encode() + data)

    write_labels(path, tmp_path / "o.fcs", np.array([0, 1, -1, 1]), 2)

    flow, values = events(tmp_path / "o.fcs")
    np.testing.assert_array_equal(values, np.column_stack([np.arange(12).reshape(4, 3), [0, 1, 2, 1]]))
    assert flow.text["note"] == "as it was"


def test_a_file_that_takes_no_channel_says_so_and_the_fit_goes_on(cells, capsys):
    odd = Path(cells).read_bytes().replace(b"$P1B", b"$P1X").replace(b"$p1b", b"$p1x")
    Path("odd.fcs").write_bytes(odd)

    with pytest.raises(InputError, match="no channel"):
        write_labels(Path("odd.fcs"), Path("o.fcs"), np.zeros(150, dtype=int), 2)


def test_words_are_codes_where_that_is_asked_for_and_other_files_are_read_alike(people, capsys):
    words = np.where(np.random.default_rng(1).random(200) < 0.2 + 0.6 * people.label, "yes", "no")
    people.assign(smokes=words).to_csv("people.csv", index=False)
    views = ["--views", "height", "weight", "rr", "smokes", "--codes", "smokes"]

    status, _, summary = fitted(capsys, "people.csv", *views)
    assert status == 0
    assert "smokes is taken as codes: 0 is no, 1 is yes." in summary["notes"]
    model = load("o/model.latentviews")
    assert model.components_[3].space.finite

    other = people.assign(smokes=words)[["smokes", "rr", "weight", "height"]].iloc[:50]
    other.to_csv("other.csv", index=False)
    assert main(["predict", "o", "other.csv", "--out", "again.csv"]) == 0
    first, again = (pd.read_csv(file) for file in ("o/labels.csv", "again.csv"))
    np.testing.assert_array_equal(first["p0"][:50], again["p0"])
    capsys.readouterr()

    other.assign(smokes="perhaps").to_csv("new.csv", index=False)
    assert main(["predict", "o", "new.csv", "--out", "new-labels.csv"]) == 0
    assert (
        "column 'smokes': 'perhaps' was not there in the fit; such cells are taken as missing"
        in capsys.readouterr().err
    )


def test_all_columns_of_text_are_codes_where_that_is_asked_for(people, capsys):
    words = np.where(np.random.default_rng(1).random(200) < 0.2 + 0.6 * people.label, "yes", "no")
    table = people[["height", "weight"]].assign(smokes=words, drinks=words[::-1], name=people.index.astype(str) + "p")
    table.to_csv("words.csv", index=False)

    _, shown, summary = fitted(capsys, "words.csv", "--codes", "text")

    assert "note: left out: name, which holds 200 words in 200 rows, too many for categories.\n" in shown.err
    assert summary["left_out"] == ["name"]
    assert summary["codes"] == ["smokes", "drinks"]
    assert sorted(name for view in summary["views"] for name in view) == ["drinks", "height", "smokes", "weight"]

    table.assign(text=words).to_csv("named.csv", index=False)
    assert fitted(capsys, "named.csv", "--codes", "text", "--force")[2]["codes"] == ["text"]
    table[["height", "weight"]].to_csv("numbers.csv", index=False)
    assert main(["fit", "numbers.csv", "-k", "2", "--codes", "text", "--out", "n"]) == 2
    err = capsys.readouterr().err
    assert "--codes text takes all columns that hold text, and there is none; leave it out.\n" in err


def test_text_that_is_no_categories_is_left_out_of_codes_and_no_hint_is_given(people, capsys):
    kept = people[["height", "weight", "rr"]].assign(**{"name, in full": people.name})
    kept.to_csv("names.csv", index=False)

    for options in ([], ["--codes", "text"]):
        status, shown, summary = fitted(capsys, "names.csv", "--no-report", *options)
        assert status == 0
        assert summary["columns"] == ["height", "weight", "rr"]
        note = 'note: left out: "name, in full", which holds 200 words in 200 rows, too many for categories.\n'
        assert shown.err.count(note) == 1
        assert "--codes" not in shown.err


def test_info_tells_text_that_may_be_categories_from_names(people, capsys):
    table = people[["height"]].assign(smokes=np.where(people.sex, "yes", "no"), name=people.name)
    pd.concat([table, table.assign(name="q")]).to_csv("people.csv", index=False)

    assert main(["info", "people.csv"]) == 0

    said = capsys.readouterr().out
    assert "text, which `fit` takes where --codes names it: smokes\n" in said
    assert "of no use to `fit`: name (201 words, too many for categories)\n" in said


def test_text_with_the_name_of_a_label_is_left_out_unless_it_is_named(people, capsys):
    words = np.where(np.random.default_rng(1).random(200) < 0.2 + 0.6 * people.label, "yes", "no")
    table = people[["height", "weight", "rr"]].assign(smokes=words, label=np.where(people.label, "ill", "well"))
    table.to_csv("words.csv", index=False)
    note = "left out: label, which holds text and is taken for a label; --codes takes it in by name."

    _, shown, summary = fitted(capsys, "words.csv", "--no-report", "--codes", "text")
    assert summary["codes"] == ["smokes"]
    assert note in shown.err
    _, shown, summary = fitted(capsys, "words.csv", "--no-report")
    assert note in summary["notes"]
    assert "left out: smokes, which holds text; --codes takes categories in, `--codes text` all." in summary["notes"]
    assert fitted(capsys, "words.csv", "--no-report", "--codes", "text,label")[2]["codes"] == ["label", "smokes"]
    columns = ["--columns", "height,weight,label"]
    assert fitted(capsys, "words.csv", "--no-report", *columns, "--codes", "text")[2]["codes"] == ["label"]


def test_codes_text_goes_with_views_and_with_tables_of_text_alone(people, capsys):
    words = np.where(np.random.default_rng(1).random(200) < 0.2 + 0.6 * people.label, "yes", "no")
    people.assign(smokes=words, drinks=words[::-1], eats=words)[["smokes", "drinks", "eats"]].to_csv("words.csv")
    people.assign(smokes=words).to_csv("people.csv", index=False)

    mixed = refused(capsys, "--views", "height,smokes", "weight", "rr", "--codes", "text")
    assert "The view height,smokes holds codes and numbers" in mixed
    none = refused(capsys, "--columns", "height,weight,rr", "--codes", "text")
    assert "hold text, and there is none among those that are used; leave it out." in none
    views = ["--views", "height", "weight", "smokes", "--codes", "text"]
    assert fitted(capsys, "people.csv", "--no-report", *views)[2]["codes"] == ["smokes"]
    found = fitted(capsys, "words.csv", "--no-report", "--codes", "text")[2]
    assert found["columns"] == ["smokes", "drinks", "eats"]
    assert main(["fit", "words.csv", "--out", "n"]) == 2
    said = "words.csv holds nothing but text; `--codes text` takes smokes, drinks, eats as categories.\n"
    assert said in capsys.readouterr().err


def test_words_beyond_number_are_no_codes(people, capsys):
    people.assign(name=[f"p{i}" for i in range(200)]).pipe(lambda x: pd.concat([x, x.assign(name="q")])).to_csv(
        "people.csv"
    )

    assert "column 'name': it holds 201 different words, more than the 200" in refused(
        capsys, "--codes", "name", "--force"
    )


def test_values_far_from_all_others_are_told_with_their_row(people, capsys):
    people.loc[7, "height"] = 1e149
    people.assign(sex=0.5).drop(columns=["label"]).to_csv("far.csv", index=False)

    _, shown, summary = fitted(capsys, "far.csv", "--columns", "height,weight,rr")

    told = [note for note in summary["notes"] if "nine in ten" in note]
    assert len(told) == 1
    assert told[0].startswith("height holds 1e+149 in row 8, while nine in ten lie between")
    assert "Values lie outside the range" not in shown.out


def test_answers_of_a_crowd_are_sent_to_the_command_for_them(people, capsys):
    rng = np.random.default_rng(0)
    answers = {"item": np.repeat(np.arange(1, 61), 5), "worker": np.tile(np.arange(5), 60)}
    answers |= {"rating": rng.integers(1, 5, 300), "label": rng.integers(1, 5, 300)}
    pd.DataFrame(answers).to_csv("my answers.csv", index=False)

    _, shown, _ = fitted(capsys, "my answers.csv", "--no-report")

    command = "latentviews crowd 'my answers.csv' --task item --worker worker --label rating"
    assert f"note: item, worker and rating look like answers, one per row; `{command}` finds" in shown.err
    assert main([*shlex.split(command)[1:], "--no-report", "--out", "crowd"]) == 0
    assert not [note for note in fitted(capsys, "people.csv", "--no-report")[2]["notes"] if "crowd" in note]


def test_counts_of_rows_are_told(people, capsys):
    patterns = pd.DataFrame(
        [[i & 1, i >> 1 & 1, i >> 2 & 1, i >> 3 & 1, i >> 4] for i in range(32)], columns=list("abcde")
    )
    patterns.assign(freq=np.arange(32) ** 2 % 37).to_csv("patterns.csv", index=False)
    people[["height", "weight", "rr"]].round().assign(count=np.arange(200) % 37).to_csv("measured.csv", index=False)

    _, shown, _ = fitted(capsys, "patterns.csv", "--no-report", "-k", "1")

    assert "note: freq looks like counts, of objects that each row stands for, and is taken as a meas" in shown.err
    assert "counts" not in fitted(capsys, "measured.csv", "--no-report")[1].err


# ------------------------------------------------------------------------------------------------------- starting


@pytest.mark.parametrize("argv", [["--version"], ["--help"], ["fit", "--help"], []], ids=str)
def test_nothing_heavy_is_imported_for_help(argv):
    code = (
        "import sys\nfrom latentviews.cli import main\n"
        f"try:\n    main({argv!r})\nexcept SystemExit as end:\n    assert end.code == 0\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stderr == "[]\n"


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["fit", "no.csv"], "no.csv does not exist."),
        (["fit", "empty.csv"], "empty.csv is empty."),
        (["fit", "."], ". is a directory; name a file in it."),
        (["fit", "a.csv", "-k", "x"], "-k is a number of at least 1, or auto; got 'x'."),
        (["fit", "a.csv", "--views", "a", "a", "b"], "--views names a more than once; a column belongs to one view."),
        (["fit", "a.csv", "--noise", "--dependence", "none"], "--noise goes with --dependence copula, not with none"),
        (["fit", "a.csv", "--out", "a.csv"], "cannot write to a.csv (it is a file)"),
        (["crowd", "no.csv"], "no.csv does not exist."),
        (["info", "no.csv"], "no.csv does not exist."),
        (["predict", "no", "a.csv"], "no cannot be read (no such file or directory)."),
        (["report", ".", "a.csv"], ". is a directory without model.latentviews"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_told_before_anything_heavy_is_imported(argv, sentence, tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty.csv").write_text("")
    code = (
        f"import sys\nfrom latentviews.cli import main\nassert main({argv!r}) == 2\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)

    assert done.stdout == "[]\n"
    assert done.stderr.startswith(f"latentviews {argv[0]}: {sentence}")


def test_a_file_is_told_of_without_what_models_need(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    code = (
        "import sys\nfrom latentviews.cli import main\nassert main(['info', 'a.csv', '--json']) == 0\n"
        "print([name for name in ('sklearn', 'scipy', 'matplotlib') if name in sys.modules], file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)

    assert json.loads(done.stdout)["n_rows"] == 1
    assert done.stderr.endswith("[]\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--exclude", "pulse,nope"], "a.csv has no column 'nope'"),
        (["--codes", "b"], "--codes names b, which holds 0.5 and 21 different numbers in all; codes are whole"),
    ],
    ids=str,
)
def test_what_a_file_lacks_is_told_before_models_are_imported(options, said, tmp_path):
    (tmp_path / "a.csv").write_text("a,b,pulse\n" + "".join(f"1,{i}.5,2\n" for i in range(21)))
    code = (
        f"import sys\nfrom latentviews.cli import main\nassert main({['fit', 'a.csv', *options]!r}) == 2\n"
        "print([name for name in ('sklearn', 'scipy', 'matplotlib') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)

    assert done.stdout == "[]\n"
    assert done.stderr.startswith(f"latentviews fit: {said}")
    assert os.listdir(tmp_path) == ["a.csv"]


def test_a_fit_without_a_report_imports_nothing_of_it(people):
    argv = ["fit", "people.csv", "--columns", "rr,pulse,height", "-k", "2", "--no-report"]
    code = (
        f"import sys\nfrom latentviews.cli import main\nassert main({argv!r}) == 0\n"
        "names = ('matplotlib', 'latentviews.report', 'latentviews.plot', 'latentviews.sequences')\n"
        "print([name for name in names if name in sys.modules], file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stderr.endswith("[]\n")


def test_a_report_on_a_table_imports_no_other_models(people):
    argv = ["fit", "people.csv", "--columns", "rr,pulse,height", "-k", "2"]
    code = (
        f"import sys\nfrom latentviews.cli import main\nassert main({argv!r}) == 0\n"
        "names = ('matplotlib', 'latentviews.report.topics', 'latentviews.discrete.latent_class')\n"
        "print([name for name in names if name in sys.modules], file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stderr.endswith("[]\n")


def test_garbage_is_not_searched_for_while_libraries_are_imported():
    gc.unfreeze()
    with cli._Importing(False, own_process=True):
        assert not gc.isenabled()

    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
    gc.disable()
    with cli._Importing(False, own_process=False):  # as its caller wants it
        pass
    assert not gc.isenabled()
    gc.enable()
    assert gc.get_freeze_count() == 0


def test_the_command_alone_prints_help(capsys):
    assert main([]) == 0
    assert "usage: latentviews" in capsys.readouterr().out


@pytest.mark.parametrize(("number", "status", "word"), [(2, 130, "interrupted"), (15, 143, "terminated")])
def test_a_signal_while_libraries_are_imported_is_one_sentence(number, status, word, tmp_path):
    code = (
        "import os, sys\nfrom latentviews.cli import main, options\n"
        f"options._later = lambda *what: os.kill(os.getpid(), {number})\n"
        "sys.exit(main(['fit', 'cells.csv']))"
    )
    (tmp_path / "cells.csv").write_text("a\n1\n")

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode == status
    assert done.stderr == f"latentviews: {word}; nothing was written.\n"
    assert os.listdir(tmp_path) == ["cells.csv"]


SWALLOWING = """
import os, signal, sys
from latentviews.cli import info, main, read_and_fit
def swallow(*arguments):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            pass
    except KeyboardInterrupt:  # as in libraries that readers import
        sys.exit(0)
read_and_fit.read_columns = info.read_usable = swallow
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
sys.exit(main([sys.argv[1], "cells.csv"]))
"""


@pytest.mark.parametrize("command", ["fit", "info"])
def test_a_signal_while_a_file_is_read_ends_whatever_readers_make_of_it(command, tmp_path):
    (tmp_path / "cells.csv").write_text("a\n1\n")

    argv = [sys.executable, "-c", SWALLOWING, command]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert (done.returncode, done.stderr) == (130, "latentviews: interrupted; nothing was written.\n")
    assert os.listdir(tmp_path) == ["cells.csv"]


def test_a_terminal_is_told_to_wait_and_sees_the_time_that_is_gone(people, tmp_path):
    master, slave = pty.openpty()
    argv = [sys.executable, "-m", "latentviews", "fit", "people.csv", "--columns", "rr,pulse,height", "-k", "2"]
    process = subprocess.Popen([*argv, "--no-report"], stdout=subprocess.PIPE, stderr=slave, text=True)
    os.close(slave)
    seen = b""
    try:
        while chunk := os.read(master, 65536):
            seen += chunk
    except OSError:  # the other end is closed
        pass
    os.close(master)
    out = process.communicate()[0]

    assert process.returncode == 0
    assert re.match("starting …(\rstarting … \\d+ s)*\r\x1b\\[K".encode(), seen)
    assert re.search(rb"0:00:0\d\S* gone", seen)
    assert "time   " in out
    assert "starting " in out
    assert "fitting " in out


def test_time_goes_on_while_libraries_are_imported(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(cli._Waiting, "TICK", 1e-3)
    with cli._Waiting(True):
        while sys.stderr.getvalue().count("\r") < 2:  # as long as it takes
            time.sleep(1e-3)

    assert re.fullmatch("starting …(\rstarting … 0 s){2,}\r\x1b\\[K", sys.stderr.getvalue())


def test_sentences_name_the_options_of_the_command_line():
    assert in_options("Is it ';'? The option `delimiter` sets another.") == "Is it ';'? --delimiter sets another."
    assert in_options("With dependence=None they have.") == "With --dependence none they have."
    assert in_options('Fit with dependence="auto".') == "Fit with --dependence auto."
    with pytest.raises(ValueError, match="MultiViewMixture") as error:
        MultiViewMixture(2).fit(np.eye(5)[:, :1])
    assert in_options(str(error.value)) == "a fit needs at least three views, or two with --dependence copula; got 1."


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        (whitening._unsupported(1, 3), "support 1 class, not the 3 asked for: the symmetrised pair moment has no"),
        (whitening._unsupported(2, 3), "3rd eigenvalue. Ask for fewer classes, or add rows."),
        (whitening._unsupported(2, 11), "support 2 classes, not the 11 asked for: the symmetrised pair moment has no "),
        (whitening._unsupported(2, 11), "11th eigenvalue."),
        (whitening._unsupported(2, 22), "22nd eigenvalue."),
        ("3 component(s) need at least 3 rows; got n_samples = 2.", "3 classes need at least 3 rows; got 2."),
        ("with dependence, leave it out, or dependence at None.", "or take --dependence none."),
        ("distributions of its own; exchangeable must be False.", "distributions of its own."),
        ("Copulas(noise=True) smooth it as any other. With noise=False they have it.", "--noise smooths it as any"),
        ("Copulas(noise=True) smooth it as any other. With noise=False they have it.", "Without --noise they have it."),
        ("3 components need 3 features; the smallest has 1. Ask for fewer components.", "3 classes need 3 features; "),
        ("in a first fit of 2 class(es) with", "a first fit of 2 classes with"),
        ("do not support 1 classes, or 11 classes", "do not support 1 class, or 11 classes"),
        (apart_sentence({"b": (-999.0, 31, -2.5)}), "leave these cells empty (--missing names a value that"),
        ("likelier (`likelihood_curve`).", "likelier (`likelihood_curve` in Python)."),
        ("Column 'a' (in view 0) is constant over 1 sample(s)", "Column 'a' is constant over 1 sample"),
    ],
)  # fmt: skip
def test_sentences_of_the_library_have_no_words_of_python(sentence, said):
    assert said in in_options(sentence)
    assert in_options(in_options(sentence)) == in_options(sentence)


def test_codes_say_why_no_dependence_is_looked_for(people, capsys):
    options = ["--columns", "rr,pulse,sex", "--codes", "sex", "--dependence", "auto", "--no-report"]

    _, shown, _ = fitted(capsys, "people.csv", *options)

    assert "\nViews are taken as independent: copulas are for columns of numbers, and some are codes.\n" in shown.out
