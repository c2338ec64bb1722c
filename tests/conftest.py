"""Fixtures for all tests, and the promise that every test runs."""

import os
import shutil

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn skips a check without it; read when scipy is imported

import numpy as np
import pytest

SEEDS = [int(seed) for seed in os.environ.get("LATENTVIEWS_SEEDS", "0 1 2").split()]


@pytest.fixture(params=SEEDS)
def rng(request):
    """A generator, from three seeds; set LATENTVIEWS_SEEDS for more."""
    return np.random.default_rng(request.param)


# Chromium and its driver; .ci/run installs them and sets LATENTVIEWS_BROWSER, and then the tests run in any case
HAS_BROWSER = bool(shutil.which("chromium") and shutil.which("chromedriver")) or "LATENTVIEWS_BROWSER" in os.environ


def pytest_addoption(parser):
    parser.addini("minimum_tests", "fail a whole run with fewer tests passed, or with any skipped", default="0")
    parser.addini("minimum_browser_tests", "the same for tests marked browser, where there is one", default="0")


def pytest_collection_modifyitems(config, items):
    """Without a browser its tests are left out; `pytest_terminal_summary` says so."""
    if not HAS_BROWSER:
        left_out = [item for item in items if item.get_closest_marker("browser")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


def pytest_terminal_summary(terminalreporter):
    if not HAS_BROWSER:
        terminalreporter.write_line(
            "Tests marked browser were LEFT OUT: chromium and chromedriver are not installed here. `apt-get install "
            "chromium chromium-driver` adds them; .ci/run does so itself and always runs these tests.",
            yellow=True,
        )


def pytest_sessionfinish(session, exitstatus):
    """A run of the whole suite fails when tests went missing."""
    config = session.config
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    whole = not config.option.keyword and not config.option.markexpr and config.args == config.getini("testpaths")
    if reporter is None or hasattr(config, "workerinput") or not whole or exitstatus != 0:
        return
    passed, skipped = (reporter.stats.get(kind, []) for kind in ("passed", "skipped"))
    in_browser = sum("browser" in report.keywords for report in passed)
    for kind, found in (("tests", len(passed) - in_browser), ("browser_tests", in_browser)):
        expected = int(config.getini(f"minimum_{kind}")) if kind == "tests" or HAS_BROWSER else 0
        if skipped or found < expected:
            name = kind.replace("_", " ")
            got = f"got {found} and {len(skipped)} skipped"
            reporter.write_line(f"expected {expected} {name} and none skipped; {got}", red=True)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
