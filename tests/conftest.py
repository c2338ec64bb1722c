"""Fixtures for all tests, and the promise that every test runs."""

import os
import shutil
import signal
from pathlib import Path

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn skips a check without it; read when scipy is imported

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

slow_is_fine = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("few", max_examples=3, derandomize=True, deadline=None, suppress_health_check=slow_is_fine)
settings.load_profile("few")
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as in a shell's background jobs, where interrupts would not come
    signal.signal(signal.SIGINT, signal.default_int_handler)
collect_ignore = ["minimal.py"]  # which `make wheel` runs, outside the checkout

# Chromium and its driver; .ci/run installs them and sets LATENTVIEWS_BROWSER, and then the tests run in any case
HAS_BROWSER = bool(shutil.which("chromium") and shutil.which("chromedriver")) or "LATENTVIEWS_BROWSER" in os.environ


def pytest_addoption(parser):
    parser.addoption(
        "--seeds",
        type=int,
        help="run every test that takes `rng` on the seeds 0, 1, …; by default three if marked cheap, else one",
    )


def pytest_generate_tests(metafunc):
    """A test that fits a model runs on one seed; algebra of milliseconds, marked cheap, on three."""
    if "rng" in metafunc.fixturenames:
        default = 3 if metafunc.definition.get_closest_marker("cheap") else 1
        metafunc.parametrize("rng", range(metafunc.config.getoption("seeds") or default), indirect=True)


@pytest.fixture
def rng(request):
    """A generator; `pytest_generate_tests` gives the seeds."""
    return np.random.default_rng(request.param)


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


def required_files(root):
    """The files that a whole run must have run tests of: every test file, and every module with a doctest."""
    files = [
        *root.glob("tests/**/test_*.py"),
        *(path for path in root.glob("src/**/*.py") if ">>> " in path.read_text()),
    ]
    without_browser = [path for path in files if HAS_BROWSER or "pytest.mark.browser" not in path.read_text()]
    return {path.relative_to(root).as_posix() for path in without_browser}


def pytest_sessionfinish(session, exitstatus):
    """A run of the whole suite fails when a file ran no test or a test was skipped."""
    config = session.config
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    whole = not config.option.keyword and not config.option.markexpr and config.args == config.getini("testpaths")
    if reporter is None or hasattr(config, "workerinput") or not whole or exitstatus != 0:
        return
    passed, skipped = (reporter.stats.get(kind, []) for kind in ("passed", "skipped"))
    idle = required_files(Path(config.rootpath)) - {report.nodeid.split("::")[0] for report in passed}
    if idle or skipped:
        names = ", ".join([*sorted(idle), *(report.nodeid for report in skipped)])
        reporter.ensure_newline()
        reporter.write_line(f"expected tests of every file and none skipped; these did not run: {names}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
