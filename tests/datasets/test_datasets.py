import gzip
import hashlib

import numpy as np
import pytest
from scipy import integrate, stats

from latentviews.datasets import collections, flowcap_samples, load_flowcap, load_series, make_multiview
from latentviews.datasets.synthetic import DESIGNS

pytestmark = pytest.mark.cheap

designs = pytest.mark.parametrize("design", DESIGNS)


@designs
def test_shapes_of_data_labels_and_truth(design, rng):
    X, y, truth = make_multiview(200, 3, design=design, n_views=4, random_state=rng)

    assert X.shape == (200, 4)
    assert y.shape == (200,)
    assert len(truth.components) == 4
    assert truth.components[0].density(X[:, 0]).shape == (200, 3)
    assert np.all(np.isfinite(X))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_weights_grow_linearly_and_sum_to_one(k):
    weights = make_multiview(10, k, random_state=0).truth.weights

    np.testing.assert_allclose(weights, [2 * h / (k * (k + 1)) for h in range(1, k + 1)], rtol=1e-12)
    assert weights.sum() == pytest.approx(1)


def test_labels_follow_the_weights(rng):
    _, y, truth = make_multiview(5000, 4, random_state=rng)

    assert stats.chisquare(np.bincount(y, minlength=4), 5000 * truth.weights).pvalue > 1e-6


@designs
def test_densities_integrate_to_one(design, rng):
    truth = make_multiview(1, 3, design=design, random_state=rng).truth

    for view in truth.components:
        for h in range(3):
            jumps = sorted({float(law.support()[0]) for _, law in view.laws[h] if np.isfinite(law.support()[0])})
            mass, _ = integrate.quad(lambda x, v=view, h=h: v.density(x)[0, h], -60, 60, points=[*jumps, 0], limit=200)
            assert mass == pytest.approx(1, abs=1e-6)


@designs
def test_rows_of_a_class_follow_its_density(design, rng):
    X, y, truth = make_multiview(3000, 3, design=design, random_state=rng)
    grid = np.linspace(-40, 40, 160_001)

    for t, view in enumerate(truth.components):
        cumulative = integrate.cumulative_trapezoid(view.density(grid), grid, axis=0, initial=0)
        for h in range(3):
            rows = X[y == h, t]
            assert stats.kstest(rows, lambda v, h=h, c=cumulative: np.interp(v, grid, c[:, h])).pvalue > 1e-6 / 9


@designs
def test_views_are_independent_inside_a_class(design, rng):
    X, y, _ = make_multiview(3000, 3, design=design, random_state=rng)

    for h in range(3):
        assert stats.spearmanr(X[y == h, 0], X[y == h, 1]).pvalue > 1e-6


@pytest.mark.parametrize("design", ["gaussian", "gamma"])
@pytest.mark.parametrize("separation", [1.2, 4.0])
def test_means_are_a_permutation_of_equal_steps(design, separation, rng):
    truth = make_multiview(1, 4, design=design, separation=separation, random_state=rng).truth

    for view in truth.components:
        means = [parts[0][1].mean() for parts in view.laws]
        np.testing.assert_allclose(np.sort(means), separation * np.array([-1.5, -0.5, 0.5, 1.5]), atol=1e-12)


def test_spreads_are_those_of_the_design(rng):
    laws = [parts[0][1] for parts in make_multiview(1, 8, design="gamma", random_state=rng).truth.components[0].laws]

    assert [law.dist.name for law in laws] == ["norm", "expon"] * 4
    assert all(0.6 <= law.std() <= 1.2 for law in laws[::2])
    assert all(0.8 <= law.std() <= 1.4 for law in laws[1::2])


def test_shapes_have_equal_means_and_the_stated_laws():
    view = make_multiview(1, 3, design="shapes", random_state=0).truth.components[0]
    x = np.linspace(-9, 9, 50)

    two = (stats.norm.pdf(x, -2.5, 0.6) + stats.norm.pdf(x, 2.5, 0.6)) / 2
    np.testing.assert_allclose(view.density(x), np.stack([stats.norm.pdf(x), two, stats.laplace.pdf(x, 0, 3)], axis=1))


def test_views_differ_unless_identical(rng):
    x = np.linspace(-20, 20, 100)

    different = make_multiview(1, 8, random_state=rng).truth.components
    identical = make_multiview(1, 8, identical=True, random_state=rng).truth.components

    assert not np.allclose(different[0].density(x), different[1].density(x))
    np.testing.assert_array_equal(identical[0].density(x), identical[1].density(x))
    order = [np.argsort([parts[0][1].mean() for parts in view.laws]) for view in different]
    assert not np.array_equal(order[0], order[1]) or not np.array_equal(order[0], order[2])


def test_a_density_takes_a_vector_or_a_column():
    view = make_multiview(1, 2, random_state=0).truth.components[0]

    np.testing.assert_array_equal(view.density(np.zeros(3)), view.density(np.zeros((3, 1))))


@designs
def test_data_are_a_function_of_the_seed(design):
    first, again, other = (make_multiview(50, 3, design=design, random_state=seed) for seed in (1, 1, 2))

    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"design": "cauchy"}, r"design must be one of \('gaussian', 'gamma', 'shapes'\); got 'cauchy'"),
        ({"design": "shapes", "n_components": 2}, 'design="shapes" has three classes; got n_components=2'),
        ({"n_components": 0}, "n_components must be an integer of at least 1; got 0"),
        ({"n_samples": 2.5}, "n_samples must be an integer of at least 1; got 2.5"),
        ({"n_views": 0}, "n_views must be an integer of at least 1; got 0"),
    ],
)
def test_bad_parameters_get_a_sentence(params, message):
    with pytest.raises(ValueError, match=message):
        make_multiview(**params)


def test_the_samples_of_flowcap_are_known():
    assert [len(flowcap_samples(name)) for name in ("dlbcl", "gvhd", "hsct")] == [21, 8, 20]


@pytest.fixture
def collection(tmp_path, monkeypatch):
    """A folder with a made-up sample, and what its contents ought to be."""
    content = gzip.compress(b"CD3,CD5,label\n1,2.5,0\n3,4,2\n")
    (tmp_path / "flowcap_dlbcl").mkdir()
    (tmp_path / "flowcap_dlbcl" / "dlbcl_001.csv.gz").write_bytes(content)
    known = {"dlbcl_001": hashlib.sha256(content).hexdigest(), "dlbcl_003": "0" * 64}
    monkeypatch.setattr(collections, "_flowcap_hashes", lambda: known)
    return tmp_path


def test_a_sample_is_read_from_a_folder(collection, monkeypatch):
    X, y, markers = load_flowcap("dlbcl_001", collection)
    np.testing.assert_array_equal(X, [[1, 2.5], [3, 4]])
    np.testing.assert_array_equal(y, [0, 2])
    assert markers == ["CD3", "CD5"]
    monkeypatch.setenv("LATENTVIEWS_DATA", str(collection))
    np.testing.assert_array_equal(load_flowcap("dlbcl_001").X, X)


def test_samples_that_cannot_be_had_get_one_clear_sentence(collection, monkeypatch):
    monkeypatch.delenv("LATENTVIEWS_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="LATENTVIEWS_DATA"):
        load_flowcap("dlbcl_001")
    with pytest.raises(FileNotFoundError, match="where the data are to be had"):
        load_flowcap("dlbcl_003", collection)
    with pytest.raises(ValueError, match="sample must be one of dlbcl_001"):
        load_flowcap("dlbcl_1", collection)
    (collection / "flowcap_dlbcl" / "dlbcl_001.csv.gz").write_bytes(b"other")
    with pytest.raises(ValueError, match="SHA-256 differs"):
        load_flowcap("dlbcl_001", collection)


@pytest.mark.parametrize("load", [load_series, load_flowcap])
def test_names_and_folders_of_data_that_are_not_there_are_told(load, tmp_path):
    with pytest.raises(ValueError, match=r"must be one of .*; got \['a'\]"):
        load(["a"], tmp_path)
    name = "geyser" if load is load_series else "dlbcl_001"
    with pytest.raises(FileNotFoundError, match=r"There is no .*csv.gz; "):
        load(name, tmp_path)
    with pytest.raises(TypeError, match="folder must be the name of a directory"):
        load(name, 3)


@pytest.mark.parametrize("collection", ["DLBCL", None, ["dlbcl"]])
def test_a_collection_that_is_none_is_told(collection):
    with pytest.raises(ValueError, match="collection must be one of dlbcl, gvhd, hsct; got"):
        flowcap_samples(collection)
