"""Traces without kinds teach what the same traces teach with them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ldfi.experiments.streams.otlp import from_json
from ldfi.lineage.lineage import Lineage, learn, learn_in_full
from ldfi.lineage.readers.batch import Batch
from ldfi.lineage.readers.formats import read_value
from ldfi.lineage.readers.otlp import decode_protobuf
from ldfi.lineage.renaming import renamed
from ldfi.lineage.span import Trace
from ldfi.lineage.tree import Call
from ldfi.testing.spans import TRACE, span, tree
from tests.kit.spans import document, in_json

SERVER, CLIENT, INTERNAL, PRODUCER, CONSUMER = 2, 3, 1, 4, 5


@dataclass
class _Node:
    """A request as some service serves it. ``within``: it works in a span of its own."""

    service: str
    status: int
    message: bool = False
    within: bool = False
    below: list[_Node] = field(default_factory=list)


@st.composite
def _nodes(draw: st.DrawFn, named: str = "s", depth: int = 3) -> _Node:
    """Nobody calls a service that it is reached from, so each call leaves its service."""
    many = draw(st.integers(0, 2 if depth else 0))
    below = [draw(_nodes(f"{named}{number}", depth - 1)) for number in range(many)]
    message = len(named) > 1 and draw(st.booleans())
    status = draw(st.sampled_from([200, 404, 500]))
    return _Node(named, status, message, draw(st.booleans()), below)


def _document(root: _Node, *, kinds: bool, missing: bool) -> dict[str, object]:
    """Write OTLP of a request. ``missing``: whoever asked was not exported."""
    groups: list[dict[str, object]] = []
    numbers = iter(range(1, 1_000))

    def write(service: str, name: str, kind: int, parent: str, **said: object) -> str:
        span_id = f"{next(numbers):016x}"
        written = {
            "traceId": TRACE,
            "spanId": span_id,
            "parentSpanId": parent,
            "name": name,
            "kind": kind if kinds else 0,
            "attributes": in_json({k: str(v) for k, v in said.items()}),
            "startTimeUnixNano": str(1_000 + next(numbers)),
            "endTimeUnixNano": str(1_000_000_000 - next(numbers)),
        }
        groups.extend(document(written, service=service)["resourceSpans"])
        return span_id

    def serve(node: _Node, above: str) -> None:
        http = {"http.request.method": "GET", "http.response.status_code": node.status}
        route = {"http.route": f"/{node.service}/{{id}}", "url.path": "/x/7", "url.query": "page=1"}
        said = {"messaging.system": "kafka"} if node.message else {**http, **route}
        here = write(node.service, "serve", CONSUMER if node.message else SERVER, above, **said)
        here = write(node.service, "work", INTERNAL, here) if node.within else here
        for each in node.below:
            url = {"url.full": f"http://{each.service}/x/7?page=1", "http.request.method": "GET"}
            sent = {"messaging.system": "kafka", "messaging.destination.name": each.service}
            kind = PRODUCER if each.message else CLIENT
            called = sent if each.message else {**url, "http.response.status_code": each.status}
            serve(each, write(node.service, "call", kind, here, **called))

    serve(root, "f" * 16 if missing else "")
    return {"resourceSpans": groups}


def _read(document: dict[str, object], *, as_bytes: bool) -> Batch:
    if not as_bytes:
        return read_value(document)
    body = from_json(json.dumps(document).encode())
    assert ExportTraceServiceRequest.FromString(body).resource_spans
    return decode_protobuf(body)


def _said(learned: Lineage | None) -> object:
    assert learned is not None
    entry = (learned.service, learned.route, learned.features, learned.root_error, learned.refused)
    proved = (learned.support, learned.failed, learned.survived, learned.callees, learned.detached)
    calls = sorted(_outline(call) for call in learned.tree.calls)
    return (entry, proved, learned.orphans, learned.strangers, calls)


def _outline(call: Call) -> tuple[object, ...]:
    below = tuple(sorted(_outline(inner) for inner in call.calls))
    return (call.point, call.callee, call.route, call.failed, below)


def _without_messages(node: _Node) -> _Node:
    below = [_without_messages(each) for each in node.below]
    return _Node(node.service, node.status, False, node.within, below)


@given(_nodes(), st.booleans(), st.booleans())
def test_what_is_called_is_the_same_without_kinds(
    node: _Node, missing: bool, as_bytes: bool
) -> None:
    # Given a request whose spans say their kinds, and the same without a single one
    node = _without_messages(node)
    told, untold = (
        Trace.of(TRACE, _read(_document(node, kinds=k, missing=missing), as_bytes=as_bytes).spans)
        for k in (True, False)
    )
    assert {span.operation.kind for span in untold.spans} == {""}
    # Then it teaches the same, recognised or looked at in full
    assert _said(learn(untold)) == _said(learn_in_full(untold)) == _said(learn(told))


@given(_nodes(), st.randoms(use_true_random=False))
def test_kinds_that_only_some_say_are_believed(node: _Node, random: object) -> None:
    # Given a trace in which what is sent and taken says so, and of the rest some
    told = Trace.of(TRACE, read_value(_document(node, kinds=True, missing=False)).spans)
    bare = Trace.of(TRACE, read_value(_document(node, kinds=False, missing=False)).spans)
    messages = {s.span_id for s in told.spans if s.operation.kind in {"producer", "consumer"}}
    spans = [
        say if say.span_id in messages or random.random() < 0.5 else nothing  # type: ignore[attr-defined]
        for say, nothing in zip(told.spans, bare.spans, strict=True)
    ]
    assert _said(learn(Trace.of(TRACE, spans))) == _said(learn(told))


def test_work_that_reaches_several_services_is_no_call() -> None:
    # Given a front that calls two services from one span, and none of its calls is recorded
    built = tree(
        span("root", None, "", "front"),
        span("work", "root", "", "front"),
        span("a", "work", "", "stock", method="GET", path="/a"),
        span("b", "work", "", "prices", method="GET", path="/b"),
    )
    # Then they are two points: as one, nobody would ask which of them is needed
    points = {call.point for call in built.calls}
    assert points == {"front>http:GET:stock/a", "front>http:GET:prices/b"}


def test_work_that_asks_a_database_as_well_is_no_call() -> None:
    built = tree(
        span("root", None, "", "front"),
        span("work", "root", "", "front"),
        span("query", "work", "client", "front", point="front>db:select"),
        span("a", "work", "", "stock", method="GET", path="/a"),
    )
    assert {call.point for call in built.calls} == {"front>db:select", "front>http:GET:stock/a"}


@pytest.mark.parametrize("parent", [None, "gone"])
def test_a_front_without_kinds_refuses_as_one_with_kinds(parent: str | None) -> None:
    built = tree(span("root", parent, "", "front", method="GET", status="404", path="/x"))
    assert built.refused
    assert built.route


def test_what_hangs_in_the_air_without_a_kind_is_no_request() -> None:
    # Given a request, and a part of it that lost what is above
    built = tree(
        span("root", None, "server", "front", at=(5, 9)),
        span("lost", "gone", "", "front", at=(1, 2)),
    )
    assert (built.service, built.orphans) == ("front", 1)


def test_points_that_are_known_by_their_callees_alone_can_be_renamed() -> None:
    learned = learn(
        Trace.of(
            TRACE,
            [
                span("root", None, "", "front"),
                span("call", "root", "", "front", method="GET", url="http://stock/a/b"),
                span("a", "call", "", "stock"),
            ],
        )
    )
    assert learned is not None
    (point,) = learned.support
    assert renamed(learned, {point: "p"}).tree.calls[0].point == "p"


QUERY: dict[str, Any] = {"point": "", "db": "postgresql", "db_statement": "SELECT users"}


@pytest.mark.parametrize("kind", ["", "internal"])
@pytest.mark.parametrize(
    "said",
    [
        QUERY,
        {"point": "", "db_statement": "SELECT users"},
        {"point": "", "db": "redis", "db_operation": "GET"},
        {"point": "", "db": "mongodb", "db_table": "users"},
        {"point": "", "db": "mysql", "db_summary": "SELECT users"},
    ],
    ids=" ".join,
)
def test_what_asks_a_database_is_a_call_whatever_kind_it_says(
    kind: str, said: dict[str, Any]
) -> None:
    def points(kind: str) -> list[str]:
        root, engine = span("root", None, "server"), span("engine", "root", "internal")
        query = span("query", "engine", kind, failed=True, **said)
        return [f"{call.failure}@{call.point}" for call in tree(root, engine, query).calls]

    assert points(kind) == points("client") != []


@pytest.mark.parametrize(
    ("spans", "calls"),
    [
        ([("orm", "root", "internal", QUERY), ("driver", "orm", "client", QUERY)], 1),
        ([("orm", "root", "internal", QUERY), ("engine", "orm", "internal", QUERY)], 1),
        ([("orm", "root", "client", QUERY), ("rows", "orm", "internal", QUERY)], 1),
        ([("a", "root", "internal", QUERY), ("b", "root", "", QUERY)], 2),
        (
            [("orm", "root", "internal", {"point": "", "db": "mysql"})],
            0,
        ),  # a connection from the pool
        ([("orm", "root", "internal", QUERY), ("x", "y", "", QUERY), ("y", "x", "", QUERY)], 1),
    ],
    ids=["over a driver", "two layers", "below a call", "beside", "asks nothing", "in a circle"],
)
def test_of_the_layers_of_a_query_one_is_the_call(
    spans: list[tuple[str, str, str, dict[str, Any]]], calls: int
) -> None:
    below = [span(name, above, kind, **said) for name, above, kind, said in spans]
    assert len(tree(span("root", None, "server"), *below).calls) == calls
