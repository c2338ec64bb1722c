"""Every script of the gallery runs, draws, and is short."""

import os
import runpy
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("plot_*.py"))
RECORDED = [script for script in EXAMPLES if '"LATENTVIEWS_DATA"' in script.read_text()]


@pytest.fixture(autouse=True)
def _offscreen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    plt.close("all")
    yield
    plt.close("all")


def drawn_by(script):
    """The axes of a script's pictures that show something."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
        runpy.run_path(str(script))
    return [axes for number in plt.get_fignums() for axes in plt.figure(number).axes if axes.has_data()]


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_an_example_runs_and_draws(script, monkeypatch, capsys):
    monkeypatch.delenv("LATENTVIEWS_DATA", raising=False)  # made-up data: quick, and the same everywhere

    assert drawn_by(script)
    assert capsys.readouterr().out


if "LATENTVIEWS_DATA" in os.environ:  # as .ci/run says; others need not have recorded data

    @pytest.mark.parametrize("script", RECORDED, ids=lambda script: script.stem)
    def test_an_example_runs_on_recorded_data(script, capsys):
        assert drawn_by(script)
        assert capsys.readouterr().out


def test_the_gallery_has_fifteen_short_examples():
    assert len(EXAMPLES) >= 15
    longest = {"plot_accelerometer": 110, "plot_depth": 150}  # from a raw file to a forecast; a pair of images is made
    long = [path.name for path in EXAMPLES if path.read_text().count("\n") > longest.get(path.stem, 60)]
    assert long == []
