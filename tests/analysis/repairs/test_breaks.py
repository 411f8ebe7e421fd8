"""Where a failure gets through: read from the request that was kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ldfi.analysis.repairs.breaks import breaks
from ldfi.lineage.run_summary import Run, RunCall, Runs
from tests.analysis.repairs.runs import call, runs

A, B, DEEP = "api>http:GET:a/x", "api>http:GET:b/x", "a>db:SELECT:adb/rows"


def test_it_is_the_outermost_call_that_failed() -> None:
    seen = runs(
        [call(A, failed=True, callee="a"), call(DEEP, within=0, failed=True, fired="error")]
    )
    (found,) = breaks([f"error@{DEEP}"], seen, {})
    assert (found.point, found.callee, found.caller, found.kind) == (A, "a", "api", "error")


def test_a_failure_that_is_caught_on_its_way_breaks_below() -> None:
    seen = runs([call(A), call(DEEP, within=0, failed=True, fired="error"),
                 call(B, failed=True, fired="refused")])  # fmt: skip
    found = breaks([f"error@{DEEP}", f"refused@{B}"], seen, {})
    assert [each.point for each in found] == [DEEP, B]


def test_what_else_failed_on_purpose_is_no_part_of_it() -> None:
    seen = runs([call(A, failed=True, fired="error"), call(B, failed=True, fired="error")])
    assert [each.point for each in breaks([f"error@{A}"], seen, {})] == [A]


def test_tries_are_calls_side_by_side_and_the_longest_wait_counts() -> None:
    once_more = [call(A, failed=True, fired="timeout", took=took) for took in (1.0, 2.5)]
    (found,) = breaks([f"timeout@{A}"], runs(once_more), {})
    assert (found.tries, found.waited, found.answered) == (2, 2.5, False)


def test_what_is_called_only_then_stands_in() -> None:
    seen = runs([call(A, failed=True, fired="error"), call(B, failed=True, fired="error")], [A])
    assert [e.stands_in for e in breaks([f"error@{A}", f"error@{B}"], seen, {})] == [False, True]


def test_of_a_system_that_is_down_every_call_counts() -> None:
    seen = runs([call(A, failed=True, fired="error"), call(B, failed=True, fired="error")])
    assert [each.point for each in breaks(["down@db"], seen, {})] == [A, B]


def test_without_a_request_the_points_are_all_that_is_known() -> None:
    went_well = Runs(treated=Run("t", True, None, 0.1, (call(A, fired="error"),)))
    for seen in (Runs(), went_well):
        (found, down) = breaks([f"error@{A}", "down@db"], seen, {A: "really-a"})
        assert (found.point, found.callee, found.tries) == (A, "really-a", 0)
        assert (down.point, down.callee) == ("db", "db")


POINTS = st.sampled_from([f"s{i}>http:GET:t{i}/x" for i in range(5)])


@st.composite
def trees(draw: st.DrawFn) -> list[RunCall]:
    calls: list[RunCall] = []
    for place in range(draw(st.integers(1, 9))):
        within = draw(st.none() | st.integers(0, place - 1)) if place else None
        failed = draw(st.booleans())
        fired = "error" if failed and draw(st.booleans()) else ""
        calls.append(call(draw(POINTS), within=within, failed=failed, fired=fired))
    return calls


@given(trees())
def test_a_break_failed_below_something_that_did_not(calls: list[RunCall]) -> None:
    """Against the definition: a point is a break when one of its calls failed, what is around it
    did not, and something injected lies below it in an unbroken chain of failures."""

    def chain(place: int) -> list[int]:
        above = calls[place].within
        if above is None or not calls[above].failed:
            return [place]
        return [place, *chain(above)]

    fired = [place for place, each in enumerate(calls) if each.fired]
    expected = {calls[chain(place)[-1]].point for place in fired}
    found = breaks([f"error@{calls[place].point}" for place in fired], runs(calls), {})
    assert {each.point for each in found} == expected
