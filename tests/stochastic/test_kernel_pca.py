import pickle
import tracemalloc

import array_api_strict as strict
import numpy as np
import pandas as pd
import pytest
from scipy.special import eval_hermite
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import ConvergenceWarning

from catalogue import KERNEL_PCAS
from latentviews import (
    DoublyStochasticPCA,
    Gaussian,
    LandmarkPCA,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    VonMises,
    load,
    save,
)
from latentviews._arrays import in_library_of, on_host
from latentviews._validation import DivergenceError, UnsupportedError
from latentviews.core.kernels.base import Kernel
from latentviews.datasets import make_multiview
from latentviews.stochastic.expansions import (
    Expansion,
    RandomBlocks,
    StepSizes,
    cross_step,
    cross_warm_start,
    oja_step,
    rotation_of,
    warm_start,
)
from reference import doubly_stochastic_pca

GRID = np.linspace(-6, 6, 1001)[:, None]
NORMAL = np.exp(-(GRID[:, 0] ** 2) / 2)
PCAS = [clone(pca).set_params(random_state=0) for pca in KERNEL_PCAS]
models = pytest.mark.parametrize("model", PCAS, ids=repr)


def hermite_eigenpairs(x, rank, bandwidth=1.0):
    """Eigenvalues and eigenfunctions of exp(-(x-y)²/(2s²)) under N(0, 1) in closed form (Zhu et al. 1998)."""
    a, b = 0.25, 0.5 / bandwidth**2
    c = np.sqrt(a**2 + 2 * a * b)
    values = np.sqrt(2 * a / (a + b + c)) * (b / (a + b + c)) ** np.arange(rank)
    functions = [np.exp(-(c - a) * x**2) * eval_hermite(k, np.sqrt(2 * c) * x) for k in range(rank)]
    return values, np.stack(functions, axis=1)


def sine_of_angle(found, true, weights):
    """The sine of the largest angle between two spans in L² with these weights."""
    bases = [np.linalg.qr(np.sqrt(weights)[:, None] * part)[0] for part in (found, true)]
    return np.sqrt(max(0.0, 1 - np.linalg.svd(bases[0].T @ bases[1])[1].min() ** 2))


def normal_stream(seed, n_rows, batch=1024):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(min(batch, n_rows - start), 1)) for start in range(0, n_rows, batch))


def test_the_closed_form_solves_the_eigenvalue_equation():
    values, functions = hermite_eigenpairs(GRID[:, 0], 3)
    mass = NORMAL / NORMAL.sum()

    integrals = np.exp(-0.5 * (GRID - GRID.T) ** 2) @ (mass[:, None] * functions)

    np.testing.assert_allclose(integrals, functions * values, atol=1e-6 * np.abs(functions).max())


@pytest.mark.parametrize("max_blocks", [None, 5])
def test_eigenfunctions_of_gaussian_rows_are_those_of_the_closed_form(max_blocks, rng):
    model = DoublyStochasticPCA(3, kernel=Gaussian(1.0), max_blocks=max_blocks, random_state=0)
    model.fit(normal_stream(int(rng.integers(2**31)), 20_000))
    values, functions = hermite_eigenpairs(GRID[:, 0], 3)

    assert sine_of_angle(model.transform(GRID), functions, NORMAL) < 0.03
    np.testing.assert_allclose(model.explained_variance_, values, rtol=0.06)
    for k in range(3):  # and one by one, which the rotation is for
        assert sine_of_angle(model.eigenfunctions_(GRID)[:, [k]], functions[:, [k]], NORMAL) < 0.1


def test_errors_fall_with_the_length_of_the_stream():
    _, functions = hermite_eigenpairs(GRID[:, 0], 3)

    def error(n_rows):
        fits = [DoublyStochasticPCA(3, kernel=Gaussian(1.0), n_frequencies=32, random_state=seed) for seed in range(5)]
        fits = [fit.fit(normal_stream(100 + seed, n_rows)) for seed, fit in enumerate(fits)]
        return np.mean([sine_of_angle(fit.transform(GRID), functions, NORMAL) for fit in fits])

    # N^(-1/2) would be a factor of 2.8
    assert error(16_000) < error(2000) / 1.7


@pytest.mark.parametrize("kernel", [Laplace(1.0), Matern(1.0), VonMises(0.8), Gaussian(1.0) + Laplace(1.0)], ids=repr)
def test_every_shift_invariant_kernel_has_its_eigenfunctions_found(kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 1))
    exact = LandmarkPCA(2, kernel=kernel, n_landmarks=150, center=False, random_state=0).fit(X)

    found = DoublyStochasticPCA(2, kernel=kernel, random_state=0).fit(X)

    assert sine_of_angle(found.transform(X), exact.transform(X), np.ones(len(X))) < 0.1
    np.testing.assert_allclose(found.explained_variance_, exact.explained_variance_, rtol=0.1)


def test_a_step_is_that_of_the_talk(rng):
    blocks = RandomBlocks(Gaussian(1.0), 2, 5, seed=3)
    rows, rates = rng.normal(size=(6, 2)), [0.5, 0.4, 0.3, 0.2, 0.1, 0.05]
    phi = blocks(rng.normal(size=(30, 2)), 0)
    start, _ = warm_start(blocks, phi.T @ phi / 30, rows, 2, 2.0, 30)

    literal = doubly_stochastic_pca(rows, lambda j: lambda x: blocks(x[None, :], j)[0], start.coefficients[0], rates)
    found = start
    for row, rate in zip(rows, rates, strict=True):
        found, _ = oja_step(found, row[None, :], rate)

    for ours, theirs in zip(found.coefficients, literal, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-14)


def test_a_capped_step_is_ojas_rule_on_all_features(rng):
    blocks, x = RandomBlocks(Gaussian(1.0), 2, 4, seed=1), rng.normal(size=(20, 2))
    alpha = [rng.normal(size=(8, 2)) / 4 for _ in range(3)]

    found, _ = oja_step(Expansion(blocks, tuple(alpha)), x, 0.3, cap=3)

    phi = np.concatenate([blocks(x, j) for j in range(3)], axis=1)
    stacked = np.concatenate(alpha)
    y = phi @ stacked
    expected = stacked @ (np.eye(2) - 0.3 * y.T @ y / 20) + 0.3 / 20 * (phi / 3).T @ y  # φ/√3 has the kernel's scale
    np.testing.assert_allclose(np.concatenate(found.coefficients), expected, rtol=1e-10, atol=1e-14)


def test_blocks_are_unbiased_and_better_together(rng):
    x, kernel = rng.normal(size=(8, 2)), Gaussian(1.0)
    blocks = RandomBlocks(kernel, 2, 16, seed=int(rng.integers(2**31)))
    gram = kernel.gram(x, x) / kernel.diagonal(x)[0]

    errors = np.array([blocks(x, j) @ blocks(x, j).T - gram for j in range(64)])

    # the lattice goes on from block to block, so the mean errs less than a 64^(-1/2)-th of one
    assert np.abs(errors.mean(axis=0)).max() < np.sqrt(np.mean(errors**2)) / 8


@pytest.mark.parametrize("dim", [2, 12])
def test_blocks_are_the_same_in_every_array_library(dim, rng):
    x, blocks = rng.normal(size=(4, dim)), RandomBlocks(Laplace(3.0), dim, 6, seed=5)

    np.testing.assert_allclose(np.from_dlpack(blocks(strict.asarray(x), 3)), blocks(x, 3), rtol=1e-12, atol=1e-14)


def test_arrays_go_to_other_libraries_without_negative_strides(monkeypatch):
    given = []
    monkeypatch.setattr(strict, "asarray", lambda values, **_: given.append(values))

    in_library_of(np.arange(6.0).reshape(2, 3)[:, ::-1], strict.zeros(1))

    assert min(given[0].strides) > 0  # PyTorch refuses others
    np.testing.assert_array_equal(given[0], [[2, 1, 0], [5, 4, 3]])


class OnlyDraws(Kernel):
    """A shift-invariant kernel from elsewhere, that can draw frequencies and no more."""

    def gram(self, x, y):
        return Gaussian(1.0).gram(x, y)

    def frequencies(self, size, dim, rng):
        return rng.normal(size=(dim, size))


def test_a_kernel_that_only_draws_is_enough():
    _, functions = hermite_eigenpairs(GRID[:, 0], 2)

    model = DoublyStochasticPCA(2, kernel=OnlyDraws(), random_state=0).fit(normal_stream(0, 16_000))

    assert sine_of_angle(model.transform(GRID), functions, NORMAL) < 0.1


def test_the_whole_fit_runs_in_other_array_libraries(rng):
    X = rng.normal(size=(300, 2))
    model = DoublyStochasticPCA(2, kernel=Gaussian(1.0), batch_size=100, n_frequencies=8, random_state=0)
    ours = clone(model).fit(X)

    theirs = clone(model).fit(strict.asarray(X))

    found = theirs.transform(strict.asarray(X[:5]))
    assert isinstance(found, type(strict.asarray(X)))
    np.testing.assert_allclose(np.from_dlpack(found), ours.transform(X[:5]), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(theirs.transform(X[:5]), ours.transform(X[:5]), rtol=1e-8, atol=1e-10)


def test_eigenfunctions_can_be_called_on_whole_numbers_and_on_rows_alone():
    model = DoublyStochasticPCA(2, kernel=Gaussian(1.0), random_state=0).fit(normal_stream(0, 2000))
    whole = np.array([[-1], [0], [2]])

    np.testing.assert_array_equal(model.eigenfunctions_(whole), model.eigenfunctions_(whole.astype(float)))
    with pytest.raises(ValueError, match=r"An array of 1 column\(s\) is expected; got ndarray of shape \(3, 2\)"):
        model.eigenfunctions_(np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"An array of 1 column\(s\) is expected; got list"):
        model.eigenfunctions_([[0.0]])


@pytest.mark.parametrize("max_blocks", [None, 4])
def test_memory_is_that_of_the_coefficients(max_blocks):
    model = DoublyStochasticPCA(3, kernel=Gaussian(1.0), batch_size=500, max_blocks=max_blocks, random_state=0)
    peaks = []
    for count in (10, 30):
        model.fit(normal_stream(0, 500 * count, 500))
        coefficients = 8 * (2 * 64) * 3 * (count if max_blocks is None else max_blocks)
        assert len(pickle.dumps(model)) < coefficients * 1.1 + 20_000
        tracemalloc.start()
        model.partial_fit(np.random.default_rng(1).normal(size=(500, 1)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # twenty more blocks of 128 × 3 numbers, held before and after the step; no rows, no features
    assert peaks[1] - peaks[0] < (3 * 20 * 8 * 128 * 3 if max_blocks is None else 50_000)


def test_a_generator_and_its_batches_give_the_same_model():
    model = DoublyStochasticPCA(2, batch_size=512, random_state=0)

    streamed = clone(model).fit(normal_stream(0, 5000, 512))
    batches = clone(model)
    for batch in normal_stream(0, 5000, 512):
        batches.partial_fit(batch)

    np.testing.assert_array_equal(streamed.transform(GRID), batches.transform(GRID))


@models
@pytest.mark.parametrize("library", [np, strict], ids=["numpy", "strict"])
def test_a_saved_model_goes_on_with_its_stream(model, library, tmp_path):
    first, second = map(library.asarray, np.random.default_rng(0).normal(size=(2, 100, 2)))
    straight = clone(model).partial_fit(first)
    save(straight, tmp_path / "model")

    restored = load(tmp_path / "model")

    np.testing.assert_array_equal(on_host(restored.transform(first)), on_host(straight.transform(first)))
    found, expected = (on_host(one.partial_fit(second).transform(first)) for one in (restored, straight))
    np.testing.assert_array_equal(found, expected)


@models
def test_values_do_not_depend_on_the_rows_beside_them(model, rng):
    X = rng.normal(size=(9000, 2))
    model = clone(model).fit(X[:1000])

    parts = np.concatenate([model.transform(X[:37]), model.transform(X[37:5000]), model.transform(X[5000:])])

    np.testing.assert_allclose(model.transform(X), parts, rtol=1e-9, atol=1e-12)


def test_small_batches_take_small_steps():
    steps = StepSizes(first=0.6, gap=0.06, factor=2.0, batch_size=1000)

    assert steps(0, 1000) == pytest.approx(1 / 0.6)
    assert steps(100_000, 10) == pytest.approx(steps(100_000, 1000) / 100)
    assert steps(10**9, 1000) == pytest.approx(2.0 / 0.06 / 10**6, rel=1e-3)


def test_steps_that_diverge_are_reported_and_leave_the_model_as_it_was():
    model = DoublyStochasticPCA(2, kernel=Gaussian(1.0), step_size=1.0, batch_size=100, random_state=0)
    model.partial_fit(np.random.default_rng(0).normal(size=(900, 1)))
    model.step_sizes_ = StepSizes(first=1e-4, gap=1e-4, factor=2.0, batch_size=100)  # steps of 10⁴ times the safe size
    kept = []

    def go_on():
        for batch in normal_stream(0, 5000, 100):
            kept[:] = [model.transform(GRID)]
            model.partial_fit(batch)

    with pytest.raises(DivergenceError, match=r"The steps diverge: values have a mean square of .* Take smaller steps"):
        go_on()

    np.testing.assert_array_equal(model.transform(GRID), kept[0])
    assert np.all(np.isfinite(kept[0]))


BAD = {
    "kernel": (DoublyStochasticPCA(kernel=Linear()), TypeError, "DoublyStochasticPCA needs a shift-invariant kernel"),
    "steps": (DoublyStochasticPCA(step_size=-1.0), ValueError, "step_size must be a positive, finite number; got -1.0"),
    "batch": (DoublyStochasticPCA(batch_size=0), ValueError, "batch_size must be an integer of at least 1"),
    "cap": (DoublyStochasticPCA(max_blocks=0), ValueError, "max_blocks must be an integer of at least 1"),
    "rank": (
        DoublyStochasticPCA(50),
        UnsupportedError,
        r"first batch shows \d+ direction\(s\) with any variance, and 50",
    ),
    "features": (DoublyStochasticPCA(25), UnsupportedError, r"shows \d+ direction\(s\) with any variance, and 25"),
    "landmarks": (LandmarkPCA(50), ValueError, "50 components need as many features; the landmarks give"),
    "pilot": (LandmarkPCA(pilot_size=0), ValueError, "pilot_size must be an integer of at least 1"),
    "name": (LandmarkPCA(kernel="rbf"), TypeError, "kernel must be an object with a method `gram`; got 'rbf'"),
    "class": (LandmarkPCA(kernel=Gaussian), TypeError, "kernel must be an object with a method `gram`; got <class"),
    "stochastic": (DoublyStochasticPCA(kernel=Laplace), TypeError, r"an object, Laplace\(\), not its class"),
}


@pytest.mark.parametrize(("model", "error", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_done_gets_a_sentence(model, error, message, rng):
    with pytest.raises(error, match=message):
        clone(model).fit(rng.normal(size=(20, 2)))


@pytest.mark.parametrize("selection", ["random_cholesky", "uniform"])
def test_rows_that_the_kernel_does_not_see_get_a_sentence(selection):
    with pytest.raises(ValueError, match="The kernel is zero between all rows"):
        LandmarkPCA(1, kernel=Linear(), n_landmarks=5, selection=selection).fit(np.zeros((20, 2)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("selection", ["random_cholesky", "uniform"])
@pytest.mark.parametrize(
    ("kernel", "size", "what"),
    [
        (Linear(), 1e80, "The sums of kernel values are out of range; scale the rows"),
        (Polynomial(3), 1e100, "The values of the kernel are out of range; scale the rows"),
        (Linear(), 1e160, "whose square is no number; scale the column"),
    ],
    ids=["sums", "values", "rows"],
)
def test_numbers_out_of_range_get_a_sentence(kernel, size, what, selection, rng):
    with pytest.raises(ValueError, match=what):
        LandmarkPCA(1, kernel=kernel, selection=selection).fit(size * rng.normal(size=(50, 2)))


def test_an_empty_stream_gets_a_sentence():
    with pytest.raises(ValueError, match="hold no row; at least one batch is needed"):
        DoublyStochasticPCA().fit(iter([]))
    with pytest.raises(ValueError, match="holds no batch; at least one row is needed"):
        LandmarkPCA().fit(Again([]))


def test_a_generator_cannot_be_read_for_landmarks_and_again(rng):
    with pytest.raises(TypeError, match="Data are read more than once, and a generator only once"):
        LandmarkPCA().fit(rng.normal(size=(50, 2)) for _ in range(2))


@models
def test_bad_batches_get_a_sentence(model, rng):
    X, name = rng.normal(size=(50, 2)), type(model).__name__

    with pytest.raises(ValueError, match=f"X has 3 features, but {name} is expecting 2"):
        clone(model).fit(Again([X, rng.normal(size=(50, 3))]))
    with pytest.raises(ValueError, match="contains NaN"):
        clone(model).fit(Again([X, X * np.nan]))
    with pytest.raises(TypeError, match="partial_fit takes one batch, an array; call it for every batch"):
        clone(model).partial_fit(Again([X]))


def test_rows_of_a_stochastic_stream_come_alone(rng):
    X = rng.normal(size=(50, 2))

    with pytest.raises(TypeError, match="DoublyStochasticPCA takes batches of rows; got a tuple of 2"):
        DoublyStochasticPCA().fit(Again([(X, np.ones(50))]))


def test_batches_without_rows_are_passed_over(rng):
    X = rng.normal(size=(100, 2))
    model = DoublyStochasticPCA(n_frequencies=16, batch_size=50, random_state=0)

    found = clone(model).fit(iter([X[:0], X[:50], X[:0], X[50:]]))

    np.testing.assert_array_equal(found.transform(X), clone(model).fit(iter([X])).transform(X))


def test_landmarks_pass_over_batches_without_rows(rng):
    X = rng.normal(size=(100, 2))
    model = LandmarkPCA(n_landmarks=20, random_state=0)

    found = clone(model).fit(Again([X[:0], X[:50], X[:0], X[50:]]))

    np.testing.assert_array_equal(found.transform(X), clone(model).fit(Again([X[:50], X[50:]])).transform(X))
    with pytest.raises(ValueError, match="holds no batch; at least one row is needed"):
        clone(model).fit(Again([X[:0]]))


@pytest.mark.parametrize("center", [True, False])
def test_every_row_a_landmark_is_exact_kernel_pca(center, rng):
    X, kernel = rng.normal(size=(60, 2)), Gaussian(1.0)
    gram = kernel.correlation(X, X)
    middle = np.eye(60) - 1 / 60 if center else np.eye(60)
    values, vectors = np.linalg.eigh(middle @ gram @ middle / 60)

    model = LandmarkPCA(3, kernel=kernel, n_landmarks=None, center=center).fit(X)

    np.testing.assert_allclose(model.explained_variance_, values[::-1][:3], rtol=1e-8)
    scores = vectors[:, ::-1][:, :3] * np.sqrt(60 * values[::-1][:3])
    np.testing.assert_allclose(np.abs(model.transform(X)), np.abs(scores), rtol=1e-6, atol=1e-8)
    assert model.explained_variance_ratio_.sum() == pytest.approx(values[-3:].sum() / values.sum())


def test_landmarks_agree_with_scikit_learns_kernel_pca(rng):
    X = rng.normal(size=(400, 2))
    theirs = KernelPCA(3, kernel="rbf", gamma=0.5).fit(X)

    ours = LandmarkPCA(3, kernel=Gaussian(1.0), n_landmarks=100, random_state=0).fit(X)

    assert sine_of_angle(ours.transform(X), theirs.transform(X), np.ones(400)) < 1e-3


def test_a_kernel_that_is_not_shift_invariant_is_taken_as_it_is(rng):
    X = rng.normal(size=(200, 3)) * [3, 2, 1]

    model = LandmarkPCA(2, kernel=Linear(), n_landmarks=3, random_state=0).fit(X)

    np.testing.assert_allclose(model.explained_variance_, np.linalg.eigvalsh(np.cov(X.T, bias=True))[:0:-1], rtol=1e-6)


def test_many_columns_are_no_trouble(rng):
    X = rng.normal(size=(300, 1500)) / np.arange(1, 1501)

    model = LandmarkPCA(2, kernel=Gaussian(1.5), n_landmarks=100, random_state=0).fit(X)

    assert np.abs(np.corrcoef(model.transform(X)[:, 0], X[:, 0])[0, 1]) > 0.95


def test_landmark_sums_add_over_batches_and_streams(rng):
    X = rng.normal(size=(3000, 2))
    model = LandmarkPCA(2, n_landmarks=30, pilot_size=1000, random_state=0)
    parts = clone(model).partial_fit(X[:1000]).partial_fit(X[1000:1100]).partial_fit(X[1100:])
    once = clone(model).partial_fit(X)

    np.testing.assert_allclose(parts.explained_variance_, once.explained_variance_, rtol=1e-10)
    np.testing.assert_allclose(parts.transform(X), once.transform(X), rtol=1e-6, atol=1e-9)
    assert parts.n_samples_seen_ == 3000
    streamed = LandmarkPCA(2, n_landmarks=30, random_state=0).fit(Batches(X))
    assert streamed.n_samples_seen_ == 3000


def test_weights_in_a_stream_count_rows_more_than_once(rng):
    X, counts = rng.normal(size=(300, 2)), rng.integers(1, 4, size=300)
    model = LandmarkPCA(2, kernel=Gaussian(1.0), n_landmarks=None)
    repeated = clone(model).fit(np.repeat(X, counts, axis=0))

    weighted = clone(model).fit(Batches(X, counts))

    np.testing.assert_allclose(weighted.explained_variance_, repeated.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(weighted.explained_variance_ratio_, repeated.explained_variance_ratio_, rtol=1e-9)
    np.testing.assert_allclose(np.abs(weighted.transform(X)), np.abs(repeated.transform(X)), rtol=1e-5, atol=1e-8)
    assert weighted.n_samples_seen_ == 300


@models
def test_batches_may_be_tables_of_any_kind(model, rng):
    X = rng.normal(size=(200, 2))
    parts = [X[:100], X[100:]]
    expected = clone(model).fit(Again(parts)).transform(X)

    for batches in ([part.tolist() for part in parts], [pd.DataFrame(part) for part in parts]):
        np.testing.assert_array_equal(clone(model).fit(Again(batches)).transform(X), expected)


class Again:
    """Batches that can be read again."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


class Batches(Again):
    """A stream of the rows of an array, and of their weights."""

    def __init__(self, X, weights=None, count=7):
        rows = np.array_split(X, count)
        super().__init__(rows if weights is None else list(zip(rows, np.array_split(weights, count), strict=True)))


def test_cross_steps_find_what_views_share(rng):
    """Population: rows repeated as two equal views have the eigenfunctions of one as shared directions."""
    X = rng.normal(size=(4000, 1))
    blocks = [RandomBlocks(Gaussian(1.0), 1, 32, seed=seed) for seed in (1, 2)]
    found, steps = cross_warm_start(blocks, [X[:500], X[:500]], 2, 2.0, 500)
    for start in range(500, 4000, 500):
        part = X[start : start + 500]
        found = cross_step(found, [part, part], steps(start, 500))
    _, functions = hermite_eigenpairs(GRID[:, 0], 2)

    for view in found:
        assert sine_of_angle(view(GRID), functions, NORMAL) < 0.12


def test_cross_steps_start_with_views_that_agree(rng):
    X, _, _ = make_multiview(2000, 3, random_state=rng)
    blocks = [RandomBlocks(Gaussian(1.0), 1, 32, seed=seed) for seed in range(3)]

    found, _ = cross_warm_start(blocks, [X[:, [t]] for t in range(3)], 3, 2.0, 1000)

    values = [view(X[:, [t]]) for t, view in enumerate(found)]
    for a, b in [(0, 1), (0, 2), (1, 2)]:  # otherwise steps would lead them apart
        cross = values[a].T @ values[b]
        assert np.linalg.eigvalsh(cross + cross.T)[0] > 0


def test_a_rotation_settles_order_and_signs(rng):
    root = rng.normal(size=(3, 3))

    values, rotation = rotation_of(root @ root.T)

    assert np.all(np.diff(values) <= 0)
    np.testing.assert_allclose(rotation.T @ root @ root.T @ rotation, np.diag(values), atol=1e-10)
    assert np.all(rotation[np.abs(rotation).argmax(axis=0), np.arange(3)] > 0)


@pytest.mark.filterwarnings("error")
def test_rows_far_out_get_coordinates_or_a_sentence(rng):
    X = rng.normal(size=(100, 3))
    landmarks = LandmarkPCA(2, kernel=Matern(1.0), n_landmarks=20, random_state=0).fit(X)
    stochastic = DoublyStochasticPCA(2, kernel=Laplace(1.0), random_state=0).partial_fit(X)

    found = landmarks.transform(np.full((1, 3), 1e20, np.float32))

    np.testing.assert_allclose(found[0], -landmarks.components_ @ landmarks.mean_, rtol=1e-5)
    with pytest.raises(ValueError, match="Row values are too large for these features in float32; scale the columns"):
        stochastic.transform(np.full((1, 3), 1e37, np.float32))


@models
def test_whole_numbers_of_other_libraries_are_numbers(model, rng):
    X = rng.integers(5, size=(200, 2))

    found = clone(model).fit(strict.asarray(X)).transform(strict.asarray(X))

    np.testing.assert_allclose(on_host(found), clone(model).fit(X).transform(X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("model", [DoublyStochasticPCA(2, random_state=0), LandmarkPCA(2, random_state=0)], ids=repr)
def test_a_list_of_batches_is_a_stream(model, rng):
    X = rng.normal(size=(300, 2))
    listed = clone(model).fit([X[:200], X[200:]])
    assert listed.transform(X).shape == (300, 2)
    assert listed.n_features_in_ == 2


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


TABLES = {
    "digits": load_digits().data / 16,
    "wine": standardised(load_wine().data),
    "breast cancer": standardised(load_breast_cancer().data),
}


@pytest.mark.parametrize("rank", [2, 5])
@pytest.mark.parametrize("X", TABLES.values(), ids=TABLES)
def test_one_pass_over_a_table_comes_to_exact_kernel_pca(X, rank):
    model = DoublyStochasticPCA(rank, random_state=0).fit(X)
    gram = model.kernel_.correlation(X, X)

    vectors = np.linalg.eigh(gram)[1][:, ::-1][:, :rank]

    assert sine_of_angle(model.transform(X), vectors, np.ones(len(X))) < 0.1
    np.testing.assert_allclose(model.explained_variance_, np.linalg.eigvalsh(gram)[::-1][:rank] / len(X), rtol=0.05)


def test_a_table_is_a_start_for_a_stream(rng):
    X = rng.normal(size=(3000, 1))
    _, functions = hermite_eigenpairs(GRID[:, 0], 3)
    model = DoublyStochasticPCA(3, kernel=Gaussian(1.0), random_state=0).fit(X)

    for batch in normal_stream(int(rng.integers(2**31)), 10_000):
        model.partial_fit(batch)

    assert sine_of_angle(model.transform(GRID), functions, NORMAL) < 0.1
    assert model.n_samples_seen_ == 13_000


def test_too_few_features_for_a_table_are_told():
    with pytest.warns(
        ConvergenceWarning, match=r"8 blocks of 2 frequencies they are at a sine of \d\.\d\d to those of"
    ):
        DoublyStochasticPCA(3, n_frequencies=2, random_state=0).fit(TABLES["digits"])


def test_a_stream_that_was_too_short_is_told():
    with pytest.warns(ConvergenceWarning, match=r"on the last 797 rows the eigenfunctions are at a sine of .* halves"):
        DoublyStochasticPCA(3, random_state=0).fit(iter([TABLES["digits"][:1000], TABLES["digits"][1000:]]))


@pytest.mark.parametrize("seed", [202, 204])
def test_a_stream_of_one_batch_is_judged_by_more_than_half_of_it(seed):
    with pytest.warns(ConvergenceWarning, match=r"on the last 1797 rows the eigenfunctions are at a sine of 0\.[34]"):
        DoublyStochasticPCA(3, random_state=seed).fit([TABLES["digits"]])


@pytest.mark.filterwarnings("error")
def test_a_stream_that_was_long_enough_is_not_told():
    model = DoublyStochasticPCA(3, kernel=Gaussian(1.0), random_state=0).fit(normal_stream(0, 20_000))

    assert model.n_samples_seen_ == 20_000  # all of it, and no warning on the way
