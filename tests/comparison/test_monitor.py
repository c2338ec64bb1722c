"""The alarm is raised when the stream changes, and at its stated rate when it does not."""

import numpy as np
import pytest
from scipy import stats

from latentviews import DriftMonitor, Gaussian, Polynomial


def test_the_rate_of_false_alarms_is_as_stated(rng):
    """Over many references and streams alike, within a fifth of the stated rate, give or take the counting noise."""
    alarms = windows = 0
    for seed in range(10):
        monitor = DriftMonitor(25, false_alarm=0.05, n_landmarks=20, random_state=seed).fit(rng.normal(size=(1000, 1)))
        monitor.partial_fit(rng.normal(size=(25 * 200, 1)))
        alarms, windows = alarms + len(monitor.alarms_), windows + len(monitor.statistics_)

    low, high = stats.binom.ppf([1e-4, 1 - 1e-4], windows, [0.05 * 0.8, 0.05 * 1.2])
    assert low <= alarms <= high


@pytest.mark.parametrize("change", [lambda x: x + 1, lambda x: 2.5 * x], ids=["place", "spread"])
def test_a_change_is_seen_within_a_window_of_it(change, rng):
    monitor = DriftMonitor(100, random_state=0).fit(rng.normal(size=(1000, 2)))

    monitor.partial_fit(rng.normal(size=(300, 2)))
    before = monitor.drifted_
    monitor.partial_fit(change(rng.normal(size=(200, 2))))

    assert not before
    np.testing.assert_array_equal(monitor.alarms_, [399, 499])


def test_batches_of_any_size_are_one_stream(rng):
    reference, stream = rng.normal(size=(300, 2)), rng.normal(size=(140, 2))
    whole, parts = (DriftMonitor(30, random_state=0).fit(reference) for _ in range(2))

    whole.partial_fit(stream)
    for batch in np.array_split(stream, [1, 2, 50, 119]):
        parts.partial_fit(batch)

    np.testing.assert_allclose(parts.statistics_, whole.statistics_, rtol=1e-12)
    assert parts.n_rows_seen_ == whole.n_rows_seen_ == 140


def test_the_statistic_is_the_squared_distance_of_the_means(rng):
    reference = rng.normal(size=(60, 1))
    stream = reference[:20]  # landmarks, so that features are exact
    kernel = Gaussian(1.0)
    unit = kernel.diagonal(np.zeros((1, 1)))[0]
    expected = (
        kernel.gram(reference, reference).mean()
        + kernel.gram(stream, stream).mean()
        - 2 * kernel.gram(reference, stream).mean()
    ) / unit

    monitor = DriftMonitor(20, kernel=kernel, random_state=0).fit(reference).partial_fit(stream)

    np.testing.assert_allclose(monitor.statistics_, [expected], rtol=1e-6)


def test_a_reference_of_less_than_two_windows_is_refused(rng):
    with pytest.raises(ValueError, match="at least two windows, 200 rows; got n_samples=150"):
        DriftMonitor(100).fit(rng.normal(size=(150, 1)))


def test_alarms_rarer_than_the_threshold_can_tell_are_refused(rng):
    with pytest.raises(ValueError, match=r"at least 0.0001, one in the 10000 windows .* got 1e-05"):
        DriftMonitor(10, false_alarm=1e-5).fit(rng.normal(size=(100, 1)))


def test_columns_of_another_number_are_refused_and_nothing_is_lost(rng):
    monitor = DriftMonitor(10, random_state=0).fit(rng.normal(size=(50, 2)))

    with pytest.raises(ValueError, match="3 features"):
        monitor.partial_fit(rng.normal(size=(10, 3)))

    assert monitor.n_rows_seen_ == 0


def test_rows_like_the_reference_are_more_typical(rng):
    monitor = DriftMonitor(10, random_state=0).partial_fit(rng.normal(size=(500, 1)))

    near, far = monitor.score_samples([[0.0], [6.0]])

    assert 1 >= near > 3 * far


def test_rows_in_single_precision_are_judged_in_double_as_the_reference_is(rng):
    rows = rng.normal(size=(60, 2))
    rows[0] = 1e30
    monitor = DriftMonitor(window=20, kernel=Polynomial(), n_landmarks=3, random_state=0).fit(rows.astype(np.float32))

    with np.errstate(over="raise"):
        found = monitor.score_samples(rows.astype(np.float32))

    np.testing.assert_allclose(found, monitor.score_samples(rows.astype(np.float32).astype(float)))
