"""Crowds: exact matrices from exact moments, the same answers as slow sums, and what workers are told apart by."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

from latentviews import CrowdLabels, load, save
from latentviews.discrete import spammers
from latentviews.discrete.crowd_answers import distinct, read_answers
from latentviews.discrete.crowd_groups import balanced_groups, group_confusions, spectral_posteriors
from latentviews.discrete.crowd_model import dirichlet_step, expected_counts, fit_crowd, log_evidence, softmax_rows
from latentviews.discrete.spammers import _Kinds, own_word


def drawn(rng, n_tasks=300, n_workers=20, k=3, per_task=6, spammers=2):
    """Answers with their truth: good workers, and the last few who answer anything."""
    y = rng.integers(0, k, n_tasks)
    matrices = np.array([0.3 / (k - 1) * (1 - np.eye(k)) + 0.7 * np.eye(k)] * n_workers)
    matrices[n_workers - spammers :] = 1 / k
    task = np.repeat(np.arange(n_tasks), per_task)
    worker = np.concatenate([rng.choice(n_workers, per_task, replace=False) for _ in range(n_tasks)])
    label = (matrices[worker, y[task]].cumsum(axis=1) < rng.random((len(task), 1))).sum(axis=1)
    return task, worker, label, y


@pytest.mark.cheap
def test_group_matrices_are_exact_on_exact_moments(rng):
    """All answers of three workers, each with its probability: population moments."""
    k, weights = 3, np.array([0.5, 0.3, 0.2])
    matrices = 0.5 * np.eye(k) + 0.1 / k + 0.4 * rng.dirichlet(np.ones(k), size=(3, k))
    cells = np.indices((k, k, k)).reshape(3, -1)
    joint = np.einsum("h,ha,hb,hc->abc", weights, *matrices).ravel()

    found_weights, found = group_confusions(np.eye(k)[cells], rng, joint)

    np.testing.assert_allclose(found_weights, weights, atol=1e-9)
    np.testing.assert_allclose(found, matrices, atol=1e-9)


def test_a_step_is_that_of_dawid_and_skene_with_a_prior(rng):
    task, worker, label, _ = drawn(rng, 40, 7)
    answers = read_answers((task, worker, label))
    start = rng.dirichlet(np.ones(3), size=40)

    fit = fit_crowd(answers, start, 1, 1e-12)

    counts = np.zeros((7, 3, 3))
    for i, w, answer in zip(task, np.searchsorted(np.sort(answers.workers), worker), label, strict=True):
        counts[w, :, answer] += start[i]
    order = np.argsort(answers.workers)
    np.testing.assert_allclose(fit.crowd.counts[order], counts, rtol=1e-12)
    matrices = (counts + fit.crowd.prior) / (counts + fit.crowd.prior).sum(axis=2, keepdims=True)
    expected = np.tile(start.sum(axis=0) + 1, (40, 1))
    for i, w, answer in zip(task, worker, label, strict=True):
        expected[i] *= matrices[w, :, answer]
    np.testing.assert_allclose(fit.posteriors, expected / expected.sum(axis=1, keepdims=True), rtol=1e-10)


def test_small_crowds_are_about_as_right_as_the_majority():
    """Three answers to each of 40 tasks: before workers were imagined, a fifth were wrong, by votes a seventh."""
    wrong = np.zeros(2)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        truth, skill = rng.integers(2, size=40), rng.uniform(0.55, 0.95, size=8)
        worker = np.array([rng.permutation(8)[:3] for _ in range(40)])
        label = truth[:, None] ^ (rng.random((40, 3)) > skill[worker])
        task = np.repeat(np.arange(40), 3)
        found = CrowdLabels().fit((task, worker.ravel(), label.ravel())).labels_
        wrong += np.mean(found != truth) / 30, np.mean(np.round(label.mean(axis=1)) != truth) / 30

    assert wrong[0] < wrong[1] + 0.02


def test_two_equal_answers_are_believed_where_there_is_little_else():
    labels = CrowdLabels().fit(([0, 0, 1, 1, 2, 3], list("ababcd"), list("xxyxyy"))).labels_

    assert labels[0] == "x"
    assert labels[2] == labels[3] == "y"


@pytest.mark.cheap
def test_steps_of_the_crowds_law_raise_its_evidence_to_the_truth(rng):
    true = np.array([[6.0, 2.0], [1.0, 3.0]])
    chances = np.stack([rng.dirichlet(row, size=4000) for row in true], axis=1)
    counts = rng.binomial(30, chances[:, :, 0])[:, :, None] * [1.0, -1.0] + [0.0, 30.0]
    prior, values = np.ones((2, 2)), []
    for _ in range(200):
        values.append(log_evidence(counts, prior).sum())
        prior = dirichlet_step(counts, prior)

    assert np.all(np.diff(values) > -1e-6)
    np.testing.assert_allclose(prior, true, rtol=0.15)


def test_evidence_of_one_worker_is_the_dirichlet_multinomial():
    found = log_evidence(np.array([2.0, 1.0]), np.array([1.0, 1.0]))

    assert found == pytest.approx(gammaln(2) - gammaln(5) + gammaln(3) + gammaln(2))


def test_labels_are_better_than_votes_and_spammers_are_found(rng):
    task, worker, label, y = drawn(rng, 1000, 30, spammers=12)
    model = CrowdLabels().fit((task, worker, label))
    votes = np.array([np.bincount(label[task == i], minlength=3).argmax() for i in range(1000)])

    assert np.mean(model.labels_ != y[model.tasks_]) < 0.85 * np.mean(votes != y)
    spammer = model.workers_ >= 18
    assert np.all(model.spammer_probability_[spammer] > 0.8)
    assert np.all(model.spammer_probability_[~spammer] < 0.01)
    assert model.information_[~spammer].min() > 4 * model.information_[spammer].max()
    np.testing.assert_allclose(model.crowd_confusion_.sum(axis=1), 1)


def skilled(rng, skills, answers, k, spammers=0, of_spammer=0, bias=0.5):
    """Answers of workers who are right with a chance of their own, eight or so to a task; the last ones do not look."""
    n_tasks = max(len(skills) * answers // 8, of_spammer)
    y = rng.integers(0, k, n_tasks)
    parts = []
    for w, skill in enumerate([*skills, *[None] * spammers]):
        task = rng.choice(n_tasks, answers if skill is not None else of_spammer, replace=False)
        wrong = (y[task] + rng.integers(1, k, len(task))) % k
        law = np.append(bias, np.full(k - 1, (1 - bias) / (k - 1)))
        said = (
            rng.choice(k, len(task), p=law)
            if skill is None
            else np.where(rng.random(len(task)) < skill, y[task], wrong)
        )
        parts.append((task, np.full(len(task), w), said))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


@pytest.mark.parametrize("bias", [0.5, 0.65, 0.8])
@pytest.mark.parametrize("answers", [200, 800])
def test_few_spammers_among_many_good_workers_are_found(answers, bias):
    """In the crowd of a review, none of them had more than .011: two laws of any shape are nearly as good as one."""
    model = CrowdLabels().fit(skilled(np.random.default_rng(0), [0.87] * 160, 40, 2, 3, answers, bias))

    spammer = model.workers_ >= 160
    assert np.all(model.spammer_probability_[spammer] > 0.7)
    assert np.all(model.spammer_probability_[~spammer] < 0.2)


def test_of_many_workers_some_say_where_to_start(monkeypatch):
    answers = skilled(np.random.default_rng(0), [0.87] * 160, 40, 2, 3, 200)
    whole = CrowdLabels().fit(answers).spammer_probability_
    monkeypatch.setattr(spammers, "SOME", 80)

    np.testing.assert_allclose(CrowdLabels().fit(answers).spammer_probability_, whole, atol=0.02)


def test_workers_who_are_right_seldom_are_no_spammers():
    """Chances to be right from .25, which is chance, to nearly one, and no spammer among them."""
    rng = np.random.default_rng(0)
    model = CrowdLabels().fit(skilled(rng, rng.beta(4, 2.5, 60), 100, 4))

    assert np.all(model.spammer_probability_ < 0.5)


@pytest.mark.cheap
def test_kinds_of_workers_have_the_evidence_of_their_answers_one_by_one(rng):
    """Certain tasks: the chance of a sequence of answers, each given those before it (Pólya's urn)."""
    k, truth, said = 3, rng.integers(0, 3, 12), rng.integers(0, 3, 12)
    counts, law, chances = np.zeros((1, k, k)), rng.gamma(2, size=(k, k)), rng.gamma(2, size=(1, 2))
    expected = np.zeros(4)
    for h, answer in zip(truth, said, strict=True):
        seen, right = counts[0], np.array([np.trace(counts[0]), counts.sum() - np.trace(counts[0])])
        urn = (right + chances[0]) / (right + chances[0]).sum()
        expected += np.log(
            [
                (seen[:, answer].sum() + 1) / (seen.sum() + k),
                (seen[h, answer] + 1) / (seen[h].sum() + k),
                (seen[h, answer] + law[h, answer]) / (seen[h].sum() + law[h].sum()),
                urn[0] if h == answer else urn[1] / (k - 1),
            ]
        )
        counts[0, h, answer] += 1

    found = _Kinds.of(counts, np.zeros(1)).log_evidences(law, chances)[:, 0]

    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_what_a_worker_adds_to_the_word_of_others_is_told_as_if_he_were_left_out(rng):
    answers = read_answers(drawn(rng, 40, 7)[:3])
    fit = fit_crowd(answers, rng.dirichlet(np.ones(3), size=40), 5, 1e-12)
    counts = expected_counts(answers, fit.posteriors)
    log_joint = fit.crowd.log_joint(answers.table)

    expected = np.zeros(7)
    for w in range(7):
        own = answers.table.toarray().reshape(40, 7, 3)[:, w] @ np.log(fit.crowd.confusion[w]).T
        others = softmax_rows(log_joint - own)
        expected[w] = (fit.posteriors * np.log(fit.posteriors / others)).sum()

    np.testing.assert_allclose(own_word(fit.crowd, counts, answers, fit.posteriors), expected, rtol=1e-9)


def test_both_starts_end_in_the_same_place(rng):
    task, worker, label, _ = drawn(rng, 2000)
    answers = read_answers((task, worker, label))
    spectral = fit_crowd(answers, spectral_posteriors(answers, rng), 200, 1e-6)
    votes = fit_crowd(answers, answers.votes() / 6, 200, 1e-6)

    np.testing.assert_allclose(spectral.posteriors, votes.posteriors, atol=1e-3)


def test_groups_share_the_answers_evenly(rng):
    task, worker, label, _ = drawn(rng)
    answers = read_answers((task, worker, label))
    groups = balanced_groups(answers, rng)

    loads = [np.isin(worker, answers.workers[groups == g]).sum() for g in range(3)]
    assert max(loads) - min(loads) <= np.bincount(worker).max()


FORMS = {
    "frame": lambda t, w, x: pd.DataFrame({"label": x, "other": 0, "task": t, "worker": w}),
    "three columns": lambda t, w, x: pd.DataFrame({"item": t, "who": w, "what": x}),
    "table": lambda t, w, x: np.array([t, w, x], dtype=object).T,
    "lists": lambda t, w, x: (list(t), list(w), list(x)),
    "rows": lambda t, w, x: [list(row) for row in zip(t, w, x, strict=True)],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_every_form_of_answers_is_the_same(form, rng):
    task, worker, label, _ = drawn(rng, 50)
    names = np.array(["no", "perhaps", "yes"])[label].tolist()

    model = CrowdLabels().fit(form(task.tolist(), worker.tolist(), names))

    assert model.classes_.tolist() == ["no", "perhaps", "yes"]
    np.testing.assert_array_equal(model.posteriors_, CrowdLabels().fit((task, worker, label)).posteriors_)


def test_tasks_and_workers_may_be_anything_that_can_be_hashed():
    task, worker, label = [("a", 1), ("a", 1), "b", "b"], [1, None.__class__, 1, "x"], [True, True, False, False]

    model = CrowdLabels().fit((task, worker, label))

    assert model.tasks_.tolist() == [("a", 1), "b"]
    assert model.labels_.tolist() == [True, False]


def test_close_integers_are_counted_as_any_others_are_sorted(rng):
    values = rng.integers(-5, 9, 100)

    for one, other in zip(distinct(values), distinct(values.astype(float)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_fitted_tasks_are_answered_as_by_fit_and_new_workers_are_average_ones(rng):
    task, worker, label, _ = drawn(rng)
    model = CrowdLabels().fit((task, worker, label))

    np.testing.assert_allclose(model.predict_proba((task, worker, label)), model.posteriors_, rtol=1e-9)
    assert model.predict().tolist() == model.labels_.tolist()
    stranger = model.predict_proba((["new"], ["nobody"], [2]))[0]
    expected = model.weights_ * model.crowd_confusion_[:, 2]
    np.testing.assert_allclose(stranger, expected / expected.sum())
    with pytest.raises(ValueError, match=r"The label 7 was not among those of the fit, \[0, 1, 2\]"):
        model.predict((["new"], [0], [7]))


def test_a_missing_label_is_no_answer_but_its_task_is_kept(rng):
    task, worker, label, _ = drawn(rng, 60)
    model = CrowdLabels().fit((task, worker, label))
    more = CrowdLabels().fit((np.append(task, 999), np.append(worker, 0), np.append(label, np.nan)))

    np.testing.assert_allclose(more.posteriors_[:-1], model.posteriors_, atol=0.02)
    np.testing.assert_allclose(more.posteriors_[-1], more.weights_, atol=1e-9)


def test_an_answer_of_weight_two_is_the_answer_twice(rng):
    task, worker, label, _ = drawn(rng, 60)
    twice = np.concatenate([np.arange(len(task)), np.arange(30)])
    weight = np.where(np.arange(len(task)) < 30, 2.0, 1.0)

    one = CrowdLabels().fit((task, worker, label), sample_weight=weight)
    other = CrowdLabels().fit((task[twice], worker[twice], label[twice]))

    np.testing.assert_allclose(one.posteriors_, other.posteriors_, atol=1e-9)


def test_one_class_one_worker_and_one_answer_are_defined():
    one_class = CrowdLabels().fit((["a", "b"], ["w", "v"], ["yes", "yes"]))
    assert one_class.labels_.tolist() == ["yes", "yes"]
    assert one_class.spammer_probability_.tolist() == [0.0, 0.0]
    alone = CrowdLabels().fit((["a", "b", "c"], ["w"] * 3, ["yes", "no", "yes"]))
    assert alone.labels_.tolist() == ["yes", "no", "yes"]
    assert CrowdLabels().fit((["a"], ["w"], [1])).labels_.tolist() == [1]


def test_a_worker_with_one_answer_is_taken_for_an_average_one(rng):
    task, worker, label, _ = drawn(rng)
    model = CrowdLabels().fit((np.append(task, 0), np.append(worker, 99), np.append(label, label[0])))
    last = model.confusion_[np.flatnonzero(model.workers_ == 99)[0]]

    assert np.abs(last - model.crowd_confusion_).max() < 1 / (1 + model.pooling_.min())
    assert model.n_answers_[-1] == pytest.approx(1)


BAD = {
    "columns": (pd.DataFrame({"a": [1], "b": [2]}), r"got a frame with columns \['a', 'b'\]"),
    "shape": (np.ones((4, 2)), r"tuple of three arrays; got shape \(4, 2\)"),
    "lengths": (([1, 2], [1], [1, 2]), "Tasks, workers and labels need one length; got 2, 1 and 2"),
    "none": (np.empty((0, 3)), "Expected at least one answer; got none"),
    "measurements": (np.linspace(0, 1, 90).reshape(30, 3), "30 answers of 30 workers hold 30 different ones. Are they"),
    "too many labels": (
        np.column_stack([np.arange(4000), np.arange(4000) % 500, np.arange(4000) % 1000]),
        "4,000 answers of 500 workers hold 1,000 different ones",
    ),
    "worker": (([1, 2], ["a", None], [0, 1]), "Every answer needs a worker; row 2, counted from 1, has none"),
    "labels": (([1, 2], [1, 2], [None, np.nan]), "all 2 labels are missing"),
}


@pytest.mark.parametrize(("answers", "sentence"), BAD.values(), ids=BAD.keys())
def test_bad_answers_get_a_sentence(answers, sentence):
    with pytest.raises(ValueError, match=sentence):
        CrowdLabels().fit(answers)


def test_answers_in_columns_of_one_name_get_a_sentence():
    frame = pd.DataFrame([[0, 1, 1]] * 4, columns=["task", "worker", "worker"])

    with pytest.raises(ValueError, match="names 'worker' more than once"):
        CrowdLabels().fit(frame)


def test_a_fit_that_stops_early_says_so(rng):
    with pytest.warns(UserWarning, match="EM stopped after 1 steps"):
        CrowdLabels(max_iter=1, tol=1e-9).fit(drawn(rng)[:3])


def test_a_saved_crowd_answers_the_same(rng, tmp_path):
    task, worker, label, _ = drawn(rng, 50)
    names = np.array(["no", "perhaps", "yes"], dtype=object)[label]
    model = CrowdLabels().fit((task, worker, names))
    save(model, tmp_path / "crowd.latentviews")

    loaded = load(tmp_path / "crowd.latentviews")

    assert loaded.predict((task, worker, names)).tolist() == model.labels_.tolist()
    np.testing.assert_array_equal(loaded.posteriors_, model.posteriors_)
