"""Gram matrices of time series and images."""

import numpy as np
import pytest

from latentviews import global_alignment_gram, patch_gram

pytestmark = pytest.mark.cheap


def alignments(n, m):
    """All ways from (0, 0) to (n - 1, m - 1) that move on in one series or in both."""
    if n == 0 or m == 0:
        return []
    if n == m == 1:
        return [[(0, 0)]]
    before = alignments(n - 1, m) + alignments(n, m - 1) + alignments(n - 1, m - 1)
    return [[*path, (n - 1, m - 1)] for path in before]


def literal(x, y, width):
    """The sum over alignments, one by one."""
    e = np.exp(-((x[:, None] - y[None, :]) ** 2).sum(axis=2) / (2 * width**2))
    local = e / (2 - e)
    return sum(np.prod([local[step] for step in path]) for path in alignments(len(x), len(y)))


def test_global_alignment_is_the_sum_over_all_alignments(rng):
    series = [rng.normal(size=(n, 2)) for n in (1, 3, 4, 3)]

    values = np.array([[literal(x, y, 1.3) for y in series] for x in series])
    expected = values / np.sqrt(np.outer(values.diagonal(), values.diagonal()))

    np.testing.assert_allclose(global_alignment_gram(series, 1.3), expected, rtol=1e-12)


def test_global_alignment_is_symmetric_positive_and_likes_the_same_at_another_pace(rng):
    slow, fast = np.sin(np.linspace(0, 6, 40)), np.sin(np.linspace(0, 6, 34))
    gram = global_alignment_gram([slow, fast, np.cos(np.linspace(0, 6, 40)), *rng.normal(size=(5, 30))])

    np.testing.assert_allclose(gram, gram.T, rtol=1e-10)
    np.testing.assert_allclose(gram.diagonal(), 1)
    assert np.linalg.eigvalsh(gram)[0] > -1e-10
    assert gram[0, 1] > 10 * gram[0, 2]


def test_the_match_kernel_is_the_sum_over_all_pairs_of_patches(rng):
    images = rng.normal(size=(3, 6, 5))

    def patches(image):
        return [(image[i : i + 3, j : j + 3].ravel(), np.array([i, j])) for i in (0, 2) for j in (0, 2)]

    def literal_matches(one, other):
        return sum(
            np.exp(-((p - q) ** 2).sum() / (2 * 1.5**2)) * np.exp(-((z - w) ** 2).sum() / (2 * 2.5**2))
            for p, z in patches(one)
            for q, w in patches(other)
        )

    values = np.array([[literal_matches(one, other) for other in images] for one in images])
    expected = values / np.sqrt(np.outer(values.diagonal(), values.diagonal()))
    found = patch_gram(images, 3, 2, 1.5, 2.5)

    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert np.linalg.eigvalsh(found)[0] > -1e-10


def test_blocks_of_images_make_no_difference(rng, monkeypatch):
    images = rng.normal(size=(7, 6, 6))
    whole = patch_gram(images)
    monkeypatch.setattr("latentviews.core.kernels.alignments.BLOCK", 1)

    np.testing.assert_allclose(patch_gram(images), whole, rtol=1e-12)


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda: global_alignment_gram([[1.0], []]), r"at least one step; number 1 is not: it has shape \(0,\)"),
        (lambda: global_alignment_gram([[1.0, np.nan]]), "finite numbers of shape"),
        (lambda: global_alignment_gram([np.ones((3, 2)), np.ones(3)]), r"as many columns; got \[1, 2\]"),
        (lambda: global_alignment_gram([[1.0, 2.0]], "wide"), "positive number or \"median\"; got 'wide'"),
        (lambda: patch_gram(np.zeros((3, 2, 9))), r"no side shorter than a patch of 4; got shape \(3, 2, 9\)"),
        (lambda: patch_gram(np.zeros((3, 9, 9)), 3, reach=-1.0), "reach must be a positive number"),
        (lambda: patch_gram([np.zeros((5, 5)), np.zeros((6, 5))]), "images is an array of finite numbers of shape"),
        (lambda: patch_gram([np.zeros((5, 5)), np.zeros((5, 6))]), r"height, width\), .* got shape \(2,\)"),
        (lambda: global_alignment_gram([[np.ones((2, 2)), np.ones((2, 3))]]), r"number 0 is not: it has shape \(2,\)"),
        (lambda: global_alignment_gram([]), "takes a list of series, at least one; got none"),
        (lambda: global_alignment_gram(["up", "down"]), "finite numbers of shape"),
    ],
)
def test_what_is_no_series_or_image_is_a_sentence(ask, sentence):
    with pytest.raises(ValueError, match=sentence):
        ask()
