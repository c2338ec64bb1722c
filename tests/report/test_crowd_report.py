"""The report on a crowd: whole, safe, and defined for the smallest crowds."""

import re

import numpy as np
import pytest

from latentviews import CrowdLabels, LatentClass
from latentviews.report import write_crowd_report
from latentviews.report.crowd import PARTS, SPAMMER
from outline import Outline


def page(model, tmp_path, **options):
    return write_crowd_report(model, tmp_path / "crowd.html", **options).read_text()


@pytest.fixture(scope="module")
def crowd():
    """Good workers, one who always says yes, and one who swaps the labels."""
    rng, n = np.random.default_rng(0), 300
    truth = rng.integers(0, 2, n)
    said = np.where(rng.random((n, 6)) < 0.8, truth[:, None], 1 - truth[:, None])
    said[:, 4], said[:, 5] = 1, 1 - said[:, 5]
    task, worker = np.repeat(np.arange(n), 6), np.tile(["a", "b", "c", "d", "<i>spam", "swap"], n)
    return CrowdLabels().fit((task, worker, np.array(["no", "yes"])[said.ravel()]))


def test_the_page_is_well_formed_and_asks_nothing_of_any_network(crowd, tmp_path):
    text = page(crowd, tmp_path, source="answers.csv", saved="model.latentviews")
    outline = Outline()
    outline.feed(text)

    assert not outline.open
    assert set(PARTS) <= set(outline.ids)
    assert "script" not in outline.seen
    assert not re.search(r"(src|href)=\"(?!#)", text)
    assert "<i>spam" not in text


def test_spammers_are_told_by_their_shape_in_any_colours(crowd, tmp_path):
    text = page(crowd, tmp_path)

    assert "Crosses are workers who most probably answer without looking." in text
    assert text.count("m-4,-4l8,8m0,-8l-8,8") == np.sum(crowd.spammer_probability_ > SPAMMER) == 1


def test_the_page_says_who_is_a_spammer_and_who_swaps(crowd, tmp_path):
    text = page(crowd, tmp_path)

    assert "Most probably answering without looking: 1 worker" in text
    assert "Calling some class by a wrong label more often than by its own: 1 worker" in text
    assert f"{crowd.n_answers_.sum():,.0f} answers" in text


@pytest.mark.parametrize(
    "answers",
    [(["a"], ["w"], ["yes"]), (["a", "b"], ["w", "w"], ["yes", "no"]), ([1, 2, 3], [1, 2, 3], [0, None, 2])],
    ids=["one answer", "one worker", "a missing label"],
)
def test_the_smallest_crowds_have_a_report(answers, tmp_path):
    assert "The answer" in page(CrowdLabels().fit(answers), tmp_path)


def test_the_page_goes_to_a_file_in_a_folder_that_is_there(crowd, tmp_path):
    with pytest.raises(IsADirectoryError, match=r"A report cannot be written: .* is a directory"):
        write_crowd_report(crowd, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"A report cannot be written: there is no directory .*; make it first"):
        write_crowd_report(crowd, tmp_path / "none" / "crowd.html")
    with pytest.raises(ValueError, match="path must be the name of a file, which holds no null character"):
        write_crowd_report(crowd, "crowd\0.html")
    assert not list(tmp_path.iterdir())


def test_a_model_without_a_crowd_is_told(tmp_path):
    model = LatentClass(2, random_state=0).fit(np.random.default_rng(0).integers(2, size=(60, 3)))

    with pytest.raises(TypeError, match="write_crowd_report takes a fitted CrowdLabels; got a LatentClass"):
        write_crowd_report(model, tmp_path / "crowd.html")
