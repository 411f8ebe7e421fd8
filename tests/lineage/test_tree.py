"""What the call tree makes of whole and of broken traces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lineage.lineage import learn
from lineage.operation import operation
from lineage.span import Span, Trace
from lineage.tree import Tree
from tests.lineage.spans import TRACE, lineage, span, tree


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


def test_spans_that_are_their_own_ancestors_are_survived() -> None:
    built = tree(span("root", kind="server"), span("a", "root"), span("x", "y"), span("y", "x"))
    assert points(built) == ["a"]
    assert built.strangers == 2
    assert learn(Trace.of(TRACE, [span("x", "y"), span("y", "x")])) is None
    assert tree(span("self", "self", kind="server")).service == "api"


def test_children_that_start_before_their_parent_stay_its_children() -> None:
    built = tree(span("root", kind="server", at=(100, 200)), span("a", "root", at=(50, 60)))
    assert points(built) == ["a"]


def test_client_and_server_may_share_a_span_id() -> None:
    # Given Zipkin's shared ids
    def half(kind: str, service: str, name: str, parent: str | None, span_id: str) -> Span:
        what = operation(service, name, kind, 0, False, (("method", "GET"), ("peer", "b")))
        return Span(TRACE, span_id, parent, 1, 2, what)

    built = tree(
        half("server", "a", "get", None, "1"),
        half("client", "a", "get /", "1", "2"),
        half("server", "b", "get /", "1", "2"),
        half("client", "b", "get /deeper", "2", "3"),
    )
    # Then they are one call, and what the server did is inside it
    (call,) = built.calls
    assert call.callee == "b"
    assert len(call.calls) == 1


def test_a_consumed_message_is_no_part_of_the_outcome() -> None:
    learned = lineage(
        span("root", kind="server"),
        span("send", "root", kind="producer", point="send"),
        span("consume", "send", kind="consumer", service="worker"),
        span("late", "consume", service="worker", failed=True),
    )
    assert learned.support == {"send"}
    assert learned.failed == frozenset()
    assert learned.relied_on == {"error@send", "delay@send"}


def test_a_chain_of_ten_thousand_calls_is_walked_without_recursion() -> None:
    spans = [span("0", kind="server")]
    spans += [span(str(i), str(i - 1)) for i in range(1, 10_000)]
    assert len(lineage(*spans).support) == 9_999


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
        for attribute in ("support", "failed", "relied_on", "features", "orphans", "callees"):
            assert getattr(first, attribute) == getattr(second, attribute)
        assert [c.point for c in first.tree.calls] == [c.point for c in second.tree.calls]
        assert first.spans == len(spans)
