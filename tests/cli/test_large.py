"""Files too large for memory: fits and predictions in pieces are those of the whole file."""

import json
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from latentviews import diagnose, load, report
from latentviews.cli import common, main
from latentviews.cli.columns import read_columns
from latentviews.cli.options import build_parser
from latentviews.cli.wanted import parse_columns
from latentviews.datasets import make_multiview
from latentviews.diagnosis import checked_rows
from latentviews.io import Table, sample_table

N = 3000
WRITERS = {
    "rows.csv": lambda frame, path: frame.to_csv(path, index=False),
    "rows.parquet": lambda frame, path: frame.to_parquet(path, row_group_size=700),
}


@pytest.fixture
def frame():
    X = make_multiview(N, 2, n_views=3, random_state=0).X
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(number=np.arange(1, N + 1), note="x")


@pytest.fixture
def large(monkeypatch, tmp_path):
    """A directory to work in, where a file of more than 500 rows is large, and reports are a line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("latentviews.io.LARGE", 100)
    monkeypatch.setattr("latentviews.io.source.ROWS", 700)
    monkeypatch.setattr(common, "SAMPLED", 500)


def run(*argv):
    assert main([*argv, "--quiet", "--force"]) in (0, None)


def summary(place):
    return json.loads((place / "summary.json").read_text())


@pytest.mark.parametrize("name", WRITERS)
def test_a_large_file_is_fitted_as_if_it_were_in_memory(name, frame, large, tmp_path, monkeypatch):
    WRITERS[name](frame, name)
    asked = []

    def judged(model, rows, **options):
        asked.append(len(rows))
        return diagnose(model, rows, n_permutations=19, random_state=0)

    monkeypatch.setattr(checked_rows, "diagnose", judged)
    run("fit", name, "-k", "2", "--no-report", "--out", "pieces")
    monkeypatch.setattr("latentviews.io.LARGE", 10**9)
    run("fit", name, "-k", "2", "--no-report", "--out", "whole")

    pieces, whole = summary(tmp_path / "pieces"), summary(tmp_path / "whole")
    assert asked == [500, N]
    assert pieces["rows_in_memory"] == 500
    assert pieces["n_rows"] == whole["n_rows"] == whole["rows_in_memory"] == N
    assert any("checks and the report made, by 500, spread over the file" in note for note in pieces["notes"])
    assert pieces["left_out"] == whole["left_out"] == ["note", "number"]
    for a, b in zip(pieces["classes"], whole["classes"], strict=True):
        assert a["n_rows"] == b["n_rows"]
        assert a["weight"] == pytest.approx(b["weight"], abs=1e-8)
        assert a["mean_certainty"] == pytest.approx(b["mean_certainty"], abs=1e-8)
    for key in ("uncertain_rows", "log_likelihood"):
        assert pieces[key] == pytest.approx(whole[key], abs=1e-8)
    labels = [pd.read_csv(tmp_path / place / "labels.csv") for place in ("pieces", "whole")]
    pd.testing.assert_frame_equal(*labels, atol=1e-6)
    assert labels[0]["row"].tolist() == list(range(1, N + 1))


def test_a_large_file_is_predicted_in_pieces(frame, large, monkeypatch):
    WRITERS["rows.parquet"](frame, "rows.parquet")
    run("fit", "rows.parquet", "-k", "2", "--no-report", "--out", "found")
    read = []
    monkeypatch.setattr("latentviews.cli.apply.read_for", lambda *_: read.append(1))
    run("predict", "found", "rows.parquet", "--out", "again.parquet")

    assert not read
    again = pd.read_parquet("again.parquet")
    rows = frame[["a", "b", "c"]]
    np.testing.assert_allclose(again[["p0", "p1"]], load("found/model.latentviews").predict_proba(rows), atol=1e-12)
    assert again["class"].tolist() == pd.read_csv("found/labels.csv")["class"].tolist()


def test_a_report_on_a_large_file_says_how_many_of_its_rows_it_is_on(frame, large, monkeypatch):
    WRITERS["rows.parquet"](frame, "rows.parquet")
    asked = []

    def contents(model, rows, *, source, **_):
        asked.append((len(rows), source))
        return SimpleNamespace(diagnosis=diagnose(model, rows, n_permutations=19, random_state=0))

    monkeypatch.setattr(report.contents, "report_contents", contents)
    monkeypatch.setattr(report, "write_contents", lambda _, path: path.touch())
    run("fit", "rows.parquet", "-k", "2", "--out", "found")
    run("report", "found", "rows.parquet", "--out", "report.html")

    assert asked == [(500, "500 of the 3,000 rows of rows.parquet")] * 2


def test_a_report_on_a_large_file_says_whose_intervals_it_has(frame, large, tmp_path):
    WRITERS["rows.parquet"](frame, "rows.parquet")
    said = "Intervals are those of a sample of 500 rows; all 3,000 of the file would give narrower ones."
    run("fit", "rows.parquet", "-k", "2", "--out", "found")
    run("report", "found", "rows.parquet", "--out", "report.html")
    assert said in (tmp_path / "found" / "report.html").read_text()
    assert said in (tmp_path / "report.html").read_text()


def test_columns_without_names_are_called_by_their_numbers(frame, large, tmp_path):
    frame[["number", "a", "b", "c"]].to_csv("rows.csv", index=False, header=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run("fit", "rows.csv", "-k", "2", "--columns", "2,3,4", "--no-report", "--out", "found")

    assert summary(tmp_path / "found")["view_names"] == ["2", "3", "4"]
    assert load("found/model.latentviews").feature_names_in_.tolist() == ["2", "3", "4"]


@pytest.mark.parametrize("asked", [["--transform", "arcsinh"], ["--codes", "note"]], ids=str)
def test_options_that_need_all_rows_read_them(asked, frame, large, tmp_path):
    WRITERS["rows.csv"](frame.assign(note=np.where(frame.a > 0, "x", "y")), "rows.csv")
    run("fit", "rows.csv", "-k", "2", "--no-report", "--exclude", "number", "--out", "found", *asked)
    assert summary(tmp_path / "found")["rows_in_memory"] == N


@pytest.mark.parametrize("asked", [["--dependence", "copula"], ["--noise"], ["--views", "a", "b"]], ids=str)
def test_copulas_have_all_rows_in_memory(asked, frame, large):
    WRITERS["rows.csv"](frame, "rows.csv")
    words = ["fit", "rows.csv", "-k", "2", *asked]
    arguments = build_parser().parse_args(words)
    assert read_columns(arguments, parse_columns(arguments)).table.stored is None


def test_some_rows_of_a_large_file_are_spread_over_it_without_its_rhythm(frame, large):
    frame["month"] = np.arange(N) % 6
    WRITERS["rows.parquet"](frame, "rows.parquet")
    some = sample_table("rows.parquet", most=500)
    assert isinstance(some, Table)
    assert some.columns == ("a", "b", "c", "number", "month")
    assert some.texts == ("note",)
    np.testing.assert_array_equal(some.places // 6, np.arange(500))
    np.testing.assert_array_equal(some.values, frame.loc[some.places, list(some.columns)])
    assert np.bincount(some.values[:, 4].astype(int), minlength=6).min() > 500 / 6 / 2
    odd = sample_table("rows.parquet", most=N - 1)
    assert len(odd.values) == N / 2
    assert sample_table("rows.parquet", most=N) is None


def test_an_infinite_value_in_a_later_piece_is_told_with_its_place(frame, large, capsys):
    frame.loc[2500, "b"] = np.inf
    WRITERS["rows.parquet"](frame, "rows.parquet")
    assert main(["fit", "rows.parquet", "-k", "2", "--quiet", "--out", "found"]) == 2
    assert "column 'b': the value in row 401 of these is infinite" in capsys.readouterr().err
