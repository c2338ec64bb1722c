"""Many classes and wide tables: told apart by colour and shape, isolated by a click, scrolled with a cue."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from latentviews import MultiViewMixture, Sieve
from latentviews.comparison.pairs import leading_features, pairwise_tests
from latentviews.core.kernels.real import Gaussian
from latentviews.core.view_names import short_name
from latentviews.datasets import make_multiview
from latentviews.report.contents import report_contents
from latentviews.report.figures import class_swatch, sizes_figure
from latentviews.report.page import page

COLUMNS = ["height", "weight", "left arm", "right arm", "pulse", "pressure"]


@pytest.fixture(scope="module")
def contents():
    X = make_multiview(400, 2, n_views=6, random_state=0).X
    views = {"size": ["height", "weight"], "arms": ["left arm", "right arm"], "blood": ["pulse", "pressure"]}
    frame = pd.DataFrame(X, columns=COLUMNS)
    model = MultiViewMixture(2, views=views, polish=Sieve(factors=(2.0,), max_iter=5), random_state=0).fit(frame)
    options = {"columns": None, "source": None, "title": None, "saved": None, "random_state": 0}
    return report_contents(model, frame, **options)


def test_twenty_classes_have_twenty_marks(contents):
    style = page(replace(contents, counts=np.ones(2, dtype=int)))
    marks = [class_swatch(h) for h in range(20)]
    shapes = [re.search(r"shape\d", mark)[0] for mark in marks]
    colours = [h % 7 for h in range(20)]  # as `.h0{--c:var(--p0)}` says, tested with the style below

    assert ".h1{--c:var(--p1)}" in style
    assert len(set(zip(colours, shapes, strict=True))) == 20


def test_bars_are_as_long_as_classes_are_large_and_leave_room_for_their_names(contents):
    picture = sizes_figure(contents)
    bars = re.findall(r'<rect x="(\d+)" y="\d+" width="([\d.]+)"', picture)
    lengths = np.array([float(length) for _, length in bars])

    np.testing.assert_allclose(lengths / lengths.sum(), contents.sizes.weights, atol=1e-3)
    assert {start for start, _ in bars} == {"64"}  # "class 19" in bold ends at 62


def test_tables_carry_the_marks_of_the_classes(contents):
    html = page(contents)

    for table in re.findall(r"<table.*?</table>", html, flags=re.DOTALL):
        for h in re.findall(r">(?:<i[^>]*></i>)?class (\d)</th>", table):
            assert f'<i class="swatch h{h} shape0"></i>class {h}</th>' in table
    assert html.count("</i>class 1</th>") >= 3  # sizes, what is typical, certainty, dependence


def test_the_shades_of_a_table_are_said_in_words_that_hold_in_the_dark(contents):
    html = page(contents)

    assert "the stronger the colour, the higher" in html
    assert "darker" not in html


def test_views_go_by_their_own_names(contents):
    assert contents.view_names == ["size", "arms", "blood"]
    assert "View 2, <bdi>blood</bdi>: <bdi>pulse + pressure</bdi>" in page(contents)


def test_views_of_many_columns_have_short_names():
    assert short_name(["a", "b"]) == "a+b"
    assert short_name([f"mean {c}" for c in "abcdefghij"]) == "mean a+9 more"
    assert (
        short_name(["a name of forty characters, which is long", "b"])
        == "a name of forty characters, which is long+1 more"
    )
    assert short_name(["a name of more than forty characters, for one column"]) == (
        "a name of more than forty characters, for one column"
    )


def test_all_pairs_at_once_are_tested_as_each_alone(rng):
    """The statistic of a pair is HSIC of its own features; null draws are of the same law."""
    x = rng.normal(size=(300, 3))
    x[:, 2] += x[:, 0]
    kernel = Gaussian(1.0)
    features = [leading_features(x[:, [t]], kernel, np.random.default_rng(t)) for t in range(3)]

    found = pairwise_tests(features, 99, rng)

    for (s, t), test in found.items():
        grams = [kernel.gram(x[:, [v]], x[:, [v]]) for v in (s, t)]
        first, second = (g - g.mean(axis=0) - g.mean(axis=1)[:, None] + g.mean() for g in grams)
        assert test.statistic == pytest.approx(np.sum(first * second) / 300**2, rel=5e-3)
        assert (test.pvalue <= 0.01) == ((s, t) == (0, 2))
