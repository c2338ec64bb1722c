"""A report says what the model says, in one safe file."""

import base64
import copy
import hashlib
import itertools
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from latentviews import Delta, Gaussian, MultiViewMixture, VonMises
from latentviews.core.kernels.spaces import Discrete, Real
from latentviews.datasets import make_multiview
from latentviews.diagnosis import checked_rows as checked_rows_module
from latentviews.diagnosis.checked_rows import read_rows
from latentviews.plot.view_densities import row_densities
from latentviews.report import contents as contents_module
from latentviews.report import sizes as sizes_module
from latentviews.report import write_report
from latentviews.report.contents import AXES, POINTS, VALUES, Wording, report_contents
from latentviews.report.markup import code_spans, join, script_json, tag
from latentviews.report.page import page
from latentviews.report.sections import _telling_axes
from latentviews.report.sizes import REFITS, fixed_errors
from latentviews.report.svg import Scale, contours, number, round_numbers, rounded

HOSTILE = (
    "</script><script>document.title='owned'</script>",
    "<!-- <img src=x onerror=alert(1)>",
    "\"'><svg onload=alert(1)> & \u2028 \u202e ]]> `code",
)
PLAIN = ("height", "mass", "age")
CSS = (Path(contents_module.__file__).parent / "report.css").read_text()


@pytest.fixture(scope="module")
def data():
    X = make_multiview(800, 3, design="gamma", random_state=0).X
    X[::50, 1] = np.nan
    return X


@pytest.fixture(scope="module")
def model(data):
    return MultiViewMixture(3, random_state=0).fit(data)


def gathered(model, X, **options):
    defaults = {"columns": None, "source": None, "title": None, "saved": None, "random_state": 0}
    return report_contents(model, X, **{**defaults, **options})


@pytest.fixture(scope="module")
def contents(model, data):
    return gathered(model, data, columns=PLAIN, source="people.csv")


@pytest.fixture(scope="module")
def text(contents):
    return page(contents)


@pytest.fixture(scope="module")
def mixed():
    """Angles, codes, a plane, a torus, three columns and two of codes in one view each, with their data."""
    rng = np.random.default_rng(0)
    y = rng.choice(2, size=300, p=[0.6, 0.4])
    angles = rng.vonmises(np.array([-2.0, 1.0])[y, None], 5, size=(300, 3))
    codes = (rng.random((300, 3)) < np.array([0.1, 0.8])[y, None]).astype(float)
    numbers = rng.normal(np.array([0.0, 4.0])[y, None], 1, size=(300, 5))
    X = np.concatenate([angles, codes, numbers], axis=1)
    views = [[0], [1, 2], [3], [4, 5], [6, 7], [8, 9, 10]]
    kernel = [VonMises("median"), VonMises("median"), Delta(), Delta(), Gaussian("median"), Gaussian("median")]
    return MultiViewMixture(2, views=views, kernel=kernel, random_state=0).fit(X), X


class Outline(HTMLParser):
    """The elements of a page, their attributes and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, name, attrs):
        self.tags.append(name)
        self.attributes.append(dict(attrs))
        self.open.append(name)

    def handle_endtag(self, name):
        while self.open and self.open.pop() != name:
            pass

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def of(self, *names):
        return [attrs for name, attrs in zip(self.tags, self.attributes, strict=True) if name in names]


# ------------------------------------------------------------------------------------------------- safe, and whole


@pytest.mark.parametrize("hostile", HOSTILE)
def test_names_stay_text_wherever_they_stand(hostile):
    parsed = Outline(tag("p", hostile, title=hostile, data_x=hostile))
    assert parsed.tags == ["p"]
    assert parsed.attributes == [{"title": hostile, "data-x": hostile}]
    assert "".join(data for _, data in parsed.texts) == hostile


@pytest.mark.parametrize("hostile", HOSTILE)
def test_json_in_a_script_ends_no_script_and_comes_back_whole(hostile):
    text = script_json({hostile: [hostile, 1.5]})
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == {hostile: [hostile, 1.5]}


def test_json_with_nan_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        script_json([np.nan])


def test_backticks_make_code_only_in_pairs():
    assert code_spans("see `a<b`.") == "see <code>a&lt;b</code>."
    assert code_spans("a ` b") == "a ` b"


def test_hostile_names_change_no_element_of_the_page(model, data, text):
    hostile = page(gathered(model, data, columns=HOSTILE, source=HOSTILE[0], title=HOSTILE[1], saved=HOSTILE[2]))
    plain, found = Outline(text), Outline(hostile)
    assert [name for name in found.tags if name not in {"code", "path"}] == [
        name for name in plain.tags if name not in {"code", "path"}
    ]
    assert not any(key.startswith("on") for attributes in found.attributes for key in attributes)
    assert all(any(hostile in data for _, data in found.texts) for hostile in HOSTILE)
    described = json.loads(next(data for name, data in found.texts if name == "script" and data.startswith("{")))
    assert [column["name"] for column in described["columns"]] == list(HOSTILE)


def test_the_page_asks_for_nothing_and_runs_one_script(text):
    parsed = Outline(text)
    assert not re.search(r"(https?:)?//[a-z]|url\(|@import|\bsrc=", text.split('id="data"')[0])
    policy = next(a["content"] for a in parsed.of("meta") if a.get("http-equiv") == "Content-Security-Policy")
    script = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert len(script) == 1
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}'" in policy
    assert set(re.findall(r'href="(.)', text)) == {"#"}


def test_everything_drawn_has_words_and_every_control_a_label(text):
    parsed = Outline(text)
    assert parsed.of("html")[0]["lang"] == "en"
    assert all(len(figure["aria-label"]) > 10 and figure["role"] == "img" for figure in parsed.of("svg", "canvas"))
    assert all(cell["scope"] in {"col", "row"} for cell in parsed.of("th"))
    assert len(parsed.of("label")) == len(parsed.of("input", "select"))
    ids = [attributes["id"] for attributes in parsed.attributes if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [link["href"][1:] for link in parsed.of("a")]
    assert set(links) <= set(ids)


def test_a_report_is_written_aside_and_replaces_the_old_one_only_when_whole(
    model, data, contents, tmp_path, monkeypatch
):
    path = tmp_path / "report.html"
    monkeypatch.setattr("latentviews.report.report_contents", lambda *_, **__: contents)
    assert write_report(model, data, path) == path
    before = path.read_text(encoding="utf-8")
    assert before.endswith("</html>\n")

    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("no room")))
    with pytest.raises(OSError, match="no room"):
        write_report(model, data, path, title="new")

    assert path.read_text(encoding="utf-8") == before
    assert list(tmp_path.iterdir()) == [path]


def test_names_that_no_encoding_knows_are_written(model, data, contents, tmp_path, monkeypatch):
    odd = replace(contents, title="a\ud800", source="b\x00")
    monkeypatch.setattr("latentviews.report.report_contents", lambda *_, **__: odd)
    path = write_report(model, data, tmp_path / "r.html")
    assert "<!DOCTYPE html>" in path.read_text(encoding="utf-8")


def test_what_cannot_be_reported_is_refused_in_a_sentence(model, data, tmp_path):
    with pytest.raises(NotFittedError):
        write_report(MultiViewMixture(), data, tmp_path / "r.html")
    with pytest.raises(IsADirectoryError, match="is a directory; name a file in it"):
        write_report(model, data, tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        write_report(model, data, tmp_path / "none" / "r.html")
    with pytest.raises(ValueError, match="columns must name every column of X, 3; got 2"):
        write_report(model, data, tmp_path / "r.html", columns=["a", "b"])
    with pytest.raises(ValueError, match="2 features"):
        write_report(model, data[:, :2], tmp_path / "r.html")
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------------------------ the numbers


def test_the_report_counts_what_the_model_predicts(contents, model, data):
    labels = model.predict(data)
    np.testing.assert_array_equal(contents.counts, np.bincount(labels, minlength=3))
    assert (contents.n_rows, contents.n_incomplete) == (800, 16)
    assert [column.missing for column in contents.columns] == [0, 16, 0]
    np.testing.assert_allclose(contents.columns[0].typical[1], np.quantile(data[labels == 1, 0], [0.25, 0.5, 0.75]))
    assert contents.view_names == list(PLAIN)
    assert contents.diagnosis.view_names == PLAIN


def test_certainty_parts_every_class(contents, model, data):
    largest, labels = model.predict_proba(data).max(axis=1), model.predict(data)
    np.testing.assert_allclose(contents.certainty.sum(axis=1), 1.0)
    assert contents.certainty[2, 0] == pytest.approx(np.mean(largest[labels == 2] >= 0.99))
    assert contents.certainty[2, 3] == pytest.approx(np.mean(largest[labels == 2] < 0.8))


def test_the_page_shows_sizes_settings_and_how_to_load(text, contents):
    shown = " ".join(data for _, data in Outline(text).texts)
    for h, weight in enumerate(contents.sizes.weights):
        assert f"class {h}" in shown
        assert f"{100 * weight:.1f}\xa0%" in shown
    for part in ("people.csv", "800", "latentviews.load(", "n_components=3", "random_state=0", "Song, Anandkumar"):
        assert part in shown


def test_intervals_are_those_of_the_bootstrap(model, data, contents):
    sizes = contents.sizes
    lower, upper = model.bootstrap(data, 100, random_state=1).interval()
    assert np.all((sizes.lower <= sizes.weights) & (sizes.weights <= sizes.upper))
    ratio = (sizes.upper - sizes.lower) / (upper - lower)
    # a standard error from 25 draws errs by 1 / sqrt(2 * 24), a percentile interval from 100 by about as much
    assert np.all(abs(np.log(ratio)) < 0.6)
    assert str(REFITS) in sizes.method


def test_intervals_without_a_polish_are_multinomial_where_classes_are_certain():
    weights = np.array([0.5, 0.3, 0.2])
    posteriors = np.repeat(np.eye(3), [500, 300, 200], axis=0)
    errors = fixed_errors(weights, posteriors)
    np.testing.assert_allclose(errors, np.sqrt(weights * (1 - weights)))


def test_a_spectral_fit_and_a_single_class_are_reported(data):
    X = data[~np.isnan(data).any(axis=1)]
    spectral = gathered(MultiViewMixture(3, polish=None, random_state=0).fit(X), X)
    assert "asymptotic" in spectral.sizes.method
    assert "somewhat too narrow" in page(spectral)
    one = gathered(MultiViewMixture(1, random_state=0).fit(X), X)
    np.testing.assert_allclose([one.sizes.lower, one.sizes.upper], 1.0)
    assert "100\xa0%" in page(one)


def test_noise_is_counted_apart(model, data):
    class Noisy(MultiViewMixture):
        def predict_proba(self, X):
            posteriors = super().predict_proba(X)
            posteriors[:40] *= 0.1
            return posteriors

    noisy = copy.copy(model)
    noisy.__class__ = Noisy
    found = gathered(noisy, data)
    np.testing.assert_array_equal(found.counts, np.bincount(model.predict(data)[40:], minlength=3))
    assert found.n_noise == np.sum(found.points.labels == 3) == 40
    np.testing.assert_allclose(found.certainty.sum(axis=1), 1.0)
    assert "3 classes and noise in 800 rows" in page(found)


def test_a_class_without_rows_is_held_against_the_fit(contents):
    hidden = replace(contents, diagnosis=replace(contents.diagnosis, counts=np.array([500, 300, 0])))
    assert len(hidden.findings) == len(contents.findings) + 1
    assert "No row is most probably in class 2" in page(hidden)
    assert "Read it with care" in page(hidden)


def test_more_classes_than_fit_are_refused(model, data, monkeypatch):
    monkeypatch.setattr(contents_module, "REPORTED_CLASSES", 2)
    with pytest.raises(ValueError, match="at most 2 classes; the model has 3"):
        gathered(model, data)


def test_a_verdict_names_what_failed(model, data, contents):
    assert ("Nothing speaks against it" in page(contents)) == all(f.trusted for f in contents.findings)
    tied = np.column_stack([data[:, 0], data[:, 0] + 1e-2 * np.random.default_rng(0).normal(size=800), data[:, 2]])
    bad = gathered(model, tied, columns=PLAIN)
    against = [finding.text for finding in bad.diagnosis.findings if not finding.trusted]
    shown = page(bad)
    assert "Read it with care" in shown
    assert any("height and mass depend on each other inside class" in text for text in against)
    assert "depend on each other inside class" in shown


# --------------------------------------------------------------------------------------------------------- the rows


def test_points_are_the_rows_to_one_part_in_65534(contents, data):
    points = contents.points
    low, high = np.array(points.scales).T
    back = np.where(points.values == 65535, np.nan, low + points.values / 65534 * (high - low))
    np.testing.assert_allclose(back, data, atol=float((high - low).max()) / 65534)


def test_the_columns_shown_first_part_the_classes_however_narrow_these_are(contents):
    typical = np.array([[-5e-324, -1.0, 5e-324], [-5e-324, 0.0, 5e-324], [-5e-324, 1.0, 5e-324]])
    narrow = replace(contents, columns=[*contents.columns[:2], contents.columns[2]._replace(typical=typical)])

    assert _telling_axes(narrow)[0] == 2


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_are_found_by_name_in_any_order(frame, data):
    named = pd.DataFrame(data, columns=PLAIN)
    model = MultiViewMixture(3, random_state=0).fit(named)
    shuffled = {"age": data[:, 2], "note": data[:, 1] * 0, "mass": data[:, 1], "height": data[:, 0]}
    for X, columns in ((frame(shuffled), None), (np.stack(list(shuffled.values()), axis=1), list(shuffled))):
        plain, table, names = read_rows(model, X, columns)
        np.testing.assert_array_equal(table, data)
        assert names == list(PLAIN)
        np.testing.assert_array_equal(plain.predict(table), model.predict(named))


def test_a_missing_column_is_named(data, tmp_path):
    model = MultiViewMixture(3, random_state=0).fit(pd.DataFrame(data, columns=PLAIN))
    with pytest.raises(ValueError, match=r"fitted to columns \['age'\] that the rows lack"):
        write_report(model, pd.DataFrame(data[:, :2], columns=PLAIN[:2]), tmp_path / "r.html")


def test_a_model_without_names_takes_those_of_the_frame(model, data, recwarn):
    plain, table, names = read_rows(model, pd.DataFrame(data, columns=PLAIN), None)
    assert names == list(PLAIN)
    np.testing.assert_array_equal(plain.predict(table), model.predict(data))
    assert not [warning for warning in recwarn if "feature names" in str(warning.message)]
    assert not hasattr(model, "feature_names_in_")


def test_many_rows_and_columns_stay_few_points():
    rng = np.random.default_rng(0)

    class Wide:
        views_ = tuple([j] for j in range(100))

    columns = [contents_module.Column("c", j, Real(), 0, np.zeros((2, 3))) for j in range(100)]
    rows, posteriors = rng.normal(size=(30_000, 100)), rng.dirichlet([1, 1], size=30_000)
    points = contents_module._points(columns, Wide(), rows, posteriors, rng)
    assert points.values.shape[1] == AXES
    assert points.values.size <= VALUES
    Wide.views_ = Wide.views_[:3]
    assert contents_module._points(columns[:3], Wide(), rows, posteriors, rng).values.shape == (POINTS, 3)


def test_a_large_sample_is_said_to_be_one(model, data, text, monkeypatch):
    small = len(text)
    many = np.tile(data, (8, 1))
    monkeypatch.setattr(checked_rows_module, "ROWS", 4000)
    monkeypatch.setattr(sizes_module, "REFIT_ROWS", 500)
    found = gathered(model, many)
    text = page(found)
    assert found.n_classified == 4000
    assert "Rows were counted in a sample of 4,000" in text
    assert f"A sample of 4,000 of {len(many):,} rows" in text
    assert len(text) - small < 11 * 4000  # 6 bytes of columns, 2 of class and certainty, in base64


# -------------------------------------------------------------------------------------------------------- the figures


def test_views_of_every_kind_are_drawn(mixed):
    contents = gathered(*mixed)
    assert [len(panel.ticks) for panel in contents.panels] == [1, 2, 1, 1, 1, 2, 1, 1, 1]
    assert contents.panel_views == [0, 1, 2, 3, 3, 4, 5, 5, 5]
    assert [panel.discrete for panel in contents.panels] == [False, False, True, True, True, False, False, False, False]
    assert [column.kind for column in contents.columns] == ["angle"] * 3 + ["code"] * 3 + ["number"] * 5
    for panel in contents.panels:
        steps = [1.0 if panel.discrete else ticks[1] - ticks[0] for ticks in panel.ticks]
        mass = panel.densities.sum(axis=tuple(range(len(steps)))) * np.prod(steps)
        np.testing.assert_allclose(mass, 1.0, atol=0.05)
    parsed = Outline(page(contents))
    assert len(parsed.of("svg")) == len(contents.panels) + 3


def test_densities_from_rows_are_weighted_by_posteriors(rng):
    y = rng.choice(2, size=20_000, p=[0.7, 0.3])
    rows = rng.normal(3.0 * y[:, None], 1.0)
    view = row_densities(rows, np.eye(2)[y], "x", Real())
    for h in range(2):
        true = np.exp(-0.5 * (view.ticks[0] - 3 * h) ** 2) / np.sqrt(2 * np.pi)
        assert np.max(abs(view.densities[:, h] - true)) < 0.03  # a few times the error of a density from 6,000 rows
    codes = y[:, None].astype(float)
    shares = row_densities(codes, np.full((len(y), 2), 0.5), "x", Discrete())
    np.testing.assert_allclose(shares.densities[:, 0], np.bincount(y) / len(y))


def test_columns_of_rounded_values_are_drawn_smoothly(rng):
    rows = np.round(4 * rng.normal(size=(20_000, 1)))
    view = row_densities(rows, np.ones((20_000, 1)), "x", Real())
    curve = view.densities[:, 0]
    assert np.sum((curve[1:-1] > curve[:-2]) & (curve[1:-1] > curve[2:])) == 1


def test_contours_of_a_cone_are_circles():
    x, y = np.meshgrid(np.arange(41), np.arange(51), indexing="ij")
    (loop,) = contours(30 - np.hypot(x - 20, y - 25), 18.0)
    np.testing.assert_allclose(np.hypot(*(loop - [20, 25]).T), 12.0, atol=0.02)
    steps = np.linalg.norm(loop - np.roll(loop, 1, axis=0), axis=1)
    assert steps.max() < 1.5  # neighbours follow each other all round
    area = 0.5 * abs(np.sum(loop[:, 0] * np.roll(loop[:, 1], 1) - loop[:, 1] * np.roll(loop[:, 0], 1)))
    assert area == pytest.approx(np.pi * 144, rel=0.01)


def test_contours_end_at_the_edge_and_part_two_peaks():
    x, y = np.meshgrid(np.arange(30), np.arange(30), indexing="ij")
    corner = contours(np.exp(-(x**2 + y**2) / 100), 0.5)
    assert len(corner) == 1
    assert corner[0].min() == 0
    peaks = np.exp(-((x - 6) ** 2 + (y - 6) ** 2) / 10) + np.exp(-((x - 22) ** 2 + (y - 22) ** 2) / 10)
    assert len(contours(peaks, 0.5)) == 2


@pytest.mark.parametrize("centre", [0.0, 1.0])
def test_a_saddle_is_joined_as_its_centre_says(centre):
    table = np.array([[1.0, 0.0], [0.0, 1.0]]) + 0.3 * (2 * centre - 1)
    assert len(contours(table, 0.5)) == (1 if centre else 2)


def test_ticks_are_round_and_inside():
    for low, high in itertools.product([-3.7, 0.0, 1e-4], [0.013, 12.0, 98_765.0]):
        ticks = round_numbers(low, high)
        assert 2 <= len(ticks) <= 8
        assert low - 1e-9 * high <= ticks[0]
        assert ticks[-1] <= high + 1e-9 * high
    assert round_numbers(2.0, 2.0) == [2.0]


def test_numbers_are_short():
    assert [number(v) for v in (0.0, -1.5, 123_456.0, 2.5e6, np.nan)] == ["0", "−1.5", "123.5k", "2.5M", "–"]
    assert [rounded(v, s) for v, s in ((-0.01, 1.0), (454.5, 220.0), (0.012345, 0.01))] == ["0.0", "454", "0.012"]
    assert Scale(0, 10, 100, 0)(2.5) == 75


# ---------------------------------------------------------------------------------------------------------- colours

# Machado, Oliveira & Fernandes (2009), severity 1
VISION = {
    "all": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour):
    digits = colour.lstrip("#")
    digits = digits if len(digits) == 6 else "".join(2 * d for d in digits)
    c = np.array([int(digits[i : i + 2], 16) for i in (0, 2, 4)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
    xyz = np.array(to_xyz) @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(first, second):
    low, high = sorted(linear(c) @ [0.2126, 0.7152, 0.0722] for c in (first, second))
    return (high + 0.05) / (low + 0.05)


def scheme(which):
    block = re.findall(r":root(?::not\(\.paper\))?\{(.*?)\}", CSS, flags=re.DOTALL)[which]
    return dict(re.findall(r"--([\w-]+):(#\w+)", block))


@pytest.mark.parametrize("which", [0, 1], ids=["light", "dark"])
def test_class_colours_are_told_apart_with_any_colour_vision_and_on_the_page(which):
    colours = scheme(which)
    classes = [colours[f"p{i}"] for i in range(7)]
    assert min(contrast(colour, colours["panel"]) for colour in classes) >= 3  # WCAG 2.1, 1.4.11
    for vision in VISION.values():
        seen = [lab(np.array(vision) @ linear(colour)) for colour in classes]
        assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 12


@pytest.mark.parametrize("which", [0, 1], ids=["light", "dark"])
def test_text_has_contrast(which):
    colours = scheme(which)
    pairs = [("ink", "page"), ("ink", "care-back"), ("quiet", "panel"), ("quiet", "page"), ("accent", "panel")]
    pairs += [("good", "good-back"), ("care", "care-back"), ("panel", "good"), ("panel", "care")]
    for text, back in pairs:
        assert contrast(colours[text], colours[back]) >= 4.5, (text, back)  # WCAG 2.1, 1.4.3


def test_children_that_are_none_are_left_out():
    assert join(["a", None, tag("br")]) == "a<br>"


def test_a_report_on_another_model_is_refused(tmp_path, rng):
    with pytest.raises(
        TypeError, match=r"write_report takes a .* or CommunityModel; got a StandardScaler, of which its method"
    ):
        write_report(StandardScaler().fit(rng.normal(size=(9, 3))), None, tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_a_report_speaks_the_words_of_whoever_asked_for_it(contents):
    wording = Wording(lambda text: text.replace("classes", "KINDS"), {"n_components": "-k"}, "latentviews fit it -k 2")

    plain, spoken = (page(one) for one in (contents, replace(contents, wording=wording)))

    for words, here, there in (
        (">-k<", False, True),
        (">n_components<", True, False),
        ("latentviews fit it -k 2", False, True),
        ("MultiViewMixture(", True, False),
        ("The number of KINDS", False, True),
    ):
        assert (words in plain, words in spoken) == (here, there), words
