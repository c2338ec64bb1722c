"""The fuzzers: a round of each, and what they call a fault."""

import inspect
import os

import numpy as np
import pytest

import catalogue
import latentviews
from fuzz import damage, fits
from fuzz.driver import drive
from fuzz.functions import FUNCTIONS
from fuzz.measures import MEASURES
from fuzz.outputs import OUTPUTS
from fuzz.pictures import PICTURES
from fuzz.verdicts import Judge


def test_the_fuzzer_of_fits_finds_nothing_in_a_round(capsys):
    names = list(fits.families())

    tally = drive("fits", 0, [(name, 0) for name in names], minutes=30)

    assert tally.findings == [], capsys.readouterr().out
    assert tally.clean.total() == len(names)


def test_the_fuzzer_of_files_finds_nothing_in_a_round(capsys):
    cases = [(name, number) for name in damage.families() for number in range(3)]

    tally = drive("files", 0, cases, minutes=30)

    assert tally.findings == [], capsys.readouterr().out
    assert tally.clean.total() == len(cases)


def test_every_estimator_of_the_catalogue_is_in_the_fuzzer():
    models = catalogue.MODELS + catalogue.VARIANTS + catalogue.OF_OTHER_ROWS

    assert {type(model.estimator).__name__ for model in models} <= set(fits.families())


def test_every_public_function_is_in_the_fuzzer():
    rooms = (latentviews, latentviews.metrics, latentviews.datasets, latentviews.io, latentviews.report)
    functions = {name for room in rooms for name in room.__all__ if inspect.isfunction(getattr(room, name))}

    assert functions - {"write_contents"} == {*FUNCTIONS, *MEASURES, *OUTPUTS}  # write_report calls that one


def test_every_display_is_in_the_fuzzer():
    displays = {name for name in latentviews.plot.__all__ if name.endswith("Display")}

    assert displays == set(PICTURES)


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (lambda: np.log(np.zeros(1)), "warns: divide by zero"),
        (lambda: np.zeros(3).reshape(2, 2), "ValueError: cannot reshape"),
        (lambda: os.write(2, b""), None),
        (lambda: latentviews.FourierFeatures(n_frequencies=0).fit(np.zeros((3, 2))), None),
    ],
    ids=["warning", "foreign error", "nothing", "sentence of ours"],
)
def test_the_judge_knows_a_fault(function, fault):
    judge = Judge()

    judge.call("it", function)

    assert bool(judge.faults) == (fault is not None)
    assert fault is None or fault in judge.faults[0]


def test_the_judge_stops_what_does_not_end():
    judge = Judge(seconds=0.2)

    judge.call("it", lambda: [None for _ in iter(int, 1)])

    assert "it takes more than 0.2 s" in judge.faults[0]


def test_wrong_numbers_are_faults():
    faults = Judge().faults

    faults.numbers("a", [1.0, np.nan])
    faults.numbers("b", [np.inf])
    faults.numbers("c", [-np.inf], low=True)
    faults.shares("d", [[1.0, 1.0]])
    faults.shares("e", [[0.5, 0.4]], at_most=True)

    assert faults == ["NaN in a", "inf in b", "d sums to 2 to 2"]


def test_a_reader_that_writes_beside_a_file_or_takes_much_memory_is_at_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(damage, "MEGABYTES", -1)  # the peak of this process may be of an earlier test
    judge = Judge()

    with damage._watched(judge, tmp_path):
        (tmp_path / "outside").touch()

    assert "wrote or removed ['outside']" in judge.faults[0]
    assert "MB" in judge.faults[1]
