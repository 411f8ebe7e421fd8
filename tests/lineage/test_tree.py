"""What the call tree makes of whole and of broken traces."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.analysis.reasoning import AddressBook
from ldfi.lineage.evidence import callees
from ldfi.lineage.lineage import Lineage, learn, learn_in_full
from ldfi.lineage.message_waits import SKEW
from ldfi.lineage.operation import operation
from ldfi.lineage.span import Span, Trace
from ldfi.lineage.tree import Tree, build
from ldfi.testing.programs import Call, Run, faults_of, points_of
from ldfi.testing.spans import TRACE, lineage, span, tree
from tests.lineage.drawn import programs, sets_of

MS = 1_000_000


def points(of: Tree) -> list[str]:
    return [call.point for call in of.calls]


def test_a_client_span_and_its_server_span_are_one_call() -> None:
    # Given a call recorded on both sides
    built = tree(
        span("root", kind="server", service="edge"),
        span("a", "root"),
        span("a-server", "a", kind="server", service="ratings", route="/titles/{id}", method="GET"),
        span("b", "a-server", service="ratings"),
    )
    # Then it is one node, labelled by its callee, with what the callee called inside it
    (call,) = built.calls
    assert (call.point, call.callee, call.route) == ("a", "ratings", "GET /titles/*")
    assert [inner.point for inner in call.calls] == ["b"]


def test_internal_spans_are_transparent() -> None:
    built = tree(
        span("root", kind="server"),
        span("work", "root", kind="internal"),
        span("a", "work"),
    )
    assert points(built) == ["a"]


def test_a_decorated_function_is_a_call() -> None:
    built = tree(
        span("root", kind="server"),
        span("f", "root", kind="internal", point="api>function:rank"),
        span("a", "f"),
    )
    assert points(built) == ["api>function:rank"]
    assert [inner.point for inner in built.calls[0].calls] == ["a"]


def test_a_server_span_whose_caller_recorded_nothing_is_a_call() -> None:
    built = tree(
        span("root", kind="server", service="edge"),
        span("s", "root", kind="server", service="ratings", method="GET", path="/titles/7"),
    )
    assert points(built) == ["edge>http:GET:ratings/titles/*"]


def test_a_missing_parent_makes_a_root() -> None:
    # Given a request whose client was not exported
    built = tree(span("root", "gone", kind="server"), span("a", "root"))
    # Then the SERVER span is the request and nothing is amiss
    assert points(built) == ["a"]
    assert (built.orphans, built.strangers) == (0, 0)


def test_the_earliest_server_root_is_the_request_and_what_hangs_in_the_air_is_below_it() -> None:
    built = tree(
        span("root", kind="server", at=(10, 20)),
        span("lost", "missing", kind="internal", at=(5, 6)),
        span("a", "lost", at=(5, 6)),
    )
    assert points(built) == ["a"]
    assert built.orphans == 1


def test_a_call_whose_caller_is_not_there_yet_is_no_request() -> None:
    # Given a part of a long stream: what it has called so far
    for kind in ("client", "producer", "internal", "consumer"):
        built = tree(span("a", "stream", kind, point="a"), span("b", "stream", kind, point="b"))
        assert built.orphans > 0
        # and although the same call was a whole request before, when it was one
        lineage(span("a", None, kind, point="a"))
        assert lineage(span("a", "stream", kind, point="a")).orphans > 0


def test_what_a_consumer_does_that_is_still_going_on_makes_no_gap() -> None:
    # Given a consumer whose own span has not come yet, and what it called until now
    def order(until: int, *more: Span) -> Tree:
        return tree(
            span("root", kind="server", at=(0, 5 * MS)),
            span("send", "root", "producer", point="send", at=(1, 2)),
            span("query", "take", service="worker", at=(4, 5)),
            span("archive", "take", service="worker", at=(6, until)),
            *more,
        )

    # Then it outlasts the request, if what it called does; else nobody knows
    late = order(2 * SKEW)
    assert (late.orphans, late.strangers) == (0, 0)
    assert [(call.point, call.detached) for call in late.calls] == [
        ("send", False),
        ("query", True),
        ("archive", True),
    ]
    assert order(7).orphans == 2
    # and if it sent on to somebody who was over in time, that one may have been waited for
    sent = (
        span("on", "take", "producer", "worker", point="on", at=(6, 7)),
        span("done", "on", "consumer", "other", at=(8, 9)),
    )
    assert order(2 * SKEW, *sent).orphans == 3
    receive = span("receive", "root", "internal")._replace(links=((TRACE, "on"),))
    assert order(2 * SKEW, sent[0], receive).orphans == 3
    # and if it answered in time, what it did is missing
    answer = (
        span("reply", "take", "producer", "worker", point="reply", at=(6, 7)),
        span("taken", "reply", "consumer", "api", at=(8, 9)),
    )
    assert order(2 * SKEW, *answer).orphans == 3


def test_a_second_request_in_the_same_trace_is_a_stranger() -> None:
    # Given two requests of one client that was not exported itself
    built = tree(
        span("first", "gone", kind="server", at=(1, 5)),
        span("a", "first"),
        span("second", "gone", kind="server", at=(7, 9)),
        span("b", "second"),
    )
    assert points(built) == ["a"]
    assert built.strangers == 2


def test_children_that_start_before_their_parent_stay_its_children() -> None:
    built = tree(span("root", kind="server", at=(100, 200)), span("a", "root", at=(50, 60)))
    assert points(built) == ["a"]


def test_a_consumer_that_outlasts_the_request_is_no_part_of_the_outcome() -> None:
    learned = lineage(
        span("root", kind="server", at=(0, 5 * MS)),
        span("send", "root", kind="producer", point="send", at=(1, 2)),
        span("consume", "send", kind="consumer", service="worker", at=(3, 2 * SKEW)),
        span("late", "consume", service="worker", failed=True, at=(4, 5)),
    )
    assert learned.support == {"send"}
    assert learned.failed == frozenset()
    assert learned.relied_on == {"error@send", "delay@send"}


def test_a_consumer_that_was_over_in_time_may_have_been_waited_for() -> None:
    learned = lineage(
        span("root", kind="server", at=(0, 5 * MS)),
        span("send", "root", kind="producer", point="send", at=(1, 2)),
        span("consume", "send", kind="consumer", service="worker", at=(3, 4 * MS)),
        span("query", "consume", service="worker", at=(4, 5)),
    )
    assert learned.support == {"send", "api>call:consume:worker", "query"}


def test_a_consumer_that_took_longer_than_was_left_outlasts_the_request_on_any_clock() -> None:
    # Given a worker whose clock is behind, or that ended within what clocks differ
    for begun in (-50 * MS, 3):
        learned = lineage(
            span("root", kind="server", at=(100 * MS, 105 * MS)),
            span("send", "root", kind="producer", point="send", at=(101 * MS, 102 * MS)),
            span("consume", "send", "consumer", "worker", at=(begun, begun + 50 * MS)),
            span("query", "consume", service="worker", at=(begun, begun + MS)),
        )
        assert learned.support == {"send"}


def test_what_a_consumer_does_long_after_its_reply_is_no_part_of_the_outcome() -> None:
    learned = lineage(
        span("root", kind="server", at=(0, 50 * MS)),
        span("send", "root", kind="producer", point="send", at=(1, 2)),
        span("consume", "send", "consumer", "worker", at=(3, 9 * SKEW), failed=True, point="c"),
        span("query", "consume", service="worker", at=(4 * MS, 5 * MS)),
        span("reply", "consume", "producer", "worker", at=(6 * MS, 7 * MS), point="reply"),
        span("taken", "reply", "consumer", "api", at=(8 * MS, 9 * MS), point="taken"),
        span("archive", "consume", service="worker", at=(5 * SKEW, 6 * SKEW)),
    )
    # What it failed of, it failed of after it had answered
    assert learned.support == {"send", "c", "query", "reply", "taken"}
    assert learned.failed == frozenset()


def test_a_span_that_merely_follows_is_no_part_of_the_outcome_nor_is_what_it_calls() -> None:
    what = operation("api", "warm up", "internal", 0, False, (), follows=True)
    learned = lineage(
        span("root", kind="server", at=(0, 50 * MS)),
        Span(TRACE, "warm", "root", 1, 2, what),
        span("fill", "warm"),
    )
    assert learned.support == frozenset()


def test_a_chain_of_ten_thousand_calls_is_walked_without_recursion() -> None:
    spans = [span("0", kind="server")]
    spans += [span(str(i), str(i - 1)) for i in range(1, 10_000)]
    assert len(lineage(*spans).support) == 9_999


def test_an_address_is_no_callee_but_a_database_is() -> None:
    # Given a call that nobody answered, and a query
    point, query = "api>http:GET:10.0.0.7:80/x", "api>db:SELECT:shop/t"
    built = tree(
        span("root", kind="server"),
        span("a", "root", point=point, host="10.0.0.7", port="80", failed=True),
        span("b", "root", point=query, db="postgresql"),
    )
    assert callees(built) == {query: "shop"}
    # When other calls to that address were answered
    book = AddressBook()
    book.learn({"web>http:GET:10.0.0.7:80/y": "ratings"})
    # Then it is known who would have answered
    assert book.callee(point) == "ratings"
    assert book.callee("api>http:GET:10.0.0.8:80/x") == ""


NAMES = [f"s{i}" for i in range(9)]


@st.composite
def any_spans(draw: st.DrawFn) -> list[Span]:
    """Spans with any parents, existing or not, circles included."""
    kinds = st.sampled_from(["client", "server", "internal", "producer", "consumer", ""])
    return [
        span(
            name,
            draw(st.sampled_from([*NAMES, None, "gone", "gone too"])),
            kind=draw(kinds),
            service=draw(st.sampled_from("ab")),
            failed=draw(st.sampled_from([None, True, False])),
            at=(start := draw(st.integers(1, 9)), start + draw(st.integers(0, 9))),
        )
        for name in NAMES[: draw(st.integers(1, len(NAMES)))]
    ]


@given(any_spans(), st.data())
def test_order_and_duplication_change_nothing(spans: list[Span], data: st.DataObject) -> None:
    # Given spans, and the same in another order with some of them twice
    again = data.draw(st.permutations(spans + data.draw(st.lists(st.sampled_from(spans)))))
    # Then the lineage is the same
    first, second = learn(Trace.of(TRACE, spans)), learn(Trace.of(TRACE, again))
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        assert same(first, second)
        assert [c.point for c in first.tree.calls] == [c.point for c in second.tree.calls]
        assert first.spans == len(spans)


def same(first: Lineage, second: Lineage) -> bool:
    return all(
        getattr(first, field.name) == getattr(second, field.name) for field in fields(Lineage)
    )


@given(any_spans(), any_spans())
def test_a_trace_that_is_recognised_teaches_what_it_would_teach_in_full(
    spans: list[Span], others: list[Span]
) -> None:
    # Given traces, whatever has been seen before
    for trace in (Trace.of(TRACE, spans), Trace.of(TRACE, others), Trace.of(TRACE, spans * 2)):
        recognised, full = learn(trace), learn_in_full(trace)
        assert (recognised is None) == (full is None)
        if recognised is not None and full is not None:
            assert same(recognised, full)


@given(programs(points=5), st.data())
def test_recognition_holds_for_traces_of_programs(program: Call, data: st.DataObject) -> None:
    # Given runs of one program under different faults, whose traces differ in little
    for _ in range(4):
        faults = data.draw(sets_of(faults_of(points_of(program))))
        trace = Trace.of(TRACE, Run(faults).execute(program).spans)
        recognised, full = learn(trace), learn_in_full(trace)
        assert recognised is not None
        assert full is not None
        assert same(recognised, full)


def test_a_call_is_made_where_its_own_span_says_else_the_one_around_it() -> None:
    said = span("a", "root", code_file="src/play.py", code_line="41", code_function="start")
    (own,) = tree(span("root", kind="server"), said).calls
    assert own.code == "src/play.py:41 (start)"
    around = span("work", "root", kind="internal", code_function="start")
    (within,) = tree(span("root", kind="server"), around, span("a", "work")).calls
    assert within.code == "start"
    elsewhere = span("work", "root", kind="internal", service="other", code_function="start")
    (of_another,) = tree(span("root", kind="server"), elsewhere, span("a", "work")).calls
    assert of_another.code == ""


@pytest.mark.parametrize("behind", [(), ("b",), ("a", "b")])
def test_a_call_in_a_circle_is_a_gap_and_still_a_call(behind: tuple[str, ...]) -> None:
    # Given a whole request, and beside it spans that are each other's parents
    spans = [
        span("root", None, kind="server", service="web", at=(0, 90)),
        span("a", "b", kind="client", service="web", at=(10, 20), point="web>http:GET:pay/"),
        span("b", "a", kind="internal", service="web", at=(11, 19)),
        *(span(f"under {each}", each, kind="internal", at=(12, 13)) for each in behind),
    ]
    found = tree(*spans)
    # Then nothing of it is lost, and the tree says that it has a gap
    assert [call.point for call in found.calls] == ["web>http:GET:pay/"]
    assert (found.orphans, found.strangers) == (1, 0)


def test_a_trace_of_nothing_but_a_circle_has_no_root() -> None:
    assert tree(span("self", "self", kind="server")).orphans == 0
    assert build(Trace.of(TRACE, [span("a", "b"), span("b", "a")])) is None
