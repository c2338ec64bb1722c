"""``latentviews crowd``: from a file of answers to labels, workers and a report, or one sentence."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from latentviews import load
from latentviews.cli import main
from latentviews.io.words import open_words

FILES = ["model.latentviews", "report.html", "summary.json", "tasks.csv", "workers.csv"]


@pytest.fixture
def answers(tmp_path, monkeypatch):
    """A directory with labels.csv in it, to work in: five good workers, and one who always says yes."""
    monkeypatch.chdir(tmp_path)
    rng, n = np.random.default_rng(0), 120
    truth = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {"task": np.repeat([f"<i>{i}" for i in range(n)], 6), "worker": ["a", "b", "c", "d", "e", "z"] * n}
    )
    right = rng.random((n, 6)) < 0.85
    said = np.where(right, truth[:, None], 1 - truth[:, None])
    said[:, 5] = 1
    frame["label"] = np.array(["no", "yes"])[said.ravel()]
    frame.to_csv("labels.csv", index=False)
    return frame, truth


def test_a_file_becomes_labels_workers_and_a_report(answers, tmp_path, capsys):
    _, truth = answers

    assert main(["crowd", "labels.csv", "--json"]) == 0

    summary = json.loads(capsys.readouterr().out)
    assert sorted(path.name for path in (tmp_path / "labels").iterdir()) == FILES
    assert summary["spammers"] == ["z"]
    tasks, workers = (pd.read_csv(tmp_path / "labels" / name) for name in ("tasks.csv", "workers.csv"))
    assert np.mean((tasks["label"] == "yes") != truth) < 0.06
    assert workers.set_index("worker")["spammer_probability"].idxmax() == "z"
    page = (tmp_path / "labels" / "report.html").read_text()
    assert "Most probably answering without looking: 1 worker" in page
    assert "&lt;i&gt;" in page
    assert "<i>0" not in page
    assert load(tmp_path / "labels" / "model.latentviews").labels_.tolist() == tasks["label"].tolist()


def test_columns_may_have_other_names_and_parquet_reads_the_same(answers, capsys):
    frame, _ = answers
    frame.columns = ["item", "rater", "rating"]
    frame.to_csv("three.tsv", sep="\t", index=False)
    frame.assign(when=1).to_parquet("four.parquet")

    assert main(["crowd", "three.tsv", "--quiet"]) == 0
    assert main(["crowd", "four.parquet", "--task", "item", "--worker", "rater", "--label", "rating", "--quiet"]) == 0

    assert capsys.readouterr().out == ""
    assert pd.read_csv("three/tasks.csv").equals(pd.read_csv("four/tasks.csv"))


def test_an_empty_cell_is_no_answer(tmp_path):
    (tmp_path / "cells.csv").write_text("task,worker,label\n1,a,yes\n2,b,\n")

    source = open_words(tmp_path / "cells.csv")

    assert source.read(source.find(["label", "task"], "cells.csv")).tolist() == [["yes", "1"], [None, "2"]]


BAD = {
    "absent": (["crowd", "nothing.csv"], "nothing.csv does not exist."),
    "columns": (["crowd", "wide.csv"], "'d', and crowd takes one answer per row: --task, --worker and --label"),
    "wide": (
        ["crowd", "wide.csv"],
        "`latentviews fit wide.csv --codes` and the names of those columns finds the classes",
    ),
    "named": (["crowd", "labels.csv", "--task", "tusk"], "labels.csv has no column 'tusk'; did you mean 'task'?"),
    "labels": (
        ["crowd", "blank.csv"],
        "blank.csv: Expected at least one answer with a label; all 1 labels are missing.",
    ),
    "model": (["predict", "labels", "labels.csv"], "holds a CrowdLabels, the labels of a crowd's tasks, which are in"),
    "twice": (["crowd", "twice.csv"], "twice.csv has more than one column 'a'; rename one of them."),
    "row": (["crowd", "gap.csv"], "gap.csv: Every answer needs a worker; row 2, counted from 1, has none."),
}


@pytest.mark.parametrize(("argv", "sentence"), BAD.values(), ids=BAD.keys())
def test_what_cannot_be_done_is_one_sentence(answers, argv, sentence, tmp_path, capsys):
    (tmp_path / "wide.csv").write_text("a,b,c,d\n1,2,3,4\n")
    (tmp_path / "blank.csv").write_text("task,worker,label\n1,2,\n")
    (tmp_path / "twice.csv").write_text("a,a,b\n1,2,3\n")
    (tmp_path / "gap.csv").write_text("task,worker,label\n1,a,yes\n1,,no\n")
    main(["crowd", "labels.csv", "--quiet", "--no-report"])

    status = main([*argv, "--out", "other" if argv[0] == "crowd" else "other.csv"])

    assert status == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.glob("other*"))


def test_columns_that_are_taken_by_their_order_are_told(answers, capsys):
    frame, _ = answers
    frame.set_axis(["item", "rater", "rating"], axis=1).to_csv("three.csv", index=False)

    assert main(["crowd", "three.csv", "--no-report"]) == 0
    said = capsys.readouterr().err
    assert main(["crowd", "labels.csv", "--no-report"]) == 0

    assert "note: columns are taken by their order, 'item' for tasks, 'rater' for workers, 'rating' for labels;" in said
    assert "note" not in capsys.readouterr().err


def test_one_column_is_not_taken_twice(answers, capsys):
    assert main(["crowd", "labels.csv", "--worker", "task"]) == 2

    said = capsys.readouterr().err
    assert "'task' is named for tasks and for workers; tasks, workers and labels are three columns." in said


def test_info_says_what_a_model_of_answers_is(answers, capsys):
    main(["crowd", "labels.csv", "--quiet", "--no-report"])

    assert main(["info", "labels"]) == 0

    said = capsys.readouterr().out
    assert "a fitted CrowdLabels, from `latentviews crowd`: 720 answers of 6 workers on 120 tasks" in said
    assert "spammers  1 of 6 workers" in said


def test_one_is_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("one.csv").write_text("task,worker,label\n1,a,yes\n2,a,\n")

    assert main(["crowd", "one.csv", "--no-report"]) == 0
    assert main(["info", "one"]) == 0

    said = capsys.readouterr().out
    assert "one.csv: 1 answer of 1 worker on 2 tasks" in said
    assert "from `latentviews crowd`: 1 answer of 1 worker" in said
    assert "of 1 worker\n" in said
