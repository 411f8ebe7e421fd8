"""Traces that are not whole, read as far as they are there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ldfi.lineage.lineage import partial_trace
from ldfi.lineage.span import Span, Trace
from ldfi.lineage.tree import Call, build
from ldfi.testing.spans import TRACE, span


def points(calls: tuple[Call, ...]) -> list[str]:
    return [point for each in calls for point in (each.point, *points(each.calls))]


def test_a_call_is_read_before_the_request_that_made_it() -> None:
    came = [span("query", "work", failed=True), span("other", "elsewhere", service="b")]
    tree = build(partial_trace(Trace.of(TRACE, came)))
    assert tree is not None
    assert {call.point: call.failed for call in tree.calls} == {"query": True, "other": False}


def test_a_failure_stays_within_the_call_that_passed_it_on() -> None:
    came = [
        span("ask", "root", failed=True, at=(1, 9)),
        span("serve", "ask", "server", "b", True, (2, 8)),
        span("query", "serve", service="b", failed=True, at=(3, 4)),
    ]
    tree = build(partial_trace(Trace.of(TRACE, came)))
    assert tree is not None
    (call,) = tree.calls
    assert (call.point, [inner.point for inner in call.calls]) == ("ask", ["query"])


def test_what_has_a_root_and_what_is_empty_stay_as_they_are() -> None:
    for spans in ([span("root", kind="server"), span("a", "root")], []):
        trace = Trace.of(TRACE, spans)
        assert partial_trace(trace) is trace


@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=12),
    st.sets(st.integers(0, 12)),
)
def test_every_call_that_came_is_read_whatever_is_still_missing(
    above: list[int], lost: set[int]
) -> None:
    whole: list[Span] = [span("0", "outside", "server")]
    for number, parent in enumerate(above, 1):
        whole.append(span(str(number), str(parent % number), at=(number, 100)))
    came = [each for each in whole if int(each.span_id) not in lost | {0}]
    tree = build(partial_trace(Trace.of(TRACE, came)))
    read = points(tree.calls) if tree else []
    assert sorted(read) == sorted(each.span_id for each in came)
