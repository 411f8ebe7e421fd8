"""For all tests: hypothesis sets no deadline, since how fast a machine is proves nothing; and no
room is imported by the name it once had, which fails the session."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.old_names import Watch

settings.register_profile("ldfi", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ldfi")

WATCH = Watch()
REPORTED: list[str] = []
"""What the workers of pytest-xdist found."""


def pytest_configure() -> None:
    """Watch from now on."""
    sys.meta_path.insert(0, WATCH)


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
