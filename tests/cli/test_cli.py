"""The command line does its work or says in one sentence why not."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from latentviews import __version__
from latentviews.cli import demo, main, output

PNG = b"\x89PNG\r\n\x1a\n"


def test_demo_prints_what_it_found_and_writes_a_figure(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "new" / "deep")]) == 0

    out, err = capsys.readouterr()
    figure = tmp_path / "new" / "deep" / "components.png"
    assert figure.read_bytes().startswith(PNG)
    assert figure.stat().st_size < 200_000
    assert str(figure) in out
    assert figure.with_name("report.html").read_text().startswith("<!DOCTYPE html>")
    assert err == ""
    rows = re.findall(r"^ +(\d) +(0\.\d+) +(0\.\d+)$", out, flags=re.MULTILINE)
    assert [row[0] for row in rows] == ["0", "1", "2"]
    assert all(abs(float(found) - float(true)) < 0.02 for _, found, true in rows)
    assert float(re.search(r"labels right +([\d.]+)%", out)[1]) >= 99
    assert "spectrum" in out
    assert re.search(r"time to fit +[\d.]+ s", out)


@pytest.fixture(scope="module")
def result():
    return demo.run_demo()


def test_demo_compares_every_class_with_its_own_truth(result):
    assert list(result.true_weights) == sorted(result.true_weights, reverse=True)
    assert 0 < result.error < 0.25 * result.size


def test_demo_draws_the_true_densities_dashed_beneath_the_found_ones(result):
    axes = demo.offscreen_axes(3)

    demo.draw_demo(result, axes)

    for panel in axes:
        lines = [line for line in panel.get_lines() if len(line.get_xdata())]
        found, true = lines[:3], lines[3:]
        assert [line.get_linestyle() for line in true] == ["--"] * 3
        assert max(line.get_zorder() for line in true) < min(line.get_zorder() for line in found)


def test_demo_runs_again_over_its_own_figure_and_leaves_nothing_else(result, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "run_demo", lambda: result)
    monkeypatch.setattr(demo, "write_report", lambda model, X, path, **options: path.touch())
    (tmp_path / "components.png").write_bytes(b"old")

    assert main(["demo", "--out", str(tmp_path)]) == 0

    assert sorted(os.listdir(tmp_path)) == ["components.png", "report.html"]
    assert (tmp_path / "components.png").read_bytes().startswith(PNG)


def one_sentence(capsys):
    out, err = capsys.readouterr()
    assert err.count("\n") == 1
    assert err.startswith("latentviews demo: ")
    assert "Traceback" not in err
    return out, err


def test_a_file_in_the_way_is_one_sentence(tmp_path, capsys):
    (tmp_path / "taken").write_text("a file")

    assert main(["demo", "--out", str(tmp_path / "taken")]) == 2

    out, err = one_sentence(capsys)
    assert out == ""  # found out before the work
    assert "cannot write to" in err
    assert "--out" in err


def test_a_directory_that_takes_no_files_is_one_sentence(tmp_path, capsys, monkeypatch):
    def refuse(directory):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(output, "_make", refuse)

    assert main(["demo", "--out", str(tmp_path)]) == 2

    out, err = one_sentence(capsys)
    assert out == ""
    assert "permission denied" in err


def test_a_directory_where_the_figure_belongs_is_one_sentence(tmp_path, capsys):
    (tmp_path / "components.png").mkdir()

    assert main(["demo", "--out", str(tmp_path)]) == 2

    assert "components.png" in one_sentence(capsys)[1]
    assert [path.name for path in tmp_path.iterdir()] == ["components.png"]


def test_missing_matplotlib_is_one_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    assert main(["demo", "--out", str(tmp_path)]) == 2

    assert "pip install latentviews[plot]" in one_sentence(capsys)[1]


@pytest.mark.parametrize("command", ["", "demo", "fit", "predict", "report", "info"])
def test_help_has_examples(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), "--help"])

    assert stop.value.code == 0
    assert f"examples:\n  latentviews {command}" in capsys.readouterr().out


def test_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])

    assert stop.value.code == 0
    assert capsys.readouterr().out == f"latentviews {__version__}\n"


@pytest.mark.parametrize("argv", [["nonsense"], ["demo", "--nonsense"], ["fit"], ["predict", "m"]], ids=str)
def test_wrong_usage_exits_with_two(argv, capsys):
    with pytest.raises(SystemExit) as stop:
        main(argv)

    assert stop.value.code == 2
    assert "usage: latentviews" in capsys.readouterr().err


def test_the_installed_command_runs(tmp_path):
    command = Path(sys.executable).with_name("latentviews")

    done = subprocess.run([command, "--version"], capture_output=True, text=True, cwd=tmp_path, check=True)

    assert done.stdout == f"latentviews {__version__}\n"


def test_the_room_runs_as_the_package_does():
    asked = [[sys.executable, "-m", module, "--version"] for module in ("latentviews", "latentviews.cli")]
    first, second = (subprocess.run(argv, capture_output=True, text=True, check=True).stdout for argv in asked)

    assert first == second
    assert first
