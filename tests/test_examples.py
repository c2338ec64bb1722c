"""Every script of the gallery runs, draws, and is short."""

import runpy
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("plot_*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_an_example_runs_and_draws(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LATENTVIEWS_DATA", raising=False)  # made-up data: quick, and the same everywhere
    mpl.use("Agg")
    plt.close("all")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
        runpy.run_path(str(script))

    drawn = [axes for number in plt.get_fignums() for axes in plt.figure(number).axes if axes.has_data()]
    assert drawn
    assert capsys.readouterr().out
    plt.close("all")


def test_the_gallery_has_fifteen_short_examples():
    assert len(EXAMPLES) >= 15
    longest = {"plot_accelerometer": 110, "plot_depth": 150}  # from a raw file to a forecast; a pair of images is made
    long = [path.name for path in EXAMPLES if path.read_text().count("\n") > longest.get(path.stem, 60)]
    assert long == []
