"""Reports on classes, topics and communities: whole, safe, and with the figures of the models."""

import re

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import latentviews
import latentviews.plot
from latentviews import CommunityModel, CrowdLabels, Delta, LatentClass, TopicModel
from latentviews.report import INSTEAD, write_report
from latentviews.report.figures import percent
from outline import Outline


@pytest.fixture(scope="module")
def answers():
    """Two kinds of rows, with a name and an answer that would be markup."""
    rng = np.random.default_rng(0)
    kind = rng.random(200) < 0.4
    said = np.where(rng.random((200, 4)) < np.where(kind, 0.9, 0.1)[:, None], "<b>yes", "no")
    return pd.DataFrame(said, columns=["<i>cough", "fever", "rash", "pain"]), kind


def text_of(model, X, tmp_path, **options):
    """The page, which must be whole and ask nothing of any network."""
    text = write_report(model, X, tmp_path / "report.html", **options).read_text()
    outline = Outline()
    outline.feed(text)
    assert not outline.open
    assert "script" not in outline.seen
    assert "answer" in outline.ids
    assert not re.search(r"(src|href)=\"(?!#)", text)
    assert not re.search(r"\bnan\b", re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL), re.IGNORECASE)
    return text


def test_classes_show_what_they_answer(answers, tmp_path):
    X, _ = answers
    model = LatentClass(2, n_starts=5, random_state=0).fit(X)

    text = text_of(model, X, tmp_path, source="clinic.csv")

    assert "<i>cough" not in text
    assert "<b>yes" not in text
    assert "2 classes in 200 rows" in text
    assert "clinic.csv" in text
    for share in (*model.weights_, *model.components_[1].ravel()):
        assert f"{100 * share:.1f}\xa0%" in text
    assert "Nothing speaks against it" in text


def test_classes_that_do_not_fit_are_told(answers, tmp_path):
    X, _ = answers
    wide = X.assign(again=X["fever"], extra=np.where(np.arange(200) % 3, "a", "b"))
    model = LatentClass(1).fit(wide)

    text = text_of(model, wide, tmp_path)

    assert "Read it with care" in text
    assert "Dependent inside classes, by residuals above 4: 10 pairs of items. Fit more classes" in text


def test_classes_of_one_row_and_shares_without_an_error_are_told(answers, tmp_path):
    X = answers[0].iloc[:60].assign(odd=["odd", *["even"] * 59])
    model = LatentClass(2, n_starts=2, random_state=0).fit(X)
    model.weights_, model.components_ = np.array([0.98, 0.02]), list(model.components_)
    for item, chances in enumerate(model.components_):
        chances[:] = np.array([[0.5, 0.5]]).T if item < 4 else np.array([[1.0, 0.0], [0.0, 1.0]])

    text = text_of(model, X, tmp_path)

    assert "Class 1 has 1 row that is most probably in it" in text
    assert "no standard error can be given there, which does not mean that the share is exact" in text


def test_classes_of_as_many_parameters_as_cells_have_no_p_value(answers, tmp_path):
    X = answers[0].iloc[:, :3]
    text = text_of(LatentClass(2, n_starts=5, random_state=0).fit(X), X, tmp_path)
    assert re.search(r"G² \(p-value\)</t[hd]><td[^>]*>[^<]*\(–\)", text)


def test_covariates_of_classes_are_in_the_report(answers, tmp_path):
    X, kind = answers
    age = pd.DataFrame({"age": kind + np.random.default_rng(1).normal(size=200)})
    model = LatentClass(2, n_starts=5, random_state=0).fit(X, covariates=age)

    text = text_of(model, X, tmp_path)

    assert "BIC" not in text  # which needs the covariates of the rows
    assert "Log-odds of every class against class 0" in text
    assert f"{model.regression_.coefficients[1, 1]:.4g}".replace("-", "−") in text


def test_topics_show_their_words(rng, tmp_path):
    topics = np.array([[4, 4, 2, 0, 0, 1], [0, 1, 0, 4, 4, 2.0]]) / 11
    counts = rng.multinomial(50, rng.dirichlet([0.4, 0.3], size=200) @ topics)
    model = TopicModel(2, 0.7, random_state=0).fit(counts)

    text = text_of(model, counts, tmp_path, columns=["goal", "team", "<u>law", "vote", "sun", "rain"])

    assert "2 parts in 200 documents" in text
    assert text.index("goal") < text.index("rain")
    assert "<u>law" not in text
    assert "α₀ is 0.7" in text


def test_a_concentration_that_documents_contradict_is_told(rng, tmp_path):
    topics = rng.dirichlet(np.full(40, 0.2), size=3)
    X = np.array([rng.multinomial(80, shares @ topics) for shares in rng.dirichlet(np.full(3, 3.0), size=200)])
    model = TopicModel(3, random_state=0).fit(X)

    assert "α₀ and the documents disagree" not in text_of(model, X, tmp_path)
    model.concentration_ = 0.07
    text = text_of(model, X, tmp_path)

    assert "The concentration α₀ and the documents disagree: by 0.07 the largest share" in text
    assert "may be far off; shares rest on <code>prior_</code>" in text


def test_parts_of_draws_and_views_show_distributions(rng, tmp_path):
    shares = rng.dirichlet([0.4, 0.3, 0.3], size=600)
    part = (shares.cumsum(axis=1)[:, None] < rng.random((600, 3, 1))).sum(axis=2).clip(0, 2)
    frame = pd.DataFrame({"word": np.array(list("xyz"))[part[:, 0]], "a": 4.0 * part[:, 1], "b": -4.0 * part[:, 2]})
    frame[["a", "b"]] += rng.normal(size=(600, 2))
    views = TopicModel(3, 1.0, views=[["word"], ["a"], ["b"]], random_state=0).fit(frame)
    draws = TopicModel(1, 1.0, random_state=0).fit(frame[["a"]], groups=np.repeat(np.arange(60), 10))

    text = text_of(views, frame, tmp_path)

    assert text.count("<figure") == 3  # the shares, and two views
    assert "How probable each word is" in text
    assert "The density of a in every part." in text_of(draws, frame[["a"]], tmp_path)


def test_codes_of_a_view_are_a_table_as_categories_are(rng, tmp_path):
    part = rng.integers(2, size=(300, 1))
    X = np.hstack([part * 7.0, part + rng.normal(size=(300, 2))])
    model = TopicModel(2, 1.0, views=[[0], [1], [2]], kernel=[Delta(), None, None], random_state=0).fit(X)

    text = text_of(model, X, tmp_path, columns=["shop", "a", "b"])

    assert "How probable each shop is" in text
    assert "The density of shop" not in text
    assert re.search(rf"<bdi>7</bdi></t[hd]><td[^>]*>{percent(model.components_[0].density([[7.0]])[0, 0])}</td>", text)


@pytest.mark.parametrize("n_names", [2, 5])
def test_names_are_as_many_as_columns(n_names, answers, rng, tmp_path):
    counts = rng.poisson(3.0, size=(50, 4))
    for model, X in ((LatentClass(1), answers[0]), (TopicModel(1), counts)):
        with pytest.raises(ValueError, match=f"columns needs one name per column of X, 4; got {n_names}"):
            write_report(model.fit(X), X, tmp_path / "report.html", columns=list("abcde")[:n_names])


def test_communities_show_links_and_nodes(tmp_path):
    graph = nx.karate_club_graph()
    model = CommunityModel(2, 1.0, random_state=0).fit(nx.relabel_nodes(graph, {node: f"<p>{node}" for node in graph}))

    text = text_of(model, None, tmp_path)

    assert "2 communities of 34 nodes" in text
    assert not re.search(r"<p>\d", text)
    assert "&lt;p&gt;33" in text
    assert f"{100 * model.connectivity_[0, 0]:.1f}\xa0%" in text


@pytest.mark.parametrize(
    "name", ["KernelHMM", "PredictiveStateModel", "LowRankDensity", "ChangePoints", "DriftMonitor"]
)
def test_models_without_a_report_name_what_draws_them(name, tmp_path):
    model = getattr(latentviews, name)() if name != "DriftMonitor" else latentviews.DriftMonitor(np.zeros((30, 1)))
    model.fitted_ = True
    with pytest.raises(TypeError, match=rf"got a {name}, .*`\w+Display`"):
        write_report(model, None, tmp_path / "report.html")
    for display in re.findall(r"`(\w+Display)`", INSTEAD[name]):
        assert hasattr(latentviews.plot, display)


def test_a_crowd_has_a_report_of_its_own(tmp_path):
    model = CrowdLabels().fit((["a", "a", "b"], [1, 2, 1], ["yes", "yes", "no"]))
    with pytest.raises(TypeError, match="write_crowd_report"):
        write_report(model, None, tmp_path / "report.html")
