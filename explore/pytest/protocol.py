"""One test, run as often as it takes: set up, called and torn down anew each time.

Fixtures of the function are made again for every run, wider ones are shared as between tests.
What pytest is told of it all is one test with one result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
from _pytest.unittest import TestCaseFunction

from ldfi.errors import LdfiError
from ldfi.explore.pytest.armed import Armed, armed
from ldfi.explore.pytest.bounds import Bounds
from ldfi.explore.pytest.describe_test import Document, failure_of
from ldfi.explore.pytest.fixture import PRESENT
from ldfi.explore.pytest.loop import Explored, explore
from ldfi.explore.pytest.recorder import NotRun
from ldfi.explore.pytest.run import Passed, Run
from ldfi.explore.pytest.survived import SurvivedRuns
from ldfi.fit.protocol.faults import Fault

if TYPE_CHECKING:
    from ldfi.explore.external.session import Elsewhere

_ENDING: Final = (pytest.exit.Exception, KeyboardInterrupt)
"""What ends the session, wherever it is raised."""

LOST: Final = 2
"""Times that a run is made again of which spans did not come."""

ONE_LINE: Final = 200
"""Characters of an error that are shown where one line has to do."""


class FoundWeaknesses(LdfiError):  # noqa: N818
    """Raised in the name of a test that fails under some faults; the message has it all."""


class _BrokenFixture(LdfiError):  # noqa: N818
    """A fixture failed, so that nothing more can be learned: pytest reports it as ever."""


class _Tries:
    """Runs a test again and again. ``reports``, ``subtests`` and ``faults`` are those of the
    latest run."""

    def __init__(self, item: pytest.Function, bounds: Bounds, process: Armed) -> None:
        self._item = item
        self._bounds = bounds
        self._process = process
        self._failed: pytest.CallInfo[None] | None = None
        self.reports: list[pytest.TestReport] = []
        self.subtests: list[pytest.TestReport] = []
        self.faults: tuple[Fault, ...] = ()
        self.broken_teardowns = 0

    def run(self, faults: tuple[Fault, ...]) -> Run:
        """Run the test; again where spans of it were lost, a few times. Raises _BrokenFixture."""
        run, passing = self._run(faults)
        for _ in range(LOST):
            if not run.unseen or not passing:
                break
            run, passing = self._run(faults)
        return run

    def _run(self, faults: tuple[Fault, ...]) -> tuple[Run, bool]:
        """Run the test once. Returns also whether missing spans may come in another run."""
        item, began = self._item, time.time()
        recorder = self._process.next_run()
        self.reports, self.faults, called = [], faults, None
        with kept_back(item) as self.subtests, _anew(item, faults):
            try:
                if self.phase("setup").excinfo is None:
                    called = self._call(faults)
            finally:
                # The parent as what comes next: all that is the function's own is torn down.
                torn_down = self.phase("teardown", nextitem=item.parent)
        if called is None or (torn_down.excinfo is not None and not faults):
            raise _BrokenFixture
        self.broken_teardowns += torn_down.excinfo is not None
        passed, error = _outcome(called, self.subtests)
        ended = time.time()
        shown = self._process.shown(failed=passed is False)
        run = Run(
            passed,
            shown.lineage,
            error,
            recorder.asked,
            item.stash[PRESENT].was_degraded,
            recorder.errors(),
            shown.problem,
            began,
            ended,
            shown.died,
        )
        return run, shown.passing

    def phase(self, when: Any, **arguments: Any) -> pytest.CallInfo[None]:
        """Run one of pytest's three phases, not reported to anybody yet."""
        hook = getattr(self._item.ihook, f"pytest_runtest_{when}")
        return self._reported(when, lambda: hook(item=self._item, **arguments))

    def tear_down_wider(self, nextitem: pytest.Item | None) -> None:
        """Tear down what was shared by all runs and is of no use to the next test."""
        state = self._item.session._setupstate
        self._reported("teardown", lambda: state.teardown_exact(nextitem))

    def _reported(self, when: Any, does: Callable[[], None]) -> pytest.CallInfo[None]:
        item = self._item
        call = pytest.CallInfo.from_call(does, when=when, reraise=_ENDING)
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        if report.failed:
            self._failed = call
        self.reports.append(report)
        return call

    def as_ever(self) -> None:
        """Report the latest run as that of any other test; debuggers are let in."""
        for report in self.reports:
            if report.failed and self._failed is not None:
                because = "the test fails without any fault; nothing was injected"
                if self.faults:
                    because = f"a fixture failed while {', '.join(map(str, self.faults))}"
                report.sections.append(("ldfi", because))
                if report.when == self._failed.when:
                    self._item.ihook.pytest_exception_interact(
                        node=self._item, call=self._failed, report=report
                    )

    def _call(self, faults: tuple[Fault, ...]) -> pytest.CallInfo[None]:
        item = self._item
        function = item.obj
        item.obj = self._process.within(function, faults, self._bounds.delay)
        if isinstance(item, TestCaseFunction):  # which looks an async method up by itself
            setattr(item.instance, item.name, item.obj)
        try:
            return self.phase("call")
        finally:
            item.obj = function


def explore_item(
    item: pytest.Function,
    nextitem: pytest.Item | None,
    bounds: Bounds,
    tell: Callable[[Explored, float, int], Document],
    elsewhere: Elsewhere | None = None,
    survived: SurvivedRuns | None = None,
) -> None:
    """Explore a test, and report it to pytest as one.

    ``tell`` is given what came of it, the seconds it took, and the runs with faults whose teardown
    failed. ``elsewhere``: where the spans of services in other processes come in, if they do.
    ``survived``: runs that need not be made again, if somebody keeps them.
    """
    started = time.time()
    explored, unseen, as_ever = None, "", False
    with armed(elsewhere) as process:
        tries = _Tries(item, bounds, process)
        try:
            explored = explore(
                item.nodeid,
                tries.run,
                bounds,
                lambda: time.time() - started > bounds.time_limit,
                process.doubt,
                survived,
            )
        except _BrokenFixture:
            as_ever = True
        except NotRun as error:
            unseen = f"ldfi: {error}"
    reports, subtests = tries.reports, tries.subtests
    if unseen:
        reports[1:] = [_verdict(item, unseen, started)]
    elif explored is not None:
        document = tell(explored, time.time() - started, tries.broken_teardowns)
        as_ever = explored.good is not None and explored.good.passed is not True
        if not as_ever:
            reports[1:] = [_verdict(item, failure_of(document), started)]
        reports[1].ldfi = document  # type: ignore[attr-defined] # xdist carries it along
    if as_ever:
        tries.as_ever()
        reports[1:1] = subtests
    tries.reports = []
    tries.tear_down_wider(nextitem)
    if not any(report.failed for report in reports if report.when == "teardown"):
        reports = [each for each in reports if each.when != "teardown"] + tries.reports
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)


def _verdict(item: pytest.Function, failure: str, started: float) -> pytest.TestReport:
    """Report the result of all runs as that of a call. ``failure``: empty where there is none."""

    def call() -> None:
        if failure:
            raise FoundWeaknesses(failure)

    item._report_sections.clear()
    outcome = pytest.CallInfo.from_call(call, when="call")
    report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=outcome)
    report.start, report.stop = started, time.time()
    report.duration = report.stop - report.start
    if report.failed:
        report.longrepr = failure
    return report


@contextmanager
def _anew(item: pytest.Function, faults: tuple[Fault, ...]) -> Iterator[None]:
    """Make the item as if it had never run, and again afterwards; as pytest does for plugins
    that run a test again. A class's test gets a new instance."""
    item.stash[PRESENT].faults, item.stash[PRESENT].was_degraded = faults, False
    item._report_sections.clear()
    request: Any = getattr(item, "_request", None)
    if not request:
        item._initrequest()
    try:
        yield
    finally:
        item._request = False  # type: ignore[assignment]
        item.funcargs = None  # type: ignore[assignment]
        if item.cls is not None:
            for made in ("_instance", "_obj"):
                vars(item).pop(made, None)


def _outcome(
    call: pytest.CallInfo[None], subtests: Sequence[pytest.TestReport]
) -> tuple[Passed, str]:
    """Return how a run went, and in one line how it failed: by itself, or in one of its
    subtests."""
    passed = _passed(call)
    failed = [each for each in subtests if each.failed]
    if passed is False or not failed:
        return passed, _error(call)
    crash = getattr(failed[0].longrepr, "reprcrash", None)
    said = str(getattr(crash, "message", failed[0].longreprtext))
    return False, f"a subtest failed: {said}".partition("\n")[0][:ONE_LINE]


def _passed(call: pytest.CallInfo[None]) -> Passed:
    if call.excinfo is None:
        return True
    if isinstance(call.excinfo.value, pytest.skip.Exception | pytest.xfail.Exception):
        return None
    return False


def _error(call: pytest.CallInfo[None]) -> str:
    """Say in one line how the test failed; empty where it did not."""
    said = "" if call.excinfo is None else call.excinfo.exconly(tryshort=True)
    return said.strip().partition("\n")[0][:ONE_LINE]


# Subtests of a run: whoever fails in one of them fails, and pytest hears of it once.
#
# unittest's ``subTest`` and the fixture ``subtests`` report each subtest as it ends, by the hooks
# of its test, and the test itself goes on and passes. While a test is run again and again these
# reports are kept back: they tell how the run went, and are passed on where the test fails by
# itself.
@contextmanager
def kept_back(item: pytest.Item) -> Iterator[list[pytest.TestReport]]:
    """Keep what is reported of an item within the block, instead of having pytest hear of it."""
    kept: list[pytest.TestReport] = []
    before = type(item)

    class KeptBack(before):  # type: ignore[misc, valid-type]
        """The item, of which nobody hears."""

        @property
        def ihook(self) -> Any:
            return _Hooks(super().ihook, kept)

    item.__class__ = KeptBack
    try:
        yield kept
    finally:
        item.__class__ = before


class _Hooks:
    """pytest's hooks, but for reports."""

    def __init__(self, hooks: Any, kept: list[pytest.TestReport]) -> None:
        self._hooks, self._kept = hooks, kept

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._kept.append(report)

    def pytest_exception_interact(self, **_: Any) -> None:
        """Let no debugger in: the failure may be one that was injected."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hooks, name)
