"""For all tests: hypothesis sets no deadline, since how fast a machine is proves nothing; and no
room is imported by the name it once had, which fails the session.

Runs are alike: the same examples are drawn each time, so that a failure is of the change that
brought it. ``--hypothesis-profile=search`` draws anew.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.old_names import Watch

settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ldfi", settings.get_profile("search"), derandomize=True)
settings.load_profile("ldfi")

LONG = "long"
"""The mark of tests that take more than half a minute."""


WATCH = Watch()
REPORTED: list[str] = []
"""What the workers of pytest-xdist found."""


def pytest_configure(config: pytest.Config) -> None:
    """Name our marks, and watch the names of imports from now on."""
    sys.meta_path.insert(0, WATCH)
    config.addinivalue_line("markers", f"{LONG}: takes more than half a minute; begins first")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Use one worker more than there are cores: a good part of the tests waits for something."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest: where several run side by side, none ends alone."""
    first = {item.path for item in items if item.get_closest_marker(LONG)}
    items.sort(key=lambda item: item.path not in first)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the session, or tell who started this worker."""
    found = WATCH.found()
    worker = getattr(session.config, "workeroutput", None)
    if worker is not None:
        worker["old_names"] = found
    REPORTED.extend(found)
    if REPORTED:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker of pytest-xdist has ended."""
    REPORTED.extend(getattr(node, "workeroutput", {}).get("old_names", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say who did it."""
    for line in sorted(set(REPORTED)):
        terminalreporter.write_line(f"FAILED: {line}", red=True)
