"""Fixtures for all tests, and the promise that every test runs."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn skips a check without it; read when scipy is imported

import numpy as np
import pytest

SEEDS = [int(seed) for seed in os.environ.get("LATENTVIEWS_SEEDS", "0 1 2").split()]


@pytest.fixture(params=SEEDS)
def rng(request):
    """A generator, from three seeds; set LATENTVIEWS_SEEDS for more."""
    return np.random.default_rng(request.param)


def pytest_addoption(parser):
    parser.addini("minimum_tests", "fail a whole run with fewer tests passed, or with any skipped", default="0")


def pytest_sessionfinish(session, exitstatus):
    """A run of the whole suite fails when tests went missing."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    whole = not session.config.option.keyword and session.config.args == session.config.getini("testpaths")
    if reporter is None or hasattr(session.config, "workerinput") or not whole or exitstatus != 0:
        return
    passed, skipped = (len(reporter.stats.get(kind, [])) for kind in ("passed", "skipped"))
    if skipped or passed < int(session.config.getini("minimum_tests")):
        expected = session.config.getini("minimum_tests")
        reporter.write_line(f"expected {expected} tests and none skipped; got {passed} and {skipped} skipped", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
