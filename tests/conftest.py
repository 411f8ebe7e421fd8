"""For all tests: tiers by what a test needs, and how Hypothesis draws.

A test without a mark is pure, on SQLite, in this process: `make test` runs these, and none of
them may be skipped. One mark says that a test needs more (``TIERS``). A file whose ``pytestmark``
puts it into another tier than the one asked for is not even imported.

Hypothesis sets no deadline, since how fast a machine is proves nothing. Runs are alike: the same
examples are drawn each time, so that a failure is of the change that brought it.
``--hypothesis-profile=search`` draws anew, and more of them. No room is imported by the name it
once had, which fails the session.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from hypothesis import HealthCheck, settings

from tests.old_names import Watch

settings.register_profile(
    "search", max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ldfi", settings.get_profile("search"), max_examples=25, derandomize=True)
settings.load_profile("ldfi")

TIERS: Final = {
    "servers": "needs a server or a browser: PostgreSQL, Kafka, Redis, Envoy, Prometheus, Chromium",
    "languages": "needs Go, Node, Java or Rust",
    "long": "takes long: kills, stories told from end to end, simulations of hundreds of runs",
}
"""Marks. Of several the last one counts: it names the tier that runs the test."""

pytest_plugins = ("tests.kit.databases",)

WATCH = Watch()
REPORTED: list[str] = []
"""What the workers of pytest-xdist found."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let one tier be chosen; all of them run where none is."""
    parser.addoption("--tier", choices=["test", *TIERS], help="run this tier of the tests only")


def pytest_configure(config: pytest.Config) -> None:
    """Name our marks, and watch the names of imports from now on."""
    sys.meta_path.insert(0, WATCH)
    for mark, meaning in TIERS.items():
        config.addinivalue_line("markers", f"{mark}: {meaning}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Use one worker more than there are cores: a good part of the tests waits for something."""
    return (os.cpu_count() or 1) + 1


def tier(marks: set[str]) -> str:
    """Return the tier of a test that has these marks."""
    return next((each for each in reversed(TIERS) if each in marks), "test")


def tier_of_file(source: str) -> str:
    """Return the tier that a module's ``pytestmark`` puts all of its tests into."""
    found = re.search(r"^pytestmark = (\[\n(?:    .*\n|\n)*\]|.*)$", source, re.MULTILINE)
    return tier(set(re.findall(r"pytest\.mark\.(\w+)", found[1])) if found else set())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of another tier, unread: what they import is heavy."""
    asked = config.getoption("--tier")
    if asked is None or not collection_path.match("test_*.py"):
        return None
    whole = tier_of_file(collection_path.read_text(encoding="utf-8"))
    return True if _ORDER[whole] > _ORDER[asked] else None


_ORDER: Final = {name: place for place, name in enumerate(["test", *TIERS])}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tier that was asked for; begin with the files that take longest."""
    for item in items:
        if _again_on_postgresql(item):
            item.add_marker("long")
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long)
    asked = config.getoption("--tier")
    if asked is None:
        return
    others = [item for item in items if tier({m.name for m in item.iter_markers()}) != asked]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in set(others)]


def _again_on_postgresql(item: pytest.Item) -> bool:
    """Return whether a test that SQLite answers runs on PostgreSQL, far from what talks to it."""
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    there = any(isinstance(each, str) and each == "postgresql" for each in values)
    return there and not {"store", "process", "streams"} & {*item.path.parts}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail what is skipped in the tier that needs nothing: there, skipped is not looked at."""
    report = yield
    if (
        report.skipped
        and not hasattr(report, "wasxfail")
        and item.config.getoption("--tier") == "test"
    ):
        report.outcome = "failed"
        report.longrepr = (
            f"{item.nodeid} was skipped, and `make test` skips nothing: mark what it needs"
        )
    return report


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


@pytest.fixture(scope="session", autouse=True)
def _certificates_are_read_once() -> Iterator[None]:
    """Each client of httpx would read them anew, for 26 ms of the processor."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "httpx._transports.default.create_ssl_context", cache(httpx.create_ssl_context)
        )
        yield
