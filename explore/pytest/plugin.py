"""pytest's hooks. Nothing is imported and nothing done for tests without marker and fixture.

pytest loads this module wherever ldfi is installed, mostly beside a service that carries ``fit``
and has none of what exploring needs. So that is imported where somebody asks for it, and only there
its absence is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeGuard

import pytest

from ldfi.explore.pytest.fixture import PRESENT, Ldfi
from ldfi.explore.pytest.remote import (
    address_asked,
    elsewhere_of,
    names_of,
    received,
    services_of,
    services_started,
)

if TYPE_CHECKING:
    from ldfi.explore.external.services import Services
    from ldfi.explore.pytest.describe_test import Document
    from ldfi.explore.pytest.loop import Explored, Finding
    from ldfi.explore.pytest.marker import Bounds
    from ldfi.explore.pytest.survived import Basis, SurvivedRuns
    from ldfi.lineage.outline import Outline

NEEDED: Final = (
    "httpx",
    "jsonpath_rfc9535",
    "opentelemetry.proto",
    "opentelemetry.sdk",
    "pydantic",
    "pysat",
    "yaml",
)
"""What the extra ``ldfi[pytest]`` installs, as it is imported."""
SCENARIOS: Final = ".ldfi"
"""Where scenario files go without ``--ldfi-report``: a folder in pytest's root."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    group = parser.getgroup("ldfi", "tests under every combination of failures worth trying")
    group.addoption(
        "--ldfi-report",
        metavar="FILE",
        type=Path,
        help="write what was found as JSON to FILE; Markdown, scenarios and evidence beside it",
    )
    group.addoption(
        "--ldfi-seed",
        metavar="N",
        type=int,
        help="the order in which faults are tried; the same seed, the same order (default: 0)",
    )
    group.addoption(
        "--ldfi-lessons",
        metavar="FOLDER",
        type=Path,
        help="keep runs that were survived here, and do not make them again while neither the test "
        "nor any service has changed (their code=[...])",
    )
    group.addoption(
        "--receive",
        metavar="ADDRESS",
        help="receive the spans of services in other processes here: HOST:PORT, OTLP over HTTP or "
        "gRPC (default: $LDFI_RECEIVE; `ldfi explore env` prints what to tell the services)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker. Raises pytest.UsageError for our options where the extra is missing."""
    config.pluginmanager.register(TerminalSummary(), "ldfi-summary")
    config.addinivalue_line(
        "markers",
        "ldfi(max_size=2, kinds=('error',), delay=10.0, protected=(), time_limit=60.0): run the "
        "test under every combination of failures worth trying",
    )
    given = [
        name
        for name in ("--ldfi-report", "--ldfi-seed", "--ldfi-lessons")
        if config.getoption(name) is not None
    ]
    lacking = _lacking(given[0]) if given else ""
    if lacking:
        raise pytest.UsageError(lacking)


@pytest.fixture
def ldfi(request: pytest.FixtureRequest) -> Ldfi:
    """Explore the test, as the marker does; ``ldfi.faults`` is what the present run injects."""
    item: pytest.Item = request.node
    return item.stash.setdefault(PRESENT, Ldfi())


@pytest.fixture(scope="session")
def ldfi_services(request: pytest.FixtureRequest) -> Iterator[Services]:
    """Start the services that tests talk to: ``ldfi_services.start(Service(...))``."""
    with services_of(request.session) as services:
        yield services


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Take over the tests that are ours."""
    if not _is_ours(item) or _refusal(item):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    _explore(item, nextitem)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse what cannot be explored before anything runs. Raises pytest.UsageError."""
    if _is_worker(config):
        return
    for item in items:
        if _is_ours(item) and (refusal := _refusal(item)):
            raise pytest.UsageError(refusal)
    if address_asked(config) and any(map(_is_ours, items)):
        from ldfi.errors import Invalid

        try:
            received(config)
        except Invalid as error:
            raise pytest.UsageError(f"ldfi: {error}") from error


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse it here in a worker of pytest-xdist: nobody would hear of a usage error there. Say of
    what is marked and no function that it is not explored."""
    marker = item.get_closest_marker("ldfi")
    if marker is not None and not isinstance(item, pytest.Function):
        said = (
            f"{item.nodeid} is marked with ldfi and is not explored: it is no test function, and"
            " nothing else can be run again. Mark functions, not what they are in"
        )
        if marker in item.own_markers:
            pytest.fail(said, pytrace=False)
        item.warn(pytest.PytestWarning(said))
    if _is_worker(item.config) and _is_ours(item) and (refusal := _refusal(item)):
        pytest.fail(refusal, pytrace=False)


class TerminalSummary:
    """Collects what was found, from the workers of pytest-xdist too, and says it at the end."""

    def __init__(self) -> None:
        self._found: list[Document] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect what a test's report says of its exploration (one of pytest's hooks)."""
        document = getattr(report, "ldfi", None)
        if document is not None:
            self._found.append(document)

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        """Say how many runs it took, and what was found; write the report."""
        if not self._found:
            return
        from ldfi.explore.pytest.describe_test import headline, notes
        from ldfi.explore.pytest.report import total, write_report

        terminalreporter.section("ldfi")
        for document in sorted(self._found, key=lambda each: str(each["test"])):
            terminalreporter.write_line(f"{document['test']}: {headline(document)}")
            for note in notes(document):
                terminalreporter.write_line(f"    {note}")
        terminalreporter.write_line(total(self._found))
        path: Path | None = config.getoption("--ldfi-report")
        if path is not None:
            write_report(path, self._found)
            terminalreporter.write_line(f"report: {path}")


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _is_ours(item: pytest.Item) -> TypeGuard[pytest.Function]:
    return isinstance(item, pytest.Function) and (
        item.get_closest_marker("ldfi") is not None or "ldfi" in item.fixturenames
    )


def _refusal(item: pytest.Function) -> str:
    """Return why a test of ours cannot be explored; empty where it can."""
    from ldfi.explore.pytest.marker import InvalidMarker

    lacking = _lacking(item.nodeid)
    if lacking:
        return lacking
    try:
        _bounds(item)
    except InvalidMarker as error:
        return f"{item.nodeid}: ldfi: {error}"
    return ""


def _lacking(asked_by: str) -> str:
    """Return what to install before anything can be explored; empty where all is there.

    Looks without importing: tests that run before the first of ours are let be.
    """
    absent = [name for name in NEEDED if find_spec(name) is None]
    if not absent:
        return ""
    return (
        f"{asked_by} asks for ldfi's plugin, and {', '.join(absent)} cannot be imported: "
        "pip install 'ldfi[pytest]'"
    )


def _bounds(item: pytest.Function) -> Bounds:
    """Read the marker. Raises InvalidMarker."""
    from ldfi.explore.pytest.marker import Bounds

    marker = item.get_closest_marker("ldfi")
    seed: int = item.config.getoption("--ldfi-seed") or 0
    return Bounds.of(marker.args, marker.kwargs, seed) if marker else Bounds(seed=seed)


def _explore(item: pytest.Function, nextitem: pytest.Item | None) -> None:
    from ldfi.explore.pytest.describe_test import document_of
    from ldfi.explore.pytest.protocol import explore_item

    bounds = _bounds(item)
    item.stash.setdefault(PRESENT, Ldfi())
    survived = _survived(item, bounds)

    def keep(
        finding: Finding, good: tuple[Outline, ...], bad: tuple[Outline, ...]
    ) -> tuple[str, str]:
        return _kept(item, bounds, finding, good, bad)

    def tell(explored: Explored, seconds: float, broken_teardowns: int) -> Document:
        if survived is not None:
            from ldfi.explore.pytest.survived_files import keep_survived

            unwritten = keep_survived(_survived_file(item), survived.document())
            explored.not_kept = unwritten or explored.not_kept
        names = names_of(item.config)
        return document_of(item.nodeid, explored, bounds, seconds, broken_teardowns, keep, names)

    explore_item(item, nextitem, bounds, tell, elsewhere_of(item), survived)


def _survived(item: pytest.Item, bounds: Bounds) -> SurvivedRuns | None:
    """Return what the test has survived before; None if that is not kept."""
    if item.config.getoption("--ldfi-lessons") is None:
        return None
    from ldfi.explore.pytest.survived import SurvivedRuns
    from ldfi.explore.pytest.survived_files import basis_of_test, read_survived

    def basis() -> Basis:
        return basis_of_test(item, bounds, services_started(item.config))

    return SurvivedRuns(basis, read_survived(_survived_file(item)))


def _survived_file(item: pytest.Item) -> Path:
    from ldfi.explore.pytest.survived_files import survived_file

    return survived_file(item.config.getoption("--ldfi-lessons"), item.nodeid)


def _kept(
    item: pytest.Item,
    bounds: Bounds,
    finding: Finding,
    good: tuple[Outline, ...],
    bad: tuple[Outline, ...],
) -> tuple[str, str]:
    """Write the scenario file of a finding; say where it is, or why there is none."""
    from ldfi.errors import InvalidScenario
    from ldfi.explore.pytest.scenarios import write_scenario

    report: Path | None = item.config.getoption("--ldfi-report")
    root = item.config.rootpath
    folder = root / SCENARIOS if report is None else report.absolute().parent
    try:
        path = write_scenario(folder, item.nodeid, finding, good, bad, bounds)
    except (OSError, InvalidScenario) as error:
        return "", str(error)
    return str(path.relative_to(root) if path.is_relative_to(root) else path), ""
