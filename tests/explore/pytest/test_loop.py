"""The pure part against brute force, and against tests that behave badly."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ldfi.checker.carried_evidence import carried
from ldfi.checker.document import FORMAT, EvidenceFile
from ldfi.checker.verify import Against, Examined, verify
from ldfi.explore.pytest.evidence import class_evidence
from ldfi.explore.pytest.loop import QUIET, Explored, exhaustive, explore
from ldfi.explore.pytest.marker import Bounds
from ldfi.explore.pytest.run import Execute, Run
from ldfi.fit.protocol.faults import Fault
from ldfi.lineage.lineage import learn
from ldfi.lineage.span import Trace
from ldfi.testing.programs import Call, Step
from ldfi.testing.programs import Run as Simulated
from ldfi.testing.spans import TRACE
from tests.experiments.simulated import errors_of, failing_sets, working

Faults = frozenset[str]

PAGE = Call(
    "root",
    (
        Step("optional", (Call("ratings"),)),
        Step("fallback", (Call("playlist"), Call("popular"))),
        Step("critical", (Call("layout"),)),
    ),
)
"""Fails when ``layout`` does, or ``playlist`` and ``popular`` together."""


def running(program: Call) -> Execute:
    """A test of a simulated program."""

    def execute(faults: tuple[Fault, ...]) -> Run:
        return simulated(program, frozenset(map(str, faults)))

    return execute


def simulated(program: Call, faults: Faults, passed: bool | None = True) -> Run:
    done = Simulated(faults).execute(program)
    lineage = learn(Trace.of(TRACE, done.spans))
    assert lineage is not None
    return Run(done.good if passed else passed, lineage, "" if done.good else "failed")


def found_by(explored: Explored) -> set[Faults]:
    return {finding.faults for finding in explored.findings}


@given(working(points=6), st.integers(0, 3), st.integers(1, 3))
def test_the_findings_are_the_minimal_failing_sets(program: Call, seed: int, size: int) -> None:

    explored = explore("t", running(program), Bounds(max_size=size, seed=seed))

    assert found_by(explored) == failing_sets(program, errors_of(program), size)
    assert explored.verdict == ("harmful" if explored.findings else "tolerated")
    assert all(finding.confirmed for finding in explored.findings)
    assert all(finding.run.passed is False for finding in explored.findings)
    assert explored.open == 0
    assert explored.runs <= explored.exhaustive


@given(working(points=5), st.integers(0, 3))
def test_the_same_seed_gives_the_same_runs(program: Call, seed: int) -> None:

    def tried() -> list[tuple[Fault, ...]]:
        log = []
        execute = running(program)

        def logged(faults: tuple[Fault, ...]) -> Run:
            log.append(faults)
            return execute(faults)

        explore("t", logged, Bounds(kinds=("error", "delay"), seed=seed))
        return log

    assert tried() == tried()


@given(working(points=5), st.integers(0, 3), st.booleans())
def test_what_the_runs_leave_behind_bears_the_certificate_out(
    program: Call, seed: int, flaky: bool
) -> None:
    count = itertools.count(seed)

    def execute(faults: tuple[Fault, ...]) -> Run:
        run = simulated(program, frozenset(map(str, faults)))
        by_chance = flaky and bool(faults) and next(count) % 4 == 0
        return replace(run, passed=False, error="by chance") if by_chance else run

    explored = explore("t", execute, Bounds(seed=seed))
    assume(explored.records)
    entry = class_evidence("t", explored.certificate or {}, explored.records)

    def examined() -> Examined:
        document = {"format": FORMAT, "head": None, "grown": [], "classes": [entry]}
        whole = EvidenceFile.from_json(json.loads(json.dumps(document)))
        return verify(whole, Against((), 0.0))

    found = examined()
    assert found.false == []
    assert "nobody has signed it" in found.lacking
    assert not any("on record" in each for each in found.lacking)
    assert len(explored.records) == found.runs <= explored.runs
    held = carried(explored.certificate or {})
    assert (held.wrong, held.whole) == ((), held.experiments)
    # And when one is dropped, that shows: the others are not numbered on, or a run has no record
    del entry["runs"][seed % len(entry["runs"])]
    assert examined() != found


def test_few_runs_are_needed() -> None:
    optional = tuple(Step("optional", (Call(f"p{i}"),)) for i in range(20))
    critical = Step("critical", (Call("needed"),))

    explored = explore("t", running(Call("root", (*optional, critical))), Bounds())

    assert found_by(explored) == {frozenset({"error@needed"})}
    assert explored.exhaustive == QUIET + 21 + 21 * 20 / 2 + len(explored.findings)
    assert explored.runs <= 10


def test_delays_are_found_where_they_are_asked_for() -> None:
    program = Call("root", (Step("optional", (Call("ratings"),)),))

    for kinds, expected in ((("error",), set()), (("error", "delay"), {"delay@ratings"})):
        found = found_by(explore("t", running(program), Bounds(kinds=kinds)))
        assert set().union(*found) == expected


def test_lengths_that_are_drawn_are_found_where_they_are_asked_for() -> None:
    steps = (Step("optional", (Call("ratings"),)), Step("critical", (Call("a", impatient=True),)))
    kinds = ("delay:0.1..0.2", "delay:p50=4..p99=6")

    explored = explore("t", running(Call("root", steps)), Bounds(kinds=kinds, each_kind=True))

    assert found_by(explored) == {frozenset({f"{kinds[1]}@{point}"}) for point in ("ratings", "a")}
    assert {each for record in explored.records for each in record.fired} >= {
        f"{kind}@{point}" for kind in kinds for point in ("ratings", "a")
    }
    assert not explored.unfired


def test_every_kind_can_be_asked_for() -> None:
    # Given what is done without when it is refused, but not when it answers an error
    ratings, layout = "api>http:GET:ratings/", "api>http:GET:layout/"
    steps = (
        Step("optional", (Call(ratings),), masks=("refused",)),
        Step("critical", (Call(layout),)),
    )
    bounds = Bounds(max_size=1, kinds=("status:500", "sql:lost"))

    explored = explore("t", running(Call("root", steps)), bounds)

    assert found_by(explored) == {
        frozenset({f"status:500@{ratings}"}),
        frozenset({f"status:500@{layout}"}),
    }


def test_what_is_protected_is_never_tried() -> None:
    tried: set[str] = set()

    def execute(faults: tuple[Fault, ...]) -> Run:
        tried.update(fault.point for fault in faults)
        return running(PAGE)(faults)

    explored = explore("t", execute, Bounds(protected=("lay*",)))

    assert found_by(explored) == {frozenset({"error@playlist", "error@popular"})}
    assert "layout" not in tried
    assert (len(explored.points), explored.exhaustive) == (3, QUIET + 6 + 1)


def test_a_test_that_fails_by_itself_is_not_explored() -> None:
    explored = explore("t", lambda _: simulated(PAGE, frozenset(), passed=False), Bounds())

    assert (explored.verdict, explored.runs, explored.findings) == ("broken", 1, [])


def test_a_test_that_calls_nothing_is_inconclusive() -> None:
    explored = explore("t", running(Call("root")), Bounds())

    assert (explored.verdict, explored.reason) == (
        "inconclusive",
        "no call was seen that could fail",
    )


def test_a_failure_that_does_not_come_again_is_no_finding() -> None:
    execute, left = running(Call("root", (Step("optional", (Call("a"),)),))), [1]

    def flaky(faults: tuple[Fault, ...]) -> Run:
        run = execute(faults)
        if faults and left:
            left.pop()
            return Run(False, run.lineage, "by chance")
        return run

    explored = explore("t", flaky, Bounds())

    assert (explored.verdict, explored.findings) == ("tolerated", [])
    assert explored.refuted == [frozenset({"error@a"})]


def test_failures_in_which_nothing_fired_are_counted_and_not_blamed_on_anything() -> None:
    def unlucky(faults: tuple[Fault, ...]) -> Run:
        return simulated(PAGE, frozenset(), passed=not faults)

    explored = explore("t", unlucky, Bounds())

    assert explored.findings == []
    assert explored.unexplained > 0
    assert explored.ignored


def test_good_runs_that_vary_count_together() -> None:
    """Half of the runs find their answer in a cache: that is variety, not a fallback."""
    runs = itertools.count()
    without = Call("root", (Step("optional", (Call("other"),)),))
    missed = Call("root", (Step("critical", (Call("store"),)), *without.steps))

    def execute(faults: tuple[Fault, ...]) -> Run:
        return running(missed if faults or next(runs) % 2 else without)(faults)

    assert found_by(explore("t", execute, Bounds())) == {frozenset({"error@store"})}


def test_what_is_left_when_the_time_is_over_is_not_passed_over() -> None:
    program = Call(
        "root", tuple(Step("fallback", (Call(f"a{i}"), Call(f"b{i}"))) for i in range(5))
    )

    explored = explore("t", running(program), Bounds(max_size=3), hurry=lambda: True)

    assert explored.verdict == "inconclusive"
    assert "when the time was over" in explored.reason
    assert explored.open > 0


def test_a_skipped_run_says_nothing() -> None:
    def execute(faults: tuple[Fault, ...]) -> Run:
        return simulated(PAGE, frozenset(map(str, faults)), passed=None if faults else True)

    explored = explore("t", execute, Bounds())

    assert explored.findings == []
    assert explored.never_fired
    assert explored.verdict == "inconclusive"
    assert explored.open_sets


def test_what_nobody_injects_is_said_and_not_tried_again_and_again() -> None:
    """The service that calls ``layout`` has no injector: there, faults never fire."""
    tried: list[tuple[Fault, ...]] = []

    def execute(faults: tuple[Fault, ...]) -> Run:
        tried.append(faults)
        obeyed = frozenset(str(fault) for fault in faults if fault.point != "layout")
        return simulated(PAGE, obeyed)

    explored = explore("t", execute, Bounds(max_size=1))

    assert (explored.verdict, explored.ignored) == ("inconclusive", ["error@layout"])
    assert "no injector" in explored.reason
    assert explored.out_of_bounds == {"error@layout": "no injector"}
    assert sum("layout" in {fault.point for fault in each} for each in tried) == 1


def test_an_answer_that_was_an_error_and_accepted_proves_only_itself() -> None:
    """Without ``layout`` nothing else is called, and the test takes the error for an answer: that
    does not show that it could do without the rest."""
    program = Call("root", (Step("critical", (Call("layout"),)), Step("critical", (Call("b"),))))

    def execute(faults: tuple[Fault, ...]) -> Run:
        run = simulated(program, frozenset(map(str, faults)))
        down = "layout" in {fault.point for fault in faults}
        return replace(run, passed=True, errors=1) if down else run

    assert found_by(explore("t", execute, Bounds())) == {frozenset({"error@b"})}


def test_a_run_of_which_spans_are_missing_is_no_evidence() -> None:
    def execute(faults: tuple[Fault, ...]) -> Run:
        run = simulated(PAGE, frozenset(map(str, faults)))
        return replace(run, passed=True, unseen="spans are missing") if faults else run

    explored = explore("t", execute, Bounds())

    assert (explored.verdict, explored.reason) == ("inconclusive", "spans are missing")
    assert explore("t", lambda _: replace(execute(()), unseen="none"), Bounds()).reason == "none"


def test_what_comes_out_later_withdraws_what_was_concluded() -> None:
    harmless = running(Call("root", (Step("optional", (Call("a"),)),)))

    assert explore("t", harmless, Bounds()).verdict == "tolerated"
    explored = explore("t", harmless, Bounds(), doubt=lambda: "spans came late")
    assert (explored.verdict, explored.reason) == ("inconclusive", "spans came late")


def test_exhaustive_counts_sets_with_one_fault_a_point() -> None:
    faults = [f"{kind}@p{i}" for kind in ("error", "delay") for i in range(5)]
    sets: Callable[[int], int] = lambda size: sum(  # noqa: E731
        len({fault.partition("@")[2] for fault in each}) == size
        for each in itertools.combinations(faults, size)
    )

    bounds = Bounds(max_size=3, kinds=("error", "delay"))

    assert exhaustive([2] * 5, bounds) == sets(1) + sets(2) + sets(3)


SEARCH = Call(
    "root",
    (Step("critical", (Call("search"),)), Step("critical", (Call("prices"),))),
)
"""The page needs both; where the search is down a test may be content with an empty page."""


def content_with_an_empty_page(faults: tuple[Fault, ...], *, says_so: bool) -> Run:
    """Nothing but the search is asked for where that is down, and the page is shown empty."""
    injected = frozenset(map(str, faults))
    if "error@search" not in injected:
        return simulated(SEARCH, injected)
    empty = Call("root", (Step("optional", (Call("search"),)),))
    return replace(simulated(empty, injected), degraded=says_so)


@pytest.mark.parametrize("seed", range(6))
def test_what_was_accepted_although_something_was_missing_proves_only_itself(seed: int) -> None:
    # Given a weakness in another service, and a test that is content with an empty page
    def execute(faults: tuple[Fault, ...]) -> Run:
        return content_with_an_empty_page(faults, says_so=True)

    explored = explore("t", execute, Bounds(seed=seed))
    # Then the empty page does not speak for what was never asked for
    assert found_by(explored) == {frozenset({"error@prices"})}
    assert explored.open == 0


def test_an_empty_page_taken_for_a_full_one_hides_nothing_that_a_recheck_finds() -> None:
    # More faults help here; re-checks try single faults that are presumed safe first
    def execute(faults: tuple[Fault, ...]) -> Run:
        return content_with_an_empty_page(faults, says_so=False)

    explored = [explore("t", execute, Bounds(seed=seed)) for seed in range(6)]

    assert {each.verdict for each in explored} == {"harmful"}
