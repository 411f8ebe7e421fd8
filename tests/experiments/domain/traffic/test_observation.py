"""``bad``: 0 for a success, 1 where something was missing, 2 for a failure."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.traffic.observation import Join, Observation, Outcome, root_outcome
from ldfi.lineage.lineage import Lineage
from ldfi.testing.spans import TRACE, lineage, span


def a_lineage(number: int) -> Lineage:
    return replace(lineage(span("root", kind="server")), trace_id=f"{number:032x}")


def an_outcome(number: int, bad: int = 0, mark: int | None = None) -> Outcome:
    """``bad``: 0 for a success, 1 where something was missing, 2 for a failure."""
    success, degraded = bad < 2, bad == 1
    return Outcome(
        f"{number:032x}", f"d{mark or number}", "", success, degraded=degraded, mark=mark
    )


@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=5),
    st.integers(0, 5),
    st.lists(st.integers(0, 2), max_size=3),
)
def test_of_reports_that_contradict_each_other_the_worse_counts_in_any_order(
    reports: list[int], place: int, foreign: list[int]
) -> None:
    """Those of a device that no edge drew neither count nor keep others from counting."""
    join = Join(drawn=lambda _lineage, outcome: outcome.mark == 7)
    mine = replace(
        a_lineage(1),
        trace=lineage(span("root", kind="server", experiment="e", arm="treatment")).trace,
    )
    mine = replace(mine, experiment="e", arm="treatment")
    arrivals = [(bad, 8) for bad in foreign] + [(bad, 7) for bad in reports]
    handed: list[Observation | None] = []
    for at, (bad, mark) in enumerate(arrivals):
        if at == place:
            handed.append(join.add_lineage(mine, 0.0))
        handed.append(join.add_outcome(an_outcome(1, bad, mark), 0.0))
    if place >= len(arrivals):
        handed.append(join.add_lineage(mine, 0.0))

    told = [each.outcome for each in handed if each is not None]
    assert told[-1].badness == max(reports)
    assert [each.badness for each in told] == sorted({each.badness for each in told})
    assert {each.mark for each in told} == {7}
    assert (join.dropped["contradiction"] > 0) == (len(set(reports)) > 1)
    assert (join.dropped["not_drawn"] > 0) == bool(foreign)
    counted = sum(join.dropped.values())
    assert counted >= len(arrivals) - len(told)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 8)), max_size=60))
def test_each_trace_is_joined_once_in_any_order(arrivals: list[tuple[bool, int]]) -> None:
    join = Join()
    joined: list[Observation] = []
    for is_lineage, number in arrivals:
        found = (
            join.add_lineage(a_lineage(number), 0.0)
            if is_lineage
            else join.add_outcome(an_outcome(number), 0.0)
        )
        joined += [found] if found else []

    halves = {kind: {n for k, n in arrivals if k is kind} for kind in (True, False)}
    assert [int(o.outcome.trace_id, 16) for o in joined] == list(
        dict.fromkeys(int(o.lineage.trace_id, 16) for o in joined)
    )
    assert {int(o.outcome.trace_id, 16) for o in joined} == halves[True] & halves[False]
    seen = len({*arrivals})
    assert join.dropped["duplicate"] == len(arrivals) - seen


def test_halves_that_wait_too_long_are_dropped_and_counted() -> None:
    join = Join(patience=30)
    join.add_outcome(an_outcome(1), now=0)
    join.add_lineage(a_lineage(2), now=0)

    join.expire(now=31)

    assert join.dropped["unknown_trace"] == 1
    assert join.dropped["no_outcome"] == 1
    assert join.add_lineage(a_lineage(1), now=31) is None


def test_memory_is_bounded_when_the_other_half_never_comes() -> None:
    join = Join(limit=100)
    for number in range(1000):
        join.add_outcome(an_outcome(number), now=0)
    join.expire(now=1)

    assert join.dropped["unknown_trace"] == 900


def test_the_root_span_tells_whether_the_request_went_well() -> None:
    good = lineage(
        span("root", kind="server", at=(0, 1_500_000_000)),
        span("api>cache:get:home", "root", failed=True, at=(1, 2)),
    )
    bad = lineage(span("root", kind="server", failed=True, at=(0, 500_000_000)))

    assert root_outcome(good) == Outcome(TRACE, TRACE, "", success=True, duration=1.5)
    assert root_outcome(bad) == Outcome(
        TRACE, TRACE, "", success=False, error_code="root-span", duration=0.5
    )
