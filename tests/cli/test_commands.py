"""``fit``, ``predict``, ``report`` and ``info``: from a file to classes, or one sentence and nothing written."""

import contextlib
import errno
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pandas as pd
import pytest

from files import write_fcs, write_h5ad, write_zarr
from latentviews import Copulas, MultiViewMixture, load, report, save
from latentviews._progress import Part, observed
from latentviews.cli import fit, main, output, progress
from latentviews.cli.progress import FitObserver, Progress, Stage
from latentviews.datasets import make_multiview
from latentviews.diagnosis.diagnose import most_probable
from latentviews.io import read_table
from latentviews.metrics import label_accuracy

COMMAND = Path(sys.executable).with_name("latentviews")
FILES = ["labels.csv", "model.latentviews", "report.html", "summary.json"]


@pytest.fixture(scope="module")
def data():
    return make_multiview(400, 2, n_views=4, random_state=0)


@pytest.fixture
def cells(data, tmp_path, monkeypatch):
    """A directory with cells.csv in it, to work in; reports are a line, for speed."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(data.X, columns=["FS", "SS", "CD3", "CD19"]).assign(label=data.y).to_csv("cells.csv", index=False)

    def short(model, X, *, wording, random_state, checked=None, **options):
        command = {"command": wording.command} if wording.command else {"random_state": random_state}
        return SimpleNamespace(options=options | command)

    monkeypatch.setattr(report.contents, "report_contents", short)
    monkeypatch.setattr(report, "write_contents", lambda found, path: path.write_text(json.dumps(found.options)))
    return tmp_path


VIEWS = ["--views", "FS", "SS", "CD3", "CD19"]


def run(capsys, *argv):
    """Status, output and errors of a command."""
    status = main([str(part) for part in argv])
    out, err = capsys.readouterr()
    return status, out, err


def sentence(capsys, *argv):
    """What a command that fails says: one sentence, and nothing else."""
    status, out, err = run(capsys, *argv)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"latentviews {argv[0]}: ")
    return err


# ----------------------------------------------------------------------------------------------------------- fit


def test_fit_writes_a_model_labels_a_summary_and_a_report(data, cells, capsys):
    status, out, err = run(capsys, "fit", "cells.csv", "--views", "FS,SS", "CD3", "CD19", "-k", 2, "--out", "a/b")

    assert (status, err) == (0, "")
    assert sorted(os.listdir("a/b")) == FILES
    labels = pd.read_csv("a/b/labels.csv")
    assert list(labels) == ["row", "class", "p0", "p1"]
    assert list(labels["row"]) == list(range(1, 401))
    assert label_accuracy(data.y, labels["class"].to_numpy()) > 0.97
    np.testing.assert_allclose(labels["p0"] + labels["p1"], 1, atol=2e-6)
    summary = json.loads(Path("a/b/summary.json").read_text())
    assert summary["views"] == [["FS", "SS"], ["CD3"], ["CD19"]]
    assert summary["left_out"] == ["label"]
    assert [one["n_rows"] for one in summary["classes"]] == np.bincount(labels["class"]).tolist()
    assert sorted(summary["files"]) == FILES
    assert "views: FS+SS | CD3 | CD19\n" in out
    assert "left out: label\n" in out
    assert "2 classes, as asked for" in out
    assert json.loads(Path("a/b/report.html").read_text()) == {
        "columns": ["FS", "SS", "CD3", "CD19"], "source": "cells.csv", "title": None, "saved": "model.latentviews",
        "command": "latentviews fit cells.csv --views FS,SS CD3 CD19 -k 2 --out a/b",
        "n_in_file": None,
    }  # fmt: skip


def test_the_verdict_reaches_the_terminal_and_the_summary(data, cells, capsys):
    status, out, _ = run(capsys, "fit", "cells.csv", *VIEWS, "-k", 2, "--out", "o", "--no-report")

    assert status == 0
    assert "checks   all " in out
    assert not Path("o/report.html").exists()
    summary = json.loads(Path("o/summary.json").read_text())
    assert "report.html" not in summary["files"]
    assert all(check["trusted"] for check in summary["checks"])
    model, frame = load("o/model.latentviews"), pd.read_csv("cells.csv")
    assert summary["log_likelihood"] == pytest.approx(model.score(frame[["FS", "SS", "CD3", "CD19"]]))
    assert summary["seconds"] == pytest.approx(sum(summary["seconds_of"].values()), abs=0.01)


def test_the_worst_check_that_failed_is_told(cells, capsys, rng):
    shared = rng.normal(size=(600, 1))
    table = shared + 0.3 * rng.normal(size=(600, 3)) + 5 * (rng.random((600, 1)) < 0.5)
    pd.DataFrame(table, columns=["a", "b", "c"]).to_csv("bound.csv", index=False)

    status, out, _ = run(capsys, "fit", "bound.csv", "-k", 2, "--out", "o")

    summary = json.loads(Path("o/summary.json").read_text())
    failed = [check["text"] for check in summary["checks"] if not check["trusted"]]
    assert status == 0
    assert "depend on each other inside class" in summary["worst_check"]
    assert f"checks   {len(failed)} of {len(summary['checks'])} FAILED, the worst: {summary['worst_check']}" in out


def test_the_saved_model_is_the_one_that_made_the_labels(data, cells, capsys):
    run(capsys, "fit", "cells.csv", *VIEWS, "-k", 2, "--out", "o", "--seed", 3, "--labels-format", "parquet")

    model, frame = load("o/model.latentviews"), pd.read_csv("cells.csv")
    labels = pd.read_parquet("o/labels.parquet")

    np.testing.assert_array_equal(labels[["p0", "p1"]], model.predict_proba(frame[["FS", "SS", "CD3", "CD19"]]))
    same = MultiViewMixture(2, random_state=3).fit(data.X)
    np.testing.assert_allclose(labels["p0"], same.predict_proba(data.X)[:, 0], atol=1e-9)
    assert model.reading_.columns == ("FS", "SS", "CD3", "CD19")


def test_fit_finds_the_number_of_classes_and_the_views(data, cells, capsys):
    twin = data.X[:, 2] + np.random.default_rng(0).normal(scale=0.3, size=400)
    pd.read_csv("cells.csv").assign(CD4=twin).to_csv("cells.csv", index=False)

    status, out, err = run(capsys, "fit", "cells.csv", "--columns", "FS,SS,CD3,CD19,CD4", "--views", "auto", "--json")

    summary = json.loads(out)
    assert (status, err) == (0, "")
    assert summary == json.loads(Path("cells/summary.json").read_text())  # the default place is the name of the file
    assert summary["views"] == [["FS"], ["SS"], ["CD3", "CD4"], ["CD19"]]
    assert summary["views_chosen"].startswith("Put together: CD3 and CD4 (tied by 0.")
    assert summary["n_classes_chosen"] == "auto"
    assert summary["n_classes"] == load("cells/model.latentviews").rank_test_.n_components


def test_rows_that_the_classes_leave_to_noise_have_no_class():
    posteriors = np.array([[0.9, 0.1], [0.2, 0.1], [0.5 - 1e-17, 0.5], [0.0, 1.0], [0.4, 0.3]])

    labels, certainty = most_probable(posteriors)

    assert labels.tolist() == [0, -1, 0, 1, 0]
    np.testing.assert_allclose(certainty, [0.9, 0.7, 0.5, 1, 0.4])


def test_quiet_prints_nothing(cells, capsys):
    assert run(capsys, "fit", "cells.csv", *VIEWS, "-k", 2, "--quiet") == (0, "", "")


def test_nothing_is_overwritten_without_force(cells, capsys):
    Path("o").mkdir()
    Path("o/labels.csv").write_text("mine")
    Path("o/labels.parquet").write_text("of an older run")
    Path("o/notes.txt").write_text("mine too")

    said = sentence(capsys, "fit", "cells.csv", *VIEWS, "-k", 2, "--out", "o")

    assert said.endswith("o/labels.csv would be overwritten; pass --force, or name another place with --out.\n")
    assert Path("o/labels.csv").read_text() == "mine"
    assert run(capsys, "fit", "cells.csv", *VIEWS, "-k", 2, "--out", "o", "--force", "--quiet")[0] == 0
    assert sorted(os.listdir("o")) == sorted([*FILES, "notes.txt"])  # and no labels of two runs
    assert (
        Path("o/labels.csv").read_text().startswith('"row","class"') or "row,class" in Path("o/labels.csv").read_text()
    )


def test_fit_takes_fcs_with_markers_and_predict_repeats_its_scales(data, cells, capsys, monkeypatch):
    raw = 200 * np.sinh(data.X)
    detectors, markers = ["FSC-A", "FL1-A", "FL2-A", "FL3-A", "Time"], ["", "CD3", "CD5", "CD19", ""]
    write_fcs(cells / "a.fcs", np.column_stack([raw, np.arange(400)]), detectors, markers)
    write_fcs(cells / "b.fcs", np.column_stack([raw, np.arange(400)])[:50, ::-1], detectors[::-1], markers[::-1])

    status, out, _ = run(capsys, "fit", "a.fcs", "--views", "FSC-A", "FL1-A", "CD5", "CD19", "-k", 2, "--out", "o")
    assert status == 0
    assert "views: FSC-A | CD3 | CD5 | CD19\n" in out
    chosen = json.loads(Path("o/summary.json").read_text())["dependence_chosen"]
    assert "log-likelihood of held-out rows" in chosen
    assert f"{chosen}\n" in out
    assert run(capsys, "predict", "o", "b.fcs", "--out", "b.csv")[0] == 0

    assert "Logicle" in json.loads(Path("o/summary.json").read_text())["transforms"]["CD3"]
    np.testing.assert_array_equal(pd.read_csv("b.csv"), pd.read_csv("o/labels.csv")[:50])


def test_scales_of_text_files_are_remembered_as_well(data, cells, capsys):
    options = ["--transform", "arcsinh", "--cofactor", 2]
    run(capsys, "fit", "cells.csv", *VIEWS, "-k", 2, "--out", "o", *options)
    run(capsys, "predict", "o/model.latentviews", "cells.csv", "--out", "p.csv")

    assert load("o/model.latentviews").reading_.transforms[0].cofactor == 2
    assert Path("p.csv").read_text() == Path("o/labels.csv").read_text()


def test_labels_go_back_into_anndata(data, cells, capsys):
    write_h5ad(cells / "a.h5ad", data.X, names=["FS", "SS", "CD3", "CD19"])

    assert run(capsys, "fit", "a.h5ad", "-k", 2, "--out", "o")[0] == 0
    assert run(capsys, "predict", "o", "a.h5ad", "--out", "b.h5ad")[0] == 0

    for path in ("o/labelled.h5ad", "b.h5ad"):
        with h5py.File(path) as file:
            codes = file["obs/latentviews_class/codes"][:]
        np.testing.assert_array_equal(codes, pd.read_csv("o/labels.csv")["class"])


def test_warnings_are_told_on_standard_error_and_in_the_summary(cells, capsys, recwarn):
    codes = np.random.default_rng(0).integers(0, 2, size=(200, 3))
    pd.DataFrame(codes, columns=list("abc")).to_csv("codes.csv", index=False)

    status, out, err = run(capsys, "fit", "codes.csv", "-k", 3, "--out", "o", "--json")

    assert status == 0
    assert "\nwarning: " in err
    assert json.loads(out)["warnings"][0] in err
    assert not recwarn.list  # which Python would print as it does, beside ours


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["nowhere.csv"], "nowhere.csv does not exist"),
        (["."], "is a directory; name a file in it"),
        (["cells.csv", "--views", "FS", "SS", "CD9"], "cells.csv has no column 'CD9'; did you mean 'CD19' or 'CD3'?"),
        (["cells.csv", "--columns", "FS,SSC"], "has no column 'SSC'; did you mean 'SS'?"),
        (["cells.csv", *VIEWS, "-k", "401"], "cells.csv has 400 rows, too few for the 401 classes of -k"),
        (["cells.csv", *VIEWS, "-k", "many"], "-k is a number of at least 1, or auto; got 'many'"),
        (["cells.csv", *VIEWS, "-k", "0"], "-k is a number of at least 1"),
        (
            ["cells.csv", "--views", "FS", "SS", "--dependence", "none"],
            "--views needs at least three views, or two with --dependence copula",
        ),
        (["cells.csv", "--views", "FS,SS", "SS", "CD3"], "--views names SS more than once"),
        (["cells.csv", "--views", "FS,,SS", "CD3", "CD19"], "'FS,,SS' does not name columns"),
        (["cells.csv", *VIEWS, "--columns", "FS"], "--views names the columns already"),
        (["cells.csv", "--columns", "FS,SS", "--dependence", "none"], "a fit needs at least three views"),
        (["cells.csv", *VIEWS, "--noise", "--dependence", "none"], "--noise goes with --dependence copula"),
        (["cells.csv", *VIEWS, "--noise", "--dependence", "auto"], "copula, not with auto; leave one out."),
        (["cells.csv", "--delimiter", ";"], "the delimiter is another one, set --delimiter."),
        (["spill.fcs"], "spill.fcs has a spillover matrix that cannot be used"),
        (["spill.fcs"], "--no-compensation reads the file without."),
        (["damaged.zarr"], "damaged.zarr, rows 1 to 3: a chunk cannot be read; it may be damaged"),
        (
            ["cells.csv", *VIEWS, "--delimiter", ";"],
            "single column, 'FS,SS,CD3,CD19,label'. Is its delimiter another one",
        ),
        (["bad.csv"], "bad.csv, row 2 (line 3), column 'b': 'x' is not a number"),
        (["flat.csv", "-k", "2", "--columns", "a,b,c"], "flat.csv: Column 'b' is constant"),
        (["empty.csv"], "empty.csv is empty"),
        (["cut.fcs"], "cut.fcs is not a whole FCS file; it may be cut short"),
        (["cells.csv", *VIEWS, "--out", "bad.csv"], "cannot write to bad.csv (it is a file)"),
        (["cells.csv", *VIEWS, "--out", "bad.csv/o"], "cannot write to bad.csv/o (not a directory)"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else None,
)
def test_what_can_be_put_right_is_one_sentence_and_nothing_is_written(argv, said, cells, capsys):
    Path("bad.csv").write_text("a,b,c\n1,2,3\n4,x,6\n")
    Path("flat.csv").write_text("a,b,c\n1,2,3\n4,2,6\n7,2,5\n")
    Path("empty.csv").write_text("")
    write_fcs(cells / "cut.fcs")
    Path("cut.fcs").write_bytes(Path("cut.fcs").read_bytes()[:-3])
    write_fcs(cells / "spill.fcs", spillover="x")
    write_zarr(cells / "damaged.zarr")
    for chunk in Path("damaged.zarr/c").rglob("*"):
        if chunk.is_file():
            chunk.write_bytes(b"nonsense")
    before = sorted(os.listdir())

    assert said in sentence(capsys, "fit", *argv)

    assert sorted(os.listdir()) == before


def test_a_place_that_takes_no_files_is_found_out_before_the_work(cells, capsys, monkeypatch):
    def refuse(directory):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(output, "_make", refuse)
    monkeypatch.setattr(fit, "fit_table", None)

    said = sentence(capsys, "fit", "cells.csv", *VIEWS, "--out", "o")

    assert "cannot write to o (permission denied); name another place with --out." in said


# ----------------------------------------------------------------------------------------- predict, report, info


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Where the results of the one fit behind the tests below are kept."""
    return tmp_path_factory.mktemp("kept") / "o"


@pytest.fixture
def fitted(cells, kept, capsys):
    if not kept.exists():
        assert run(capsys, "fit", "cells.csv", *VIEWS, "-k", 2, "--out", kept)[0] == 0
    shutil.copytree(kept, "o")
    return cells


def test_predict_finds_columns_by_name(fitted, capsys):
    frame = pd.read_csv("cells.csv")[["CD19", "label", "FS", "CD3", "SS"]][:100]
    frame.to_parquet("other.parquet")

    status, out, _ = run(capsys, "predict", "o", "other.parquet", "--json")

    assert status == 0
    summary = json.loads(out)
    assert summary["files"] == ["other-labels.csv"]
    labels = pd.read_csv("other-labels.csv")
    pd.testing.assert_frame_equal(labels, pd.read_csv("o/labels.csv")[:100])
    assert summary["rows_of_classes"] == np.bincount(labels["class"]).tolist()


def test_predict_takes_models_saved_in_python(data, cells, capsys):
    save(MultiViewMixture(2, random_state=0).fit(data.X), "m.latentviews")
    np.save("x.npy", data.X)

    assert run(capsys, "predict", "m.latentviews", "x.npy", "--out", "x.parquet")[0] == 0
    assert "the model was fitted to 4" in sentence(capsys, "predict", "m.latentviews", "cells.csv", "--out", "y.csv")
    assert pd.read_parquet("x.parquet").shape == (400, 4)


def test_predict_prints_the_shares_of_the_classes(fitted, capsys):
    _, out, _ = run(capsys, "predict", "o", "cells.csv")

    counts = [int(count) for count in re.findall(r"^ +\d +(\d+) +[\d.]+%$", out, flags=re.MULTILINE)]
    assert sum(counts) == 400
    assert out.endswith("wrote   cells-labels.csv\n")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["predict", "nowhere", "cells.csv"], "nowhere cannot be read (no such file or directory)"),
        (["predict", ".", "cells.csv"], ". is a directory without model.latentviews"),
        (["predict", "cells.csv", "cells.csv"], "cells.csv is not a model that latentviews saved"),
        (["predict", "unfitted", "cells.csv"], "unfitted holds a MultiViewMixture, which is no fitted mixture"),
        (["predict", "o", "few.csv"], "few.csv has no columns 'SS', 'CD3', 'CD19'"),
        (["predict", "o", "renamed.csv"], "has no column 'CD19'; it has 'FS', 'SS', 'CD3', 'antigen'."),
        (["info", "cut.latentviews"], "cut.latentviews is not a model that latentviews saved, or it is cut short"),
        (["predict", "cut.latentviews", "cells.csv"], "it is cut short"),
        (["predict", "o", "cells.csv", "--out", "o/labels.csv"], "o/labels.csv would be overwritten; pass --force"),
        (["predict", "o", "cells.csv", "--out", "p.txt"], "a name that ends in .csv, .parquet, .fcs or .h5ad"),
        (["predict", "o", "cells.csv", "--out", "p.h5ad"], "cells.csv is no AnnData file, so p.h5ad cannot be one"),
        (["predict", "o", "cells.csv", "--out", "p.csv", "--labels-format", "parquet"], "do not agree"),
        (["predict", "o", "cells.csv", "--out", "cells.csv", "--force"], "--out cells.csv is the file that is read"),
        (["report", "o", "cells.csv", "--out", "cells.csv", "--force"], "--out cells.csv is the file that is read"),
        (["report", "o", "cells.csv", "--out", "o"], "cannot write to o (it is a directory)"),
        (["info", "nowhere.csv"], "nowhere.csv does not exist"),
        (["info", "book.xlsx"], "book.xlsx is a zip file, but not a model"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_other_commands_say_in_one_sentence_what_is_wrong(argv, said, fitted, capsys):
    save(MultiViewMixture(), "unfitted")
    Path("few.csv").write_text("FS,x\n1,2\n")
    Path("renamed.csv").write_text("FS,SS,CD3,antigen\n1,2,3,4\n")
    Path("cut.latentviews").write_bytes(Path("o/model.latentviews").read_bytes()[:-2000])
    with zipfile.ZipFile("book.xlsx", "w") as book:
        book.writestr("sheet", "1")
    before = sorted(path for path in Path().rglob("*"))

    assert said in sentence(capsys, *argv)

    assert sorted(path for path in Path().rglob("*")) == before


def test_report_is_on_a_model_and_a_file(fitted, capsys):
    status, out, _ = run(capsys, "report", "o", "cells.csv", "--title", "Patient 7", "--seed", 5)

    assert (status, out) == (0, "wrote   cells-report.html\n")
    assert json.loads(Path("cells-report.html").read_text()) == {
        "columns": ["FS", "SS", "CD3", "CD19"], "source": "cells.csv", "title": "Patient 7",
        "saved": "o/model.latentviews", "random_state": 5, "n_in_file": None,
    }  # fmt: skip


def test_info_on_a_file_shows_its_columns(data, cells, capsys):
    Path("gap.csv").write_text("a,b\n1,\n3,5\n2,\n")

    _, out, _ = run(capsys, "info", "gap.csv")
    assert out.splitlines()[0] == "gap.csv: csv, 3 rows, 2 columns"
    assert re.search(r"^a +1 +2 +3 +0 +as it is$", out, flags=re.MULTILINE)
    assert re.search(r"^b +5 +5 +5 +2 +as it is$", out, flags=re.MULTILINE)

    write_fcs(cells / "a.fcs", data.X[:, :3], ["FL1-A", "FL2-A", "Time"], ["CD3", "", ""])
    summary = json.loads(run(capsys, "info", "a.fcs", "--json")[1])
    assert [one["name"] for one in summary["columns"]] == ["CD3", "FL2-A"]
    assert summary["left_out"] == ["Time"]
    assert summary["columns"][0]["scale"].startswith("Logicle(top=")


def test_info_on_a_model_shows_its_views_and_classes(fitted, capsys):
    _, out, _ = run(capsys, "info", "o")
    weights = load("o/model.latentviews").weights_
    assert "independent inside classes" in out
    assert "no class; stray rows go to the likeliest one" in out

    assert out.splitlines()[0] == "a fitted MultiViewMixture: 2 classes in 4 views"
    assert "FS | SS | CD3 | CD19" in out
    assert f"{weights[0]:.3f}  {weights[1]:.3f}" in out
    assert json.loads(run(capsys, "info", "o/model.latentviews", "--json")[1])["weights"] == weights.tolist()


# ------------------------------------------------------------------------------------------------- noise, and doubt


@pytest.fixture(scope="module")
def strays(tmp_path_factory):
    """A file of two balls and stray rows, and the one fit with noise behind the tests below, with its real report."""
    here = tmp_path_factory.mktemp("strays")
    rng = np.random.default_rng(0)
    X = np.where(np.arange(300)[:, None] < 200, -4.0, 4.0) + 0.6 * rng.normal(size=(300, 3))
    frame = pd.DataFrame(np.concatenate([X, rng.uniform(-9, 9, size=(30, 3))]), columns=["a", "b", "c"])
    frame.to_csv(here / "x.csv", index=False)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.chdir(here):
        assert main(["fit", "x.csv", "-k", "2", "--noise", "--out", "o"]) == 0
    return here, out.getvalue()


def test_noise_is_shown_wherever_classes_are(strays, capsys, monkeypatch):
    here, said = strays
    monkeypatch.chdir(here)
    labels, summary = pd.read_csv("o/labels.csv"), json.loads(Path("o/summary.json").read_text())

    assert list(labels) == ["row", "class", "p0", "p1", "p_noise"]
    np.testing.assert_allclose(labels[["p0", "p1", "p_noise"]].sum(axis=1), 1, atol=3e-6)
    assert np.mean(labels["class"][300:] == -1) > 0.7
    assert np.mean(labels["class"][:300] == -1) < 0.03
    n_noise = int(np.sum(labels["class"] == -1))
    assert (summary["dependence"], summary["noise_rows"]) == ("copula", n_noise)
    assert summary["noise_weight"] == pytest.approx(30 / 330, abs=0.03)
    assert re.search(rf"^noise +0\.\d+ +{n_noise} ", said, flags=re.MULTILINE)
    assert summary["uncertain_rows"] < 0.1  # noise is no doubt
    _, shown, _ = run(capsys, "info", "o")
    assert "may depend on each other inside classes (copula; agreement of starts" in shown
    assert re.search(r"^noise +a class, called -1, of weight 0\.\d+", shown, flags=re.MULTILINE)
    assert "2 classes and noise in 330 rows" in Path("o/report.html").read_text()


def test_predict_calls_far_rows_noise_and_says_which_columns_are_off(strays, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(strays[0])
    frame = pd.read_csv("x.csv")
    frame["b"] *= 1000
    frame.to_csv(tmp_path / "off.csv", index=False)

    status, out, err = run(capsys, "predict", "o", tmp_path / "off.csv", "--out", tmp_path / "off-labels.csv")

    assert status == 0
    assert re.match(r"warning: Values lie outside the range or scale .* in b \(\d+% of the rows\): ", err)
    assert err.count("\n") == 1
    assert np.mean(pd.read_csv(tmp_path / "off-labels.csv")["class"] == -1) > 0.9
    assert re.search(r"^noise +\d+ +\d+\.\d%$", out, flags=re.MULTILINE)
    assert run(capsys, "predict", "o", "x.csv", "--out", tmp_path / "same.csv")[2] == ""


def test_report_says_which_columns_are_off(fitted, capsys):
    frame = pd.read_csv("cells.csv")
    frame["CD3"] /= 1000  # another unit: all values in a small part of the range
    frame.to_csv("off.csv", index=False)

    status, _, err = run(capsys, "report", "o", "off.csv")

    assert status == 0
    assert "outside the range or scale that the model was fitted to, in CD3 (100% of the rows)" in err


def test_classes_that_win_no_row_are_told_of(cells, capsys, monkeypatch):
    fit_as_usual = MultiViewMixture.fit

    def hide(model, X):
        fit_as_usual(model, X)
        model.weights_ = np.array([1.0, 0.0])
        return model

    monkeypatch.setattr(MultiViewMixture, "fit", hide)
    _, out, _ = run(capsys, "fit", "cells.csv", *VIEWS, "-k", 2, "--out", "o")

    assert "no row is most probably in class 1\n" in out


def test_many_classes_that_win_no_row_are_one_line(data, cells, capsys):
    _, out, _ = run(capsys, "fit", "cells.csv", *VIEWS, "-k", 60, "--out", "o", "--json")
    empty = [one["class"] for one in json.loads(out)["classes"] if not one["n_rows"]]
    _, out, err = run(capsys, "fit", "cells.csv", *VIEWS, "-k", 60, "--out", "o", "--force")

    assert len(empty) > 10
    first = ", ".join(map(str, empty[:10]))
    assert f"no row is most probably in classes {first} and {len(empty) - 10} more\n" in out
    assert f"No row is most probably in {len(empty)} of 60 classes, of size " in err


def test_info_and_fit_say_the_same_of_columns(data, cells, capsys):
    frame = pd.DataFrame(data.X, columns=list("abcd")).assign(same=3.0)
    frame.to_csv("same.csv", index=False)
    frame["d"] = np.where(np.arange(len(frame)) == 3, np.inf, frame["d"])
    frame.to_csv("far.csv", index=False)

    assert "one value in all rows, which `fit` leaves out: same\n" in run(capsys, "info", "same.csv")[1]
    assert json.loads(run(capsys, "info", "same.csv", "--json")[1])["constant"] == ["same"]
    assert "of no use to `fit`: d (infinite in row 4)" in run(capsys, "info", "far.csv")[1]
    assert "row 4, column 'd': the value is infinite" in sentence(capsys, "fit", "far.csv", "--out", "o")


def test_a_single_impossible_value_is_named_by_predict(fitted, data, capsys):
    frame = pd.DataFrame(data.X, columns=["FS", "SS", "CD3", "CD19"])
    frame.loc[7, "SS"] = 1e15
    frame.to_csv("far.csv", index=False)

    _, _, err = run(capsys, "predict", "o", "far.csv", "--out", "far-labels.csv")

    assert "warning: SS holds 1e+15 in row 8, while the model was fitted to values between" in err


@pytest.mark.parametrize("options", [(), ("-k", 2), ("-k", 3)])
def test_few_rows_are_refused_or_fitted_without_words_of_other_libraries(options, cells, capsys):
    Path("two.csv").write_text("a,b,c,d\n5.1,3.5,1.4,.2\n4.9,3.0,1.4,.2\n")
    Path("one.csv").write_text("a,b,c\n1,2,3\n")

    status, _, err = run(capsys, "fit", "two.csv", *options, "--out", "o", "--no-report")

    assert status == 0 or "two.csv has 2 rows, too few for the 3 classes of -k" in err
    assert "one.csv has 1 row, and a fit needs at least 2." in sentence(capsys, "fit", "one.csv")


def test_one_row_is_one(cells, capsys):
    Path("one.csv").write_text("a,b\n1,2\n")

    assert run(capsys, "info", "one.csv")[1].splitlines()[0] == "one.csv: csv, 1 row, 2 columns"
    assert "one.csv has 1 row, and a fit needs at least 2" in sentence(capsys, "fit", "one.csv", "-k", 2)


def test_info_looks_at_some_columns_and_at_raw_channels(cells, capsys):
    Path("notes.csv").write_text("a,note,b,c,c\n1,x,2,3,4\n")
    Path("words.csv").write_text("a,b\nx,y\n")
    write_fcs(cells / "spill.fcs", spillover="x")

    _, out, _ = run(capsys, "info", "notes.csv")
    assert out.startswith("notes.csv: csv, 1 row, 2 columns\n")
    assert "of no use to `fit`: note (not numbers), c (a name that" in out
    Path("kinds.csv").write_text('a,note,"b, c",c\n1,x,2,3\n2,y,3,4\n')
    assert "text, which `fit` takes where --codes names it: note\n" in run(capsys, "info", "kinds.csv")[1]
    assert run(capsys, "info", "notes.csv", "--columns", "a,b")[0] == 0
    out = run(capsys, "info", "words.csv")[1]
    assert out == "words.csv: csv, 1 row, 0 columns\n\ntext, which `fit` takes where --codes names it: a, b\n"
    assert run(capsys, "info", "spill.fcs", "--no-compensation")[0] == 0


def retouched(source, target, change):
    """A model file whose tree and arrays were changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        entries = {name: old.read(name) for name in old.namelist()}
        tree = json.loads(entries["model.json"])
        change(
            next(node["state"] for node in tree["objects"] if node.get("class") == "MultiViewMixture"),
            entries,
        )
        entries["model.json"] = json.dumps(tree).encode()
        for name, content in entries.items():
            new.writestr(name, content)


def put(name, value):
    return lambda state, entries: state.update({name: value})


def with_nan(state, entries):
    for name in [name for name in entries if name.endswith(".npy")]:
        array = np.load(io.BytesIO(entries[name]))
        if array.dtype.kind == "f":
            buffer = io.BytesIO()
            np.save(buffer, np.full_like(array, np.nan))
            entries[name] = buffer.getvalue()


TAMPERED = {
    "a word for classes": put("n_components_", "two"),
    "another number of classes": put("n_components_", 5),
    "no weights": put("weights_", None),
    "views that are none": put("views_", 3),
    "names that are none": put("feature_names_in_", 7),
    "a reading that is none": put("reading_", "cells.csv"),
    "no numbers": with_nan,
}


@pytest.mark.parametrize("case", TAMPERED)
def test_a_model_that_was_tampered_with_is_one_sentence(case, fitted, capsys):
    retouched("o/model.latentviews", "bad.latentviews", TAMPERED[case])

    for argv in (["info", "bad.latentviews"], ["predict", "bad.latentviews", "cells.csv"]):
        assert "bad.latentviews is a damaged model" in sentence(capsys, *argv)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--delimiter", ""], "--delimiter: it is one character"),
        (["--delimiter", "ab"], "--delimiter: it is one character, such as , or ; or \\t; got 'ab'"),
        (["--seed", "-1"], "--seed: it is a whole number, zero or more; got '-1'"),
        (["--cofactor", "inf"], "--cofactor: it is a positive, finite number; got 'inf'"),
        (["--cofactor", "x"], "--cofactor: it is a positive, finite number"),
        (["--out", ""], "--out: it names a place, and the name is empty"),
    ],
    ids=str,
)
def test_options_that_cannot_be_are_refused_before_anything_is_done(options, said, cells, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["fit", "cells.csv", *VIEWS, "-k", "2", *options])

    assert stop.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert os.listdir() == ["cells.csv"]


# ------------------------------------------------------------------------------------------ the end of a command


def test_an_output_that_takes_nothing_is_one_sentence(cells):
    """A real process, its output opened for reading: what Python does when it ends counts as well."""
    script = f"{COMMAND} info cells.csv 1< cells.csv; echo $?; {COMMAND} info cells.csv >&-; echo $?"

    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=cells, check=True)

    assert done.stdout.split() == ["2", "0"]
    assert done.stderr == "latentviews info: cannot write to standard output (bad file descriptor).\n"


def test_an_unexpected_error_is_status_one_with_a_traceback(cells, capsys, monkeypatch):
    monkeypatch.setattr(fit, "fit_table", lambda *_: 1 / 0)

    status, out, err = run(capsys, "fit", "cells.csv", *VIEWS, "-k", 2, "--out", "o")

    assert (status, out) == (1, "")
    assert "Traceback" in err
    assert "unexpected ZeroDivisionError: division by zero. This is a bug; please report it" in err.splitlines()[-1]
    assert os.listdir() == ["cells.csv"]


ENDLESS = """
import sys
from latentviews.cli import fit, main
once = fit.fit_table
def endless(*arguments):
    print("in the middle", flush=True)
    while True:
        once(*arguments)
fit.fit_table = endless
sys.exit(main(["fit", "x.npy", "-k", "2", "--out", "o"]))
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_an_interrupted_fit_leaves_nothing(number, status, data, tmp_path):
    """A real process, stopped in the middle of its work, which has no end."""
    np.save(tmp_path / "x.npy", data.X)
    argv = [sys.executable, "-c", ENDLESS]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
    process = subprocess.Popen(argv, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    assert process.stdout.readline() == "in the middle\n"

    process.send_signal(number)
    out, err = process.communicate()

    assert process.returncode == status
    assert out == ""
    assert not (tmp_path / "o").exists()
    if status > 0:
        assert os.listdir(tmp_path) == ["x.npy"]
        assert err.endswith("no file was left half-written.\n")
        assert "Traceback" not in err
    else:  # nobody can clean up after SIGKILL but the next run
        assert len(os.listdir(tmp_path)) == 2
        with output.output_directory(tmp_path / "o", ["f"], force=False) as aside:
            assert sorted(os.listdir(tmp_path)) == sorted([aside.name, "x.npy"])


def test_a_reader_that_goes_away_is_no_error(cells):
    script = f"{COMMAND} info cells.csv | true; echo ${{PIPESTATUS[0]}}"

    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=cells, check=True)

    assert done.stdout.strip() in ("141", "0")  # 0 where the pipe took it all before the reader went
    assert done.stderr == ""


def test_results_of_a_failed_run_do_not_replace_older_ones(tmp_path):
    (tmp_path / "f").write_text("old")

    def work():
        with output.output_directory(tmp_path, ["f"], force=True) as aside:
            (aside / "f").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()

    assert (tmp_path / "f").read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


def test_a_directory_that_fills_meanwhile_is_not_overwritten(tmp_path):
    def work():
        with output.output_directory(tmp_path / "o", ["f"], force=False) as aside:
            (aside / "f").write_text("mine")
            (tmp_path / "o").mkdir()
            (tmp_path / "o" / "f").write_text("theirs")

    with pytest.raises(output.CommandError, match="would be overwritten"):
        work()

    assert (tmp_path / "o" / "f").read_text() == "theirs"


@pytest.mark.parametrize("place", [output.output_directory, output.output_file], ids=["directory", "file"])
def test_a_full_disk_is_one_sentence_and_other_errors_pass(place, tmp_path):
    options = {"names": ["f"]} if place is output.output_directory else {}

    def work(number):
        with place(tmp_path / "o", force=False, **options):
            raise OSError(number, os.strerror(number))

    with pytest.raises(output.CommandError, match=r"cannot write to .*o \(no space left on device\)"):
        work(errno.ENOSPC)
    with pytest.raises(OSError, match="Input/output error"):
        work(errno.EIO)
    assert os.listdir(tmp_path) == []


def test_a_signal_does_not_come_between_the_renames(tmp_path, monkeypatch):
    publish = output._publish

    def interrupted(aside, path, ours):
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
        publish(aside, path, ours)

    monkeypatch.setattr(output, "_publish", interrupted)

    with output.output_directory(tmp_path / "o", ["f"], force=False) as aside:
        (aside / "f").write_text("whole")

    assert (tmp_path / "o" / "f").read_text() == "whole"


# ------------------------------------------------------------------------------------------------------ progress


def test_a_terminal_sees_progress(cells):
    """A real process whose standard error is a terminal."""
    master, slave = pty.openpty()
    argv = [COMMAND, "fit", "cells.csv", "--views", "FS", "SS", "CD3", "-k", "2"]
    process = subprocess.Popen(argv, cwd=cells, stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    seen = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while chunk := os.read(master, 65536):
            seen += chunk
    os.close(master)

    assert process.wait() == 0
    assert b"fitting" in seen
    assert b"rows/s" in seen
    assert re.search(rb"\d:\d\d:\d\d", seen)  # time left


@pytest.mark.parametrize(("shown", "terminal"), [(True, False), (False, True)], ids=["a pipe", "--quiet"])
def test_nobody_else_does(shown, terminal, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)

    assert Progress(shown)._bars is None


def test_bars_show_the_stage_and_its_rate(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)

    with Progress(True) as progress, progress.stage("classes of rows", 10) as stage:
        stage.update(5, 10, "7 rows/s")

    shown = capsys.readouterr().err
    assert "classes of rows" in shown
    assert "7 rows/s" in shown


class Recorder(Stage):
    def __init__(self):
        self.seen = []

    def update(self, completed, total, rate):
        self.seen.append((completed, rate))


def test_the_way_of_a_fit_is_measured_on_the_logarithm_of_its_gain():
    recorder = Recorder()
    observer = FitObserver(recorder)

    for step in range(1, 10):
        observer("polish", step, -(10.0**-step), Part())

    shares = [share for share, _ in recorder.seen]
    assert shares[0] == 0
    np.testing.assert_allclose(shares[1:4], np.array([1, 2, 3]) / np.log10(0.09 / 1e-5), rtol=0.01)
    assert shares[-1] == 0.99  # it is over when the fit says so
    assert shares == sorted(shares)
    assert all(rate.endswith(" steps/s") for _, rate in recorder.seen)


def test_the_way_of_several_starts_never_shrinks():
    recorder = Recorder()
    observer = FitObserver(recorder)

    for number in range(4):
        for step in range(1, 6):
            observer("start", step, -(10.0**-step), Part(number, 4, 1e-4))

    shares = [share for share, _ in recorder.seen]
    assert shares == sorted(shares)
    assert [shares[5 * number - 1] for number in (1, 2, 3)] == pytest.approx([0.25, 0.5, 0.75])
    assert 0.9 < shares[-1] < 1


def test_a_fit_with_copulas_tells_how_far_it_is(data):
    recorder = Recorder()
    model = MultiViewMixture(2, dependence=Copulas(n_starts=1, max_iter=8), random_state=0)

    with observed(FitObserver(recorder)):
        model.fit(data.X)

    shares = [share for share, _ in recorder.seen]
    assert shares == sorted(shares)
    assert shares[0] < 0.3
    assert shares[-1] > 0.66


def test_the_observer_hears_every_step_of_a_fit(data, monkeypatch):
    recorder = Recorder()

    monkeypatch.setattr(progress, "Stage", lambda bars, task: recorder)

    with Progress(False).stage("fitting", follow=True):
        MultiViewMixture(2, random_state=0).fit(data.X)

    assert len(recorder.seen) > 1
    assert recorder.seen[-1][0] > 0


@pytest.mark.parametrize("rich", [True, False], ids=["with rich", "without"])
def test_without_rich_there_is_no_bar(rich, monkeypatch, capsys):
    if not rich:
        monkeypatch.setitem(sys.modules, "rich.progress", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)

    with Progress(True) as progress, progress.stage("work", 10) as stage:
        stage.update(5, 10, "")

    assert ("work" in capsys.readouterr().err) is rich


def test_the_whole_way_with_the_real_report(data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", data.X[:, :3])

    assert run(capsys, "fit", "x.npy", "-k", 2, "--out", "o")[0] == 0

    page = Path("o/report.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "x.npy" in page
    assert "model.latentviews" in page
    assert read_table("o/labels.csv").values.shape == (400, 4)
