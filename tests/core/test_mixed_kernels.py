"""Kernels on columns of a view, and the product of spaces that they make."""

import numpy as np
import pytest
from scipy import stats

from latentviews import Delta, Gaussian, HalfLine, Linear, VonMises
from latentviews.core.kernels.mixed import in_view, smoothness, widened
from latentviews.core.kernels.product_space import ProductSpace
from latentviews.core.kernels.spaces import Circle, Discrete, Real

pytestmark = pytest.mark.cheap

MIXED = Gaussian(0.5).on([0]) * Delta().on([1]) * VonMises(0.4).on([2])


def mixed_rows(rng, n=40):
    """Numbers, codes and angles."""
    return np.column_stack([rng.normal(size=n), rng.integers(3, size=n), rng.uniform(-3, 3, size=n)])


def test_a_product_on_columns_is_the_product_of_the_kernels_of_every_column(rng):
    x, y = mixed_rows(rng), mixed_rows(rng, 7)
    single = [Gaussian(0.5), Delta(), VonMises(0.4)]

    expected = np.prod([k.gram(x[:, [j]], y[:, [j]]) for j, k in enumerate(single)], axis=0)

    np.testing.assert_allclose(MIXED.gram(x, y), expected, rtol=1e-12)
    np.testing.assert_allclose(MIXED.diagonal(x), np.diag(MIXED.gram(x, x)), rtol=1e-12)


def test_every_column_keeps_its_space():
    assert ProductSpace((Real(), Discrete(), Circle()), ((0,), (1,), (2,))) == MIXED.space
    assert [MIXED.space.column(j) for j in range(3)] == [Real(), Discrete(), Circle()]
    assert MIXED.space.mixed
    assert not MIXED.space.finite
    assert not MIXED.space.affine
    assert (Gaussian().on([0]) * Linear().on([1])).space is None


def test_names_become_places_in_the_view(rng):
    named = Gaussian(0.5).on(["x"]) * Delta().on(["code"]) * VonMises(0.4).on(["psi"])

    found = in_view(named, ["psi", "x", "code"], 3)

    x = mixed_rows(rng)
    np.testing.assert_array_equal(found.gram(x[:, [2, 0, 1]], x[:, [2, 0, 1]]), MIXED.gram(x, x))
    assert repr(in_view(Gaussian().on(["x"]), ["x"], 1)) == "Gaussian()"


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (Gaussian().on(["chi"]) * Delta().on([1]), "on column 'chi', which its view does not have"),
        (Gaussian().on([0]) * Delta().on([2]), "on column 2; columns are names, or places in the view, 0 to 1"),
        (Gaussian().on([0]), "each of its 2 column.s. once; those given take places .0."),
        (Gaussian().on([0]) * Delta().on([0, 1]), "once; those given take places .0, 0, 1."),
    ],
)
def test_columns_that_do_not_fit_the_view_are_a_sentence(kernel, sentence):
    with pytest.raises(ValueError, match=sentence):
        in_view(kernel, ["phi", "psi"], 2)


@pytest.mark.parametrize("kernel", [Gaussian() * Delta(), Gaussian().on([0]) * Delta(), Gaussian() * VonMises()])
def test_kernels_of_different_spaces_must_say_their_columns(kernel, rng):
    with pytest.raises(ValueError, match=r"must say which columns each takes.*Gaussian\(\).on\(\[0\]\)"):
        kernel.adapt(mixed_rows(rng)[:, :2])


def test_on_one_column_a_product_of_different_spaces_is_a_kernel_without_density(rng):
    kernel = (Gaussian(1.0) * Delta()).adapt(rng.normal(size=(5, 1)))

    assert kernel.space is None


def test_a_kernel_is_on_columns_once():
    with pytest.raises(ValueError, match="says its columns already"):
        Gaussian().on([0]).on([1])


def test_a_single_column_needs_no_list():
    assert repr(Gaussian().on(0) * VonMises().on("psi")) == repr(Gaussian().on([0]) * VonMises().on(["psi"]))
    with pytest.raises(ValueError, match="on one column at least"):
        Gaussian().on([])


def test_names_without_a_table_are_a_sentence(rng):
    with pytest.raises(ValueError, match=r"by name, .'psi'.; without a table that has names"):
        VonMises(0.5).on(["psi"]).gram(mixed_rows(rng), mixed_rows(rng))


def test_rules_are_read_off_their_own_columns(rng):
    x = mixed_rows(rng, 300)
    kernel = (Gaussian("isj").on([0]) * Delta().on([1]) * VonMises("silverman").on([2])).adapt(x)

    expected = [Gaussian("isj").adapt(x[:, [0]]).bandwidth, VonMises("silverman").adapt(x[:, [2]]).bandwidth]
    np.testing.assert_allclose(smoothness(kernel, x)[[0, 2]], expected)
    np.testing.assert_allclose(smoothness(widened(kernel, 2.0), x)[[0, 2]], 2 * np.array(expected))


@pytest.mark.parametrize("kernel", [Gaussian(0.5).on([0]) * Delta().on([1]), MIXED], ids=["grid", "drawn nodes"])
def test_a_mixed_kernel_has_mass_one_under_the_product_measure(kernel, rng):
    x = mixed_rows(rng, 200)[:, : kernel.space.dim]

    domain = kernel.space.quadrature(x, smoothness(kernel, x), rng)

    values = kernel.gram(domain.nodes, x[:50]).mean(axis=1)
    error = 6 * np.std(domain.weights * values * len(values)) / np.sqrt(len(values)) if x.shape[1] == 3 else 1e-6
    assert domain.weights @ values == pytest.approx(1, abs=error)
    assert np.isfinite(domain.log_background(domain.nodes)).all()


def test_the_background_is_the_product_of_the_columns_backgrounds(rng):
    x = mixed_rows(rng, 200)
    domain = MIXED.space.quadrature(x, smoothness(MIXED, x), rng)

    real = stats.cauchy.logpdf(x[:, 0], domain.center[0], domain.spread[0])

    np.testing.assert_allclose(domain.log_background(x), real - np.log(4) - np.log(2 * np.pi))


def test_draws_are_those_of_every_kernel_in_its_columns(rng):
    x, other = mixed_rows(rng), np.random.default_rng(5)

    drawn = MIXED.draw(x, np.random.default_rng(5))

    np.testing.assert_array_equal(drawn[:, [0]], Gaussian(0.5).draw(x[:, [0]], other))
    np.testing.assert_array_equal(drawn[:, 1], x[:, 1])
    np.testing.assert_array_equal(drawn[:, [2]], VonMises(0.4).draw(x[:, [2]], other))


def test_values_are_wrapped_mirrored_and_checked_by_their_columns_spaces():
    space = (Gaussian(space=HalfLine()).on([0]) * VonMises().on([1])).space
    x = np.array([[-1.0, 4.0], [2.0, 1.0]])

    np.testing.assert_allclose(space.reflected(x)[:, 0], [1.0, 2.0])
    np.testing.assert_allclose(space.wrapped(x)[:, 1], [4.0 - 2 * np.pi, 1.0])
    np.testing.assert_array_equal(space.contains(x), [[False, True], [True, True]])
    assert space.bordered
    assert not space.ordered


def test_the_mean_of_an_angle_is_a_direction_beside_the_mean_of_a_number():
    space = (Gaussian().on([1]) * VonMises().on([0])).space
    x = np.array([[3.0, 1.0], [-3.0, 2.0]])

    np.testing.assert_allclose(space.mean(lambda f: f(x).mean(axis=0)), [np.pi, 1.5])


def test_kernels_widen_with_the_columns_beside_them_and_the_codes_they_share_rows_with(rng):
    n = 1000
    x = np.column_stack([rng.normal(size=n), np.tile([0.0, 1.0], n // 2)])

    factors = (Gaussian().on([0]) * Delta().on([1])).space.widening(x, n)

    np.testing.assert_allclose(factors, [2**0.2, 1.0])  # half of the rows share a row's code
