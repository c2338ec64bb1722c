"""Reports and diagnoses of views of several kinds: numbers beside codes, angles, and objects without density."""

import numpy as np
import pandas as pd
import pytest

from latentviews import Delta, Gaussian, MultiViewMixture, Precomputed, Sieve, VonMises, cli, diagnose, save
from latentviews.report import write_report

QUICK = Sieve(factors=(2.0,), max_iter=20)
VIEWS = {"body": ["size", "alive"], "way": ["kind", "turn"], "mass": ["weight"]}


@pytest.fixture(scope="module")
def frame():
    """Numbers, flags, text and angles of two classes."""
    rng = np.random.default_rng(0)
    y = rng.choice(2, size=200, p=[0.6, 0.4])
    return pd.DataFrame(
        {
            "size": rng.normal(size=200) + 3 * y,
            "alive": rng.random(200) < np.where(y == 1, 0.9, 0.1),
            "kind": np.where(rng.random(200) < 0.8, np.where(y == 1, "oak", "elm"), "fir"),
            "turn": rng.vonmises(3.0 * y, 4.0),
            "weight": rng.normal(size=200) - 3 * y,
        }
    )


@pytest.fixture(scope="module")
def mixed(frame):
    """A model whose views have columns of several kinds, some by name and some by dtype."""
    kernel = [None, Delta().on(["kind"]) * VonMises().on(["turn"]), None]
    return MultiViewMixture(2, views=VIEWS, kernel=kernel, polish=QUICK, random_state=0).fit(frame)


def test_a_report_on_mixed_views_names_the_kinds_of_their_columns(mixed, frame, tmp_path):
    write_report(mixed, frame, tmp_path / "mixed.html", random_state=0)
    page = (tmp_path / "mixed.html").read_text()

    for kinds in ("numbers and codes", "codes and angles", ">numbers<"):
        assert kinds in page
    assert ">nan<" not in page.lower()


def test_the_command_line_takes_a_saved_model_of_mixed_views(frame, tmp_path, capsys):
    coded = frame.assign(alive=frame["alive"].astype(int), kind=frame["kind"].map({"elm": 0, "fir": 1, "oak": 2}))
    kernel = [Gaussian().on(["size"]) * Delta().on(["alive"]), Delta().on(["kind"]) * VonMises().on(["turn"]), None]
    model = MultiViewMixture(2, views=VIEWS, kernel=kernel, polish=QUICK, random_state=0).fit(coded)
    save(model, tmp_path / "mixed.lv")
    coded.to_csv(tmp_path / "rows.csv", index=False)

    status = cli.main(
        ["predict", *(str(tmp_path / name) for name in ("mixed.lv", "rows.csv")), "--out", str(tmp_path / "o.csv")]
    )

    assert status == 0, capsys.readouterr().err
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "o.csv")["class"], model.predict(coded))


def test_objects_have_a_report_and_a_diagnosis_without_densities(frame, tmp_path):
    gram = np.exp(-0.5 * np.subtract.outer(frame["size"].to_numpy(), frame["size"].to_numpy()) ** 2)
    weights = np.exp(-0.5 * np.subtract.outer(frame["weight"].to_numpy(), frame["weight"].to_numpy()) ** 2)
    table = np.column_stack([np.arange(200.0), np.arange(200.0), np.cos(frame["turn"])])
    kernels = [Precomputed(gram), Precomputed(weights), None]
    model = MultiViewMixture(2, kernel=kernels, polish=None, random_state=0).fit(table)

    write_report(model, table, tmp_path / "objects.html", random_state=0)
    page = (tmp_path / "objects.html").read_text()
    found = diagnose(model, table, random_state=0)

    assert "have no densities" in page
    assert ">objects<" in page
    assert found.mass.shape == (1, 2)
    assert len(found.dependence.pairs) == 3
    assert np.isfinite(found.dependence.pvalue).all()


def test_a_model_of_objects_alone_has_a_report_too(frame, tmp_path):
    kernels = [
        Precomputed(np.exp(-0.5 * np.subtract.outer(x, x) ** 2))
        for x in (frame["size"].to_numpy(), frame["weight"].to_numpy(), 2 * np.cos(frame["turn"]).to_numpy())
    ]
    table = np.tile(np.arange(200.0)[:, None], (1, 3))
    model = MultiViewMixture(2, kernel=kernels, random_state=0).fit(table)

    write_report(model, table, tmp_path / "objects.html", random_state=0)

    assert not any("densities" in finding.text for finding in diagnose(model, table, random_state=0).findings)
    assert "have no densities" in (tmp_path / "objects.html").read_text()
