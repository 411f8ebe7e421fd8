"""Several spans of one id: none is lost, and each stands where it belongs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.operation import operation
from ldfi.lineage.span import Span, Trace
from ldfi.lineage.tree import Call
from ldfi.testing.spans import TRACE, lineage, span, tree


def test_spans_of_one_id_are_duplicates_only_where_kind_and_service_are_the_same() -> None:
    # Given one call as seen by an application, the proxies on both sides, and the one that answered
    halves = [
        span("1", None, "client", "shop", point="shop>http:GET:stock/"),
        span("1", None, "client", "shop-proxy", point="shop-proxy>http:GET:stock/"),
        span("1", None, "server", "stock-proxy"),
        span("1", None, "server", "stock"),
        span("1", None, "producer", "shop", point="shop>message:send:log/"),
    ]
    # Then all of them are kept, once
    kept = Trace.of(TRACE, [*halves, *halves])
    assert Counter(kept.spans) == Counter(halves)


def test_a_span_without_a_kind_and_the_same_span_as_internal_are_duplicates() -> None:
    given = [span("1", None, kind, "shop", at=(1, 2)) for kind in ("internal", "")]
    assert len(Trace.of(TRACE, given).spans) == 1


def test_proxies_that_took_over_an_id_stand_between() -> None:
    # Given a call through a proxy on either side, all with one id, and what was done for it
    built = tree(
        span("root", kind="server", service="shop", at=(0, 100)),
        span("1", "root", "client", "shop", at=(10, 90), point="shop>stock"),
        span("1", "root", "client", "shop-proxy", at=(15, 85), point="shop-proxy>stock"),
        span("1", "root", "server", "stock-proxy", at=(20, 80)),
        span("1", "root", "server", "stock", at=(25, 75)),
        span("2", "1", "client", "stock", at=(30, 40), point="stock>db"),
    )
    # Then the proxy's call is within the application's, and the query within both
    (outer,) = built.calls
    (inner,) = outer.calls
    assert [outer.point, inner.point] == ["shop>stock", "shop-proxy>stock"]
    assert [call.point for call in inner.calls] == ["stock>db"]
    assert (built.orphans, built.strangers) == (0, 0)


def test_where_nobody_recorded_the_call_the_later_server_was_reached_through_the_earlier() -> None:
    # Given an edge whose proxy and application have one id
    built = tree(
        span("1", None, "server", "gateway", at=(1, 9)),
        span("1", None, "server", "shop", at=(2, 8)),
        span("2", "1", "client", "shop", at=(3, 4), point="shop>stock"),
    )
    assert built.service == "gateway"
    (call,) = built.calls
    assert (call.service, call.callee) == ("gateway", "shop")
    assert [inner.point for inner in call.calls] == ["shop>stock"]
    assert built.strangers == 0


def test_what_belongs_to_neither_half_is_done_by_whoever_was_called() -> None:
    # Given a callee that calls itself by two names, as real ones do
    learned = lineage(
        span("root", kind="server", service="routing"),
        span("1", "root", "client", "routing", point="routing>api", failed=None),
        span("1", "root", "server", "main/proxy", failed=True),
        span("2", "1", "client", "main", point="main>db"),
    )
    # Then its query was made within the call that failed, so nothing relies on it
    assert learned.support == frozenset()


@dataclass
class _Node:
    """A call and what it leads to. ``held``: what the callee does within a span of its own."""

    service: str
    failed: bool
    below: list[_Node] = field(default_factory=list)
    held: bool = False


@st.composite
def _nodes(draw: st.DrawFn, depth: int = 3) -> _Node:
    below = draw(st.lists(_nodes(depth - 1), max_size=3)) if depth else []
    return _Node(draw(st.sampled_from("abcd")), draw(st.booleans()), below, draw(st.booleans()))


def _spans(node: _Node, *, shared: bool) -> list[Span]:
    """Write a request down, with an id for each span, or one for both sides of each call."""
    spans = [span("root", None, "server", node.service, failed=node.failed, at=(0, 1000))]
    pending = [(node, "root")]
    for number, (caller, above) in enumerate(pending):
        within = above
        if caller.held:
            within = f"{number} work"
            spans.append(span(within, above, "internal", caller.service))
        for at, callee in enumerate(caller.below):
            client = f"{number}.{at}"
            point = f"{caller.service}>http:GET:{callee.service}/"
            server, parent = (client, within) if shared else (f"{client} served", client)
            failed, when = callee.failed, (at, at + 1)
            spans.append(span(client, within, "client", caller.service, failed, when, point=point))
            spans.append(span(server, parent, "server", callee.service, failed))
            pending.append((callee, server))
    return spans


def _said(learned: Lineage | None) -> object:
    assert learned is not None
    return (
        learned.support,
        learned.failed,
        learned.callees,
        learned.orphans,
        learned.strangers,
        sorted(_outline(call) for call in learned.tree.calls),
    )


def _outline(call: Call) -> tuple[object, ...]:
    below = sorted(_outline(inner) for inner in call.calls)
    return (call.point, call.callee, call.failed, tuple(below))


@given(_nodes(), st.data())
def test_shared_ids_teach_what_ids_of_their_own_do(node: _Node, data: st.DataObject) -> None:
    # Given a request, even one in which services call themselves, written both ways
    apart, together = _spans(node, shared=False), _spans(node, shared=True)
    together = data.draw(st.permutations(together + data.draw(st.lists(st.sampled_from(together)))))
    # Then what it teaches is the same, in whatever order and however often it comes
    assert _said(learn(Trace.of(TRACE, together))) == _said(learn(Trace.of(TRACE, apart)))


@given(st.lists(st.tuples(*map(st.sampled_from, ("12", "ab", ["client", "server", "internal"])))))
def test_no_more_is_dropped_than_came_twice(drawn: list[tuple[str, str, str]]) -> None:
    given_ = [
        Span(TRACE, each, None, 1, 2, operation(service, "x", kind, 0, False, ()))
        for each, service, kind in drawn
    ]
    assert len(Trace.of(TRACE, given_).spans) == len(set(drawn))
