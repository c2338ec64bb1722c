import io
import itertools
import warnings
from contextlib import redirect_stderr
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV

from catalogue import POLISHES
from latentviews import Delta, Gaussian, IdentifiabilityWarning, MultiViewMixture, Sieve, SmoothedEM, VonMises
from latentviews._validation import as_labels
from latentviews.baselines import SphericalSpectral
from latentviews.core.kernels.bandwidths import isj
from latentviews.datasets import make_multiview
from latentviews.metrics import density_error, label_accuracy
from latentviews.mixtures.fit_rows import MixtureRows
from truths import OracleKDE, errors, grids

WIDTHS_TRIED = ({0, 1, 2, 3}, {0, 1, 2, 3}, {1, 2, 3}, {2, 3, 4}, {2, 3, 4})  # of five, by which is the best


@pytest.mark.parametrize("polish", POLISHES, ids=repr)
def test_every_polish_beats_the_spectral_estimate_where_classes_overlap(polish):
    X, _, truth = make_multiview(2000, 4, separation=2, random_state=0)
    spectral = errors(MultiViewMixture(4, polish=None, random_state=0).fit(X), X, truth)[0]
    assert errors(MultiViewMixture(4, polish=polish, random_state=0).fit(X), X, truth)[0] < 0.95 * spectral


@pytest.mark.parametrize("design", ["gaussian", "gamma"])
def test_the_default_is_as_good_as_a_kde_that_knows_the_labels(design, rng):
    X, y, truth = make_multiview(2000, 3, design=design, random_state=rng)
    model = MultiViewMixture(3, random_state=0).fit(X)
    oracle = [OracleKDE(x, y, [float(isj(x[y == h, None])[0]) for h in range(3)]) for x in X.T]
    assert errors(model, X, truth)[0] <= 1.05 * density_error(truth.components, oracle, grids(X), truth.weights)


@pytest.mark.parametrize("best", range(5))
def test_widths_are_tried_from_the_middle_on_as_long_as_likelihood_rises(best, monkeypatch):
    rows, tried = make_multiview(400, 2, random_state=0).X, []
    polish = Sieve(factors=(0.5, 1.0, 2.0, 4.0, 8.0), max_iter=4)

    def views(factor):
        tried.append(factor)
        return factor

    judged = SimpleNamespace(
        halves=lambda: (slice(0, 200), slice(200, 400)),
        some=lambda _: SimpleNamespace(
            cells=lambda factor: factor, score=lambda factor, _: -abs(polish.factors.index(factor) - best)
        ),
    )
    monkeypatch.setattr(Sieve, "_short", lambda *_: SimpleNamespace(parameters=None))

    assert polish._factor(judged, views, rows) == polish.factors[best]
    assert sorted(tried) == [factor for i, factor in enumerate(polish.factors) if i in WIDTHS_TRIED[best]]


def test_shapes_alone_tell_classes_apart():
    X, y, truth = make_multiview(4000, 3, design="shapes", random_state=0)
    model = MultiViewMixture(3, random_state=0).fit(X)
    assert label_accuracy(y, model.predict(X)) > 0.75  # knowing the densities gives .87
    assert errors(model, X, truth)[0] < 0.14  # nonparametric EM started at the truth ends at .18


def test_starts_that_disagree_are_joined_by_further_ones():
    X, y, _ = make_multiview(900, 5, random_state=0)
    rows = MixtureRows(X, ([0], [1], [2]), list(range(3)), [Gaussian()] * 3)
    truth = 0.9 * np.eye(5)[y] + 0.02
    lumped = [0.9 * np.eye(5)[y % size] + 0.02 for size in (1, 2)]  # classes that begin alike stay alike

    few, more = (Sieve(n_init=n_init).polish(rows, lumped, np.random.default_rng(0)) for n_init in (0, "auto"))
    agreed = Sieve().polish(rows, [truth, truth], np.random.default_rng(0))
    asked = Sieve(n_init=2).polish(rows, [truth], np.random.default_rng(0))

    assert [len(found.objectives) for found in (few, agreed, asked)] == [2, 2, 3]
    assert 2 < len(more.objectives) <= 7  # k-means that ends where another did is no further start
    assert 900 * (more.fit.objective - few.fit.objective) > 100
    assert 900 * abs(more.fit.objective - agreed.fit.objective) < 3


def test_starts_as_likely_with_other_classes_are_told_and_joined_by_further_ones():
    X = np.tile(np.array(list(itertools.product([0.0, 1.0], repeat=3))), (40, 1))  # views that do not depend
    rows = MixtureRows(X, ([0], [1], [2]), [0, 1, 2], [Delta()] * 3)
    by_view = [0.96 * np.eye(2)[X[:, t].astype(int)] + 0.02 for t in (0, 1)]

    few, more = (Sieve(n_init=n_init).polish(rows, by_view, np.random.default_rng(0)) for n_init in (0, "auto"))
    alike = Sieve().polish(rows, by_view[:1] * 2, np.random.default_rng(0))

    np.testing.assert_allclose(few.objectives, -3 * np.log(2), rtol=1e-6)
    best = int(few.objectives.argmax())
    assert few.agreements[best] == 1.0
    assert few.agreements[1 - best] < 0.01
    assert len(more.objectives) > 2
    np.testing.assert_allclose(alike.agreements, 1.0)


@pytest.mark.parametrize("polish", [Sieve(n_init=0), SmoothedEM()])
def test_a_model_tells_how_its_starts_agree(polish):
    X, _, _ = make_multiview(300, 2, separation=4, random_state=0)
    model = MultiViewMixture(2, polish=polish, random_state=0).fit(X)
    assert model.start_agreements_.keys() == model.start_objectives_.keys()
    assert min(model.start_agreements_.values()) > 0.95
    assert model.polished_.n_rows == 300


@pytest.mark.parametrize("seed", [0, 1])  # where further steps go on from another start
def test_agreement_is_with_the_start_that_was_best_by_then(seed):
    model = MultiViewMixture(6, random_state=seed).fit(load_iris().data)
    reached, alike = model.start_objectives_, model.start_agreements_
    assert alike[max(reached, key=reached.get)] == 1.0
    assert min(alike.values()) < 0.9


def test_a_polish_need_not_compare_its_starts():
    class Silent(Sieve):
        def polish(self, *arguments):
            return super().polish(*arguments)._replace(agreements=np.empty(0), n_rows=0)

    X, _, _ = make_multiview(300, 2, separation=4, random_state=0)
    model = MultiViewMixture(2, polish=Silent(n_init=0), random_state=0).fit(X)
    assert model.start_agreements_ == {}


def test_rows_without_weight_are_equal_ones_among_others():
    X, y, _ = make_multiview(60, 2, random_state=0)
    rows = MixtureRows(X, ([0], [1], [2]), [0, 1, 2], [Gaussian()] * 3)
    polished = Sieve(n_init=0).polish(rows, [np.eye(2)[y]], np.random.default_rng(0))
    parameters = polished.fit.parameters
    weights, half = np.repeat([0.0, 1.0], 30), np.arange(30)  # of which none counts

    some = rows._replace(weights=weights).some(half)
    cells = some.cells(polished.views)
    assert some.score(cells, parameters) == rows.some(half).score(cells, parameters)
    assert some.step(cells, parameters)[1] == rows.some(half).step(cells, parameters)[1]


def test_further_starts_have_names():
    X, _, _ = make_multiview(300, 2, random_state=0)
    model = MultiViewMixture(2, polish=Sieve(n_init=2), random_state=0).fit(X)
    assert list(model.start_objectives_) == ["spectral × 1", "spectral × 0.5", "k-means", "k-means (2)", "k-means (3)"]


@pytest.mark.parametrize("bandwidth", ["isj", 1.0])
def test_the_smoothed_likelihood_of_rows_between_grid_points_never_falls(bandwidth, rng):
    X, _, _ = make_multiview(300, 3, separation=1.5, design="gamma", random_state=rng)
    rows = MixtureRows(X, ([0], [1], [2]), [0, 1, 2], [Gaussian()] * 3)
    path = []
    polish = SmoothedEM(bandwidth, max_iter=100, tol=0.0)
    polish.polish(rows, [rng.dirichlet(np.ones(3), size=300)], rng, None, lambda _, __, value: path.append(value))
    assert len(path) == 100
    assert np.diff(path).min() > -1e-12


def test_missing_values_are_integrated_out(rng):
    X, y, truth = make_multiview(3000, 3, random_state=rng)
    gaps = np.where(rng.random(X.shape) < 0.25, np.nan, X)
    for polish in (None, "auto"):
        model = MultiViewMixture(3, polish=polish, random_state=0).fit(gaps)
        assert errors(model, X, truth)[1] < 0.06
        assert label_accuracy(y, model.predict(X)) > 0.99
    assert label_accuracy(y, model.predict(gaps)) > 0.95
    empty = np.full((1, 3), np.nan)
    np.testing.assert_allclose(model.predict_proba(empty)[0], model.weights_)
    assert model.score_samples(empty) == pytest.approx(0.0)


def test_missing_views_leave_the_others_exact(rng):
    X, _, _ = make_multiview(500, 2, random_state=rng)
    model = MultiViewMixture(2, random_state=0).fit(X)
    without = model.predict_proba(np.where([True, False, True], X, np.nan))
    joint = model.weights_ * model.components_[0].density(X[:, 0]) * model.components_[2].density(X[:, 2])
    np.testing.assert_allclose(without, joint / joint.sum(axis=1, keepdims=True), atol=1e-3)


def test_known_labels_name_and_guide_the_classes(rng):
    X, y, _ = make_multiview(1500, 3, separation=1.5, random_state=rng)
    labels = np.where(rng.random(len(y)) < 0.2, y, -1)
    guided = MultiViewMixture(3, random_state=0).fit(X, labels)
    alone = MultiViewMixture(3, random_state=0).fit(X)
    assert np.mean(guided.predict(X) == y) >= label_accuracy(y, alone.predict(X)) - 0.01
    np.testing.assert_array_equal(alone.weights_, MultiViewMixture(3, random_state=0).fit(X, y).weights_)
    with pytest.raises(ValueError, match="Known classes in y are 0 to 1"):
        MultiViewMixture(2).fit(X, labels)


@pytest.mark.parametrize("polish", ["auto", None])
def test_labels_of_rows_outside_the_pilot_name_the_classes(polish, rng):
    X, y, _ = make_multiview(2000, 3, random_state=rng)
    names = rng.permutation(3)[y]
    labels = np.full(len(y), -1)
    labels[rng.choice(2000, 12, replace=False)] = 0
    labels = np.where(labels == 0, names, -1)
    model = MultiViewMixture(3, polish=polish, pilot_size=400, random_state=0).fit(X, labels)
    assert np.mean(model.predict(X) == names) > 0.95


def test_labels_of_all_rows_count_not_only_of_the_pilots(rng):
    X, y, _ = make_multiview(4000, 2, separation=1.0, random_state=rng)
    labels = np.where(rng.random(4000) < 0.95, y, -1)
    model = MultiViewMixture(2, pilot_size=500, random_state=0).fit(X, labels)
    np.testing.assert_allclose(model.weights_, np.bincount(y) / 4000, atol=0.01)
    oracle = [X[y == h].mean(axis=0) for h in range(2)]
    means = np.stack([view.expectation(lambda x: x[:, 0]) for view in model.components_], axis=1)
    np.testing.assert_allclose(means, oracle, atol=0.1)


def test_blocks_of_exchangeable_views_share_their_components(rng):
    X, y, _ = make_multiview(3000, 2, n_views=2, random_state=rng)
    pairs = np.column_stack([X, X[rng.permutation(len(X))]])
    for h in range(2):  # the second pair of columns repeats the first, drawn anew inside the class
        pairs[y == h, 2:] = np.stack([rng.permutation(X[y == h, t]) for t in range(2)], axis=1)
    model = MultiViewMixture(2, exchangeable=["a", "b", "a", "b"], random_state=0).fit(pairs)
    assert model.components_[0] is model.components_[2]
    assert model.components_[1] is model.components_[3]
    assert label_accuracy(y, model.predict(pairs)) > 0.99
    with pytest.raises(ValueError, match=r"one block id per view \(4\); got"):
        MultiViewMixture(2, exchangeable=[0, 1]).fit(pairs)


def test_four_blocks_of_two_in_any_order_share_their_components(rng):
    """Eight columns whose pairs stand as those of the water-level task do: 11, 4, 2, 7, 10, 5, 1 and 8 o'clock."""
    blocks = [4, 3, 2, 1, 3, 4, 1, 2]
    y = (rng.random(2000) < 0.4).astype(int)
    centre = np.array([-1.0, 1.0, 2.0, -2.0])
    X = np.column_stack([rng.normal(size=2000) + centre[b - 1] * (2 * y - 1) for b in blocks])
    model = MultiViewMixture(2, exchangeable=blocks, random_state=0).fit(X)
    for s, t in itertools.combinations(range(8), 2):
        assert (model.components_[s] is model.components_[t]) == (blocks[s] == blocks[t])
    order = np.argsort(model.weights_)[::-1]  # the class with y = 0 is the larger
    means = np.stack([view.expectation(lambda x: x[:, 0]) for view in model.components_])[:, order]
    expected = np.outer(centre[np.array(blocks) - 1], [-1.0, 1.0])
    np.testing.assert_allclose(means, expected, atol=0.15)
    assert label_accuracy(y, model.predict(X)) > 0.99


def test_other_kinds_of_views_are_polished_too(rng):
    y = rng.integers(2, size=3000)
    plane = rng.normal(size=(3000, 2)) * 0.7 + 2.0 * y[:, None]
    angle = rng.vonmises(np.where(y == 1, 2.5, -2.5), 3.0)  # on either side of the cut
    code = (rng.random(3000) < np.where(y == 1, 0.9, 0.2)).astype(float)
    X = np.column_stack([plane, angle, code])
    model = MultiViewMixture(2, views=[[0, 1], [2], [3]], kernel=[Gaussian(), VonMises(), Delta()], random_state=0).fit(
        X
    )
    assert label_accuracy(y, model.predict(X)) > 0.97
    np.testing.assert_allclose(np.sort(model.components_[2].density([[1.0]])[0]), [0.2, 0.9], atol=0.03)


def test_one_class_is_a_product_of_marginals(rng):
    X, _, _ = make_multiview(2000, 2, random_state=rng)
    model = MultiViewMixture(1, random_state=0).fit(X)
    x = np.linspace(X[:, 0].min(), X[:, 0].max(), 50)
    kde = Gaussian(float(model.components_[0].bandwidths[0])).gram(x[:, None], X[:, :1]).mean(axis=1)
    np.testing.assert_allclose(model.components_[0].density(x)[:, 0], kde, atol=2e-3)


def test_more_rows_than_the_pilot_all_count():
    X, _, _ = make_multiview(20_000, 3, random_state=0)
    model = MultiViewMixture(3, pilot_size=2000, random_state=0).fit(X)
    share = np.bincount(model.predict(X)) / len(X)
    np.testing.assert_allclose(model.weights_, share, atol=1e-3)  # the pilot alone is off by 1e-2


def test_a_warm_start_goes_on_from_where_it_was():
    X, _, _ = make_multiview(2000, 3, separation=2, random_state=0)
    model = MultiViewMixture(3, warm_start=True, random_state=0).fit(X)
    first = model.lower_bound_
    model.fit(X)
    assert list(model.start_objectives_) == ["warm"]
    assert model.lower_bound_ >= first - 1e-3


def test_criteria_prefer_the_true_number_of_classes():
    X, _, _ = make_multiview(1000, 3, design="gamma", separation=3, random_state=1)
    models = [MultiViewMixture(k, random_state=0).fit(X) for k in (1, 2, 3, 4)]
    assert np.argmin([model.bic(X) for model in models]) == 2
    assert np.argmin([model.aic(X) for model in models]) >= 2  # which asks less of a class too many


def test_classes_are_aligned_between_fits(rng):
    X, _, _ = make_multiview(2000, 3, separation=3, random_state=rng)
    one = MultiViewMixture(3, random_state=0).fit(X[:1000])
    two = MultiViewMixture(3, random_state=1).fit(X[1000:])
    two._reorder(np.array([2, 0, 1]))
    two.align_to(one)
    assert np.mean(one.predict(X) == two.predict(X)) > 0.98
    with pytest.raises(ValueError, match="align_to needs a fit with 3 classes"):
        two.align_to(MultiViewMixture(2, random_state=0).fit(X))
    with pytest.raises(TypeError, match="align_to follows the classes of a MultiViewMixture; got a SphericalSpectral"):
        two.align_to(SphericalSpectral(3, random_state=0).fit(X))


def test_expectations_have_honest_standard_errors():
    """Signed weights: over twenty draws, errors over standard errors have a spread near one."""
    ratios = []
    for seed in range(20):
        X, _, truth = make_multiview(400, 2, separation=2.5, random_state=seed)
        model = MultiViewMixture(2, random_state=0).fit(X)
        values, errors_ = model.expectation(lambda x: x[:, 0], X)
        means = np.array([parts[0][1].mean() for parts in truth.components[0].laws])
        order = np.argsort(-truth.weights)
        ratios.append((values - means[order]) / errors_)
    assert 0.65 < np.std(ratios) < 1.45  # forty ratios: a spread of one varies by some .11


def test_intervals_cover_and_shrink(rng):
    X, _, truth = make_multiview(1500, 2, random_state=rng)
    model = MultiViewMixture(2, random_state=0).fit(X)
    draws = model.bootstrap(X, 60, lambda x: x[:, 0] ** 2, view=1, random_state=0)
    lower, upper = draws.interval(0.999)
    truth_ = np.sort(truth.weights)[::-1]
    assert np.all((lower < truth_ + 0.02) & (truth_ - 0.02 < upper))
    binomial = np.sqrt(truth_ * (1 - truth_) / 1500)
    np.testing.assert_allclose(draws.weights.std(axis=0), binomial, rtol=0.4)
    assert draws.values.shape == (60, 2)
    with pytest.raises(ValueError, match="level must be between"):
        draws.value_interval(1.5)
    with pytest.raises(ValueError, match="level must be between"):
        draws.interval("most")
    with pytest.raises(ValueError, match="fit it with one"):
        MultiViewMixture(2, polish=None, random_state=0).fit(X).bootstrap(X)


def test_a_missing_view_is_foretold_by_the_others(rng):
    X, y, truth = make_multiview(3000, 3, random_state=rng)
    model = MultiViewMixture(3, random_state=0).fit(X)
    given = model.conditional(X, 2)
    means = np.array([parts[0][1].mean() for parts in truth.components[2].laws])
    assert np.sqrt(np.mean((given.mean()[:, 0] - means[y]) ** 2)) < 0.3
    draws = given.sample(0)
    assert np.corrcoef(draws[:, 0], X[:, 2])[0, 1] > 0.8
    x = np.linspace(-12, 12, 2000)
    np.testing.assert_allclose(given.density(x)[:5].sum(axis=1) * (x[1] - x[0]), 1.0, atol=1e-2)
    with pytest.raises(ValueError, match="view must be a name or a number from 0 to 2"):
        model.conditional(X, 3)


def test_nothing_is_printed_unless_asked(capsys):
    X, _, _ = make_multiview(300, 2, random_state=0)
    MultiViewMixture(2, random_state=0).fit(X)
    assert capsys.readouterr() == ("", "")
    text = io.StringIO()
    with redirect_stderr(text):
        MultiViewMixture(2, verbose=1, random_state=0).fit(X)
    assert "log-likelihood per row" in text.getvalue()


class Recorder:
    """A callback of scikit-learn's protocol that counts tasks and may ask to stop."""

    def __init__(self, stop_after=None):
        self.ended, self.stop_after, self.torn_down = [], stop_after, False

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **_):
        pass

    def on_fit_task_end(self, estimator, context, **_):
        self.ended.append(context.task_name)
        return self.stop_after is not None and len(self.ended) >= self.stop_after

    def teardown(self, estimator, context):
        self.torn_down = True


def test_callbacks_hear_of_every_step_and_may_stop_the_fit():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    X, _, _ = make_multiview(600, 3, separation=1.5, random_state=0)
    patient, hasty = Recorder(), Recorder(stop_after=2)
    for recorder in (patient, hasty):
        MultiViewMixture(3, random_state=0).set_callbacks(recorder).fit(X)
        assert recorder.torn_down
    assert patient.ended.count("polish") > hasty.ended.count("polish") == 2
    assert patient.ended[-1] == "fit"


def test_jobs_do_not_change_the_answer():
    X, _, _ = make_multiview(800, 3, separation=2, random_state=0)
    one, two = (MultiViewMixture(3, n_jobs=jobs, random_state=0).fit(X) for jobs in (1, 2))
    np.testing.assert_array_equal(one.weights_, two.weights_)


def test_views_that_npem_cannot_smooth_are_refused(rng):
    with pytest.raises(ValueError, match="Sieve takes any view"):
        MultiViewMixture(2, views=[[0, 1], [2], [3]], polish=SmoothedEM()).fit(rng.normal(size=(200, 4)))


def test_weights_are_routed_through_meta_estimators():
    X, _, _ = make_multiview(300, 2, random_state=0)
    weights = np.where(np.arange(300) < 200, 1.0, 0.5)
    with config_context(enable_metadata_routing=True):
        model = MultiViewMixture(2, kernel=Gaussian(1.0), random_state=0).set_fit_request(sample_weight=True)
        search = GridSearchCV(model, {"kernel__bandwidth": [1.0]}, cv=2).fit(X, sample_weight=weights)
    alone = MultiViewMixture(2, kernel=Gaussian(1.0), random_state=0).fit(X, sample_weight=weights)
    np.testing.assert_allclose(search.best_estimator_.weights_, alone.weights_)
    assert (
        np.abs(alone.weights_ - MultiViewMixture(2, kernel=Gaussian(1.0), random_state=0).fit(X).weights_).max() > 1e-4
    )


def test_bandwidths_know_how_many_rows_have_the_view(rng):
    X, _, _ = make_multiview(2000, 2, separation=3, random_state=rng)
    gaps = X.copy()
    gaps[rng.random(2000) < 0.8, 0] = np.nan
    some = MultiViewMixture(2, random_state=0).fit(gaps)
    few = MultiViewMixture(2, random_state=0).fit(X[~np.isnan(gaps[:, 0])])
    np.testing.assert_allclose(some.components_[0].bandwidths, few.components_[0].bandwidths, rtol=0.35)


def test_the_mean_of_an_angle_is_a_direction(rng):
    y = rng.integers(2, size=1500)
    angle = rng.vonmises(np.where(y == 1, 3.1, 0.0), 6.0)
    X = np.column_stack([angle, rng.normal(4 * y), rng.normal(4 * y)])
    model = MultiViewMixture(2, kernel=[VonMises(), Gaussian(), Gaussian()], random_state=0).fit(X)
    mean = model.conditional(X, 0).mean()[y == 1, 0]
    assert np.median(np.abs(np.angle(np.exp(1j * (mean - 3.1))))) < 0.1


def test_auto_counts_rows_by_their_weights(rng):
    X, _, _ = make_multiview(1500, 2, random_state=rng)
    far = np.concatenate([X, rng.normal(30.0, 1.0, size=(400, 3))])
    weights = np.repeat([1.0, 0.0], [1500, 400])
    assert MultiViewMixture("auto", random_state=0).fit(far, sample_weight=weights).n_components_ == 2
    assert MultiViewMixture("auto", random_state=0).fit(far).n_components_ == 3


def test_resampled_fits_differ_where_classes_overlap(rng):
    """The bootstrap refits: class weights then vary more than by counting rows of known class."""
    X, _, _ = make_multiview(600, 2, separation=1.2, random_state=rng)
    model = MultiViewMixture(2, random_state=0).fit(X)
    draws = model.bootstrap(X, 30, random_state=0)
    binomial = np.sqrt(model.weights_ * (1 - model.weights_) / 600)
    assert np.all(draws.weights.std(axis=0) > 1.3 * binomial)
    with pytest.raises(ValueError, match="No functional"):
        draws.value_interval()


def test_functionals_take_weights_as_repeated_rows(rng):
    X = make_multiview(600, 2, separation=2.0, random_state=rng).X
    counts = rng.integers(0, 4, size=600) * (X[:, 0] > 0) + 1
    model = MultiViewMixture(2, random_state=0).fit(X)
    repeated = model.expectation(lambda x: x[:, 0] ** 2, np.repeat(X, counts, axis=0), view=1)
    weighted = model.expectation(lambda x: x[:, 0] ** 2, X, view=1, sample_weight=counts)
    np.testing.assert_allclose(weighted.values, repeated.values, rtol=1e-8)
    assert np.all(weighted.standard_errors > repeated.standard_errors)  # repeated rows pretend to know more
    plain, heavy = (model.bootstrap(X, 20, random_state=0, sample_weight=w).weights for w in (None, counts))
    centre = model.fit(X, sample_weight=counts).weights_
    assert np.abs(heavy.mean(axis=0) - centre).max() < np.abs(plain.mean(axis=0) - centre).max()


@pytest.mark.parametrize("polish", [Sieve(factors=(2.0,), tol=1e-8), SmoothedEM(tol=1e-8)], ids=repr)
def test_weights_count_as_repeated_rows_in_a_polish(polish, rng):
    """Codes hold features and bandwidths fixed: the sieve is their table."""
    X, _, _ = make_multiview(300, 2, separation=2, random_state=rng)
    X = np.digitize(X, [-2.0, 0.0, 2.0]).astype(float)
    counts = rng.integers(0, 4, size=300)
    weighted, repeated = (MultiViewMixture(2, kernel=Delta(), polish=polish, random_state=0) for _ in range(2))
    weighted.fit(X, sample_weight=counts)
    repeated.fit(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-5)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-4)
    assert np.abs(weighted.weights_ - clone(weighted).fit(X).weights_).max() > 1e-4


def test_float_labels_are_labels_and_misplaced_ones_are_refused(rng):
    X, y, _ = make_multiview(300, 2, random_state=rng)
    labels = np.where(np.arange(300) < 30, y, -1)
    one, two = (MultiViewMixture(2, random_state=0).fit(X, given) for given in (labels, labels.astype(float)))
    np.testing.assert_array_equal(one.weights_, two.weights_)
    with pytest.raises(ValueError, match="one label per row"):
        MultiViewMixture(2).fit(X, labels[:-1])
    with pytest.raises(ValueError, match="y needs one label per row, 300; got 299"):
        MultiViewMixture(2).fit(X, y[:-1])  # of known classes only


FORMS = {
    "column": lambda y: y[:, None],
    "objects": lambda y: y.astype(object),
    "series": pd.Series,
    "NaN": lambda y: np.where(y < 0, np.nan, y),
    "NA": lambda y: pd.Series(y, dtype="Int64").replace(-1, pd.NA),
    "NA among objects": lambda y: pd.Series(y, dtype=object).replace(-1, pd.NA),
    "None": lambda y: [None if one < 0 else int(one) for one in y],
    "words": lambda y: pd.Series(y).map({0: "a", 1: "b", -1: pd.NA}),
    "text": lambda y: pd.Series(y).map({0: "a", 1: "b", -1: pd.NA}).astype("string"),
    "categories": lambda y: pd.Series(y).map({0: "a", 1: "b"}).astype("category"),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_labels_are_read_from_columns_and_objects(form):
    labels = np.array([0, -1, 1, -1])
    np.testing.assert_array_equal(as_labels(form(labels), np.zeros((4, 3))), labels)


UNUSED = {
    "names": (["a", "b"], "no row is marked as unknown; mark rows"),
    "nobody": (["", ""], "no row is marked as unknown|it does not hold classes|it holds no known class"),
}


@pytest.mark.parametrize("other", [[0, 1], [-1, -1], [-1.0, 0.5], np.eye(2)], ids=str)
def test_numbers_that_are_no_partial_labels_are_left_alone_in_silence(other, recwarn):
    assert as_labels(np.asarray(other), np.zeros((2, 3))) is None
    assert not recwarn


@pytest.mark.parametrize(("other", "why"), UNUSED.values(), ids=UNUSED.keys())
def test_names_that_are_no_partial_labels_are_left_alone_with_a_warning(other, why):
    with pytest.warns(UserWarning, match=f"y is not used: {why}"):
        assert as_labels(other, np.zeros((2, 3))) is None


def test_no_target_is_no_warning(recwarn):
    assert as_labels(None, np.zeros((2, 3))) is None
    assert not recwarn


def test_functionals_are_asked_only_of_rows_that_have_the_view(rng):
    X, _, _ = make_multiview(300, 2, random_state=rng)
    X[:, 0] = np.exp(X[:, 0])
    X[::3, 0] = np.nan
    model = MultiViewMixture(2, random_state=0).fit(X)

    def finite_log(x):
        assert not np.isnan(x).any()
        return np.log(x[:, 0])

    logs = model.expectation(finite_log, X).values
    np.testing.assert_allclose(model.bootstrap(X, 5, finite_log, random_state=0).values.mean(axis=0), logs, atol=0.3)
    with pytest.raises(ValueError, match="a function that is finite wherever it is asked"):
        model.bootstrap(X, 5, lambda x: np.full(len(x), np.inf))


def test_rows_of_other_classes_are_no_parameters_of_a_class(rng):
    X = make_multiview(1200, 3, design="gamma", random_state=rng).X
    first, second = (MultiViewMixture(3, random_state=seed).fit(X) for seed in (0, 1))

    assert second.bic(X) == pytest.approx(first.bic(X), rel=1e-4)  # the same optimum from other starts
    for view in first.components_:
        assert (view.n_parameters < 40).all()  # a range of some ten bandwidths


def test_views_that_never_come_together_make_one_class_or_a_warning(rng):
    X = np.full((300, 3), np.nan)
    X[np.arange(300), np.arange(300) % 3] = rng.normal(size=300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = MultiViewMixture(1, random_state=0).fit(X)
    assert one.score(X) == pytest.approx(-0.5 * np.log(2 * np.pi * np.e), abs=0.15)
    with pytest.warns(IdentifiabilityWarning, match="The polish started from k-means alone") as caught:
        MultiViewMixture(2, random_state=0).fit(X)
    assert {one.filename for one in caught} == {__file__}
