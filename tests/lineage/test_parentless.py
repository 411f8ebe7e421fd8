"""SERVER spans without parents: where they belong, and that they hide no request."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldfi.lineage.assembly import Assembler
from ldfi.lineage.expectations import Expectations
from ldfi.lineage.lineage import unusable
from ldfi.lineage.operation import operation
from ldfi.lineage.span import Span, Trace
from ldfi.lineage.tree import build
from ldfi.testing.spans import TRACE, lineage
from tests.analysis.spans import Made, analysed, entered

MS = 1_000_000


def made(
    name: str,
    parent: str | None,
    kind: str,
    service: str,
    at: tuple[int, int],
    **fields: str,
) -> Span:
    what = operation(service, name, kind, 1, False, tuple(fields.items()))
    return Span(TRACE, f"{service}-{kind}-{at[0]}", parent, at[0] * MS, at[1] * MS, what)


def front(parent: str | None = "device", at: tuple[int, int] = (1, 80)) -> Span:
    return made("GET", parent, "server", "front", at, method="GET", path="/")


def asks(
    method: str, at: tuple[int, int] = (20, 29), service: str = "front", parent: str = ""
) -> Span:
    above = parent or "front-server-1"
    return made(
        method, above, "client", service, at, rpc="grpc", rpc_method=method, host="10.9.0.8"
    )


def http(path: str, at: tuple[int, int] = (20, 29)) -> Span:
    url = f"http://shop:80{path}"
    return made("GET", "front-server-1", "client", "front", at, method="GET", url=url, host="shop")


def lost(name: str, at: tuple[int, int] = (22, 27), service: str = "back", **fields: str) -> Span:
    return made(name, None, "server", service, at, **fields)


def grpc(method: str, at: tuple[int, int] = (22, 27)) -> Span:
    service, _, called = method.partition("/")
    return lost(f"grpc.{method}", at, rpc="grpc", rpc_service=service, rpc_method=called)


GET, PUT = "shop.Currency/Get", "shop.Currency/Put"


@pytest.mark.parametrize(
    ("spans", "joined", "apart"),
    [
        # One call that encloses it, of the same method
        ([front(), asks(GET), grpc(GET)], 1, 0),
        ([front(None), asks(GET), grpc(GET)], 1, 0),
        ([front(), asks(PUT, (20, 28)), asks(GET), grpc(GET)], 1, 0),
        ([front(), asks(GET), lost(f"grpc.{GET}")], 1, 0),  # an exporter that says a name only
        ([front(), http("/items/7"), lost("GET /items/*", method="GET", path="/items/8")], 1, 0),
        ([front(), http("/items/7"), lost("GET", method="GET", path="/items/{id}")], 1, 0),
        # Each of two calls, one after the other, has its own; clocks are not the same
        ([front(), asks(GET, (5, 15)), asks(GET), grpc(GET, (6, 14)), grpc(GET)], 2, 0),
        ([front(), asks(GET), grpc(GET, (60, 66))], 1, 0),
        # Clocks that are no help: in their order, whenever they say that it was
        ([front(), asks(GET), grpc(GET, (-5000, -4993))], 1, 0),
        ([front(None), asks(GET), grpc(GET, (5000, 5007))], 1, 0),
        (
            [front(), asks(GET, (5, 15)), asks(GET), grpc(GET, (-60, -52)), grpc(GET, (-45, -40))],
            2,
            0,
        ),
        ([front(), asks(GET, (19, 29)), asks(GET), grpc(GET, (21, 26)), grpc(GET)], 2, 0),
        ([front(None), asks(GET), asks(GET, (40, 49)), grpc(GET, (-60, -55))], 0, 1),
        # As times are written down to the millisecond, and paths with a slash or without
        ([front(), asks(GET), grpc(GET, (20, 30))], 1, 0),
        ([front(), http("/items/"), lost("GET", method="GET", path="/items")], 1, 0),
        # Each asks for what the other one serves: the first is the request
        (
            [front(None), http("/"), lost("GET", (22, 28), method="GET", path="/")],
            1,
            0,
        ),
        # No call, another method, a call that has its answer: whose spans they are is said
        ([front(), grpc(GET)], 0, 1),
        ([front(), asks(PUT), grpc(GET)], 0, 1),
        ([front(), http("/items/7"), lost("GET", method="GET", path="/carts/7")], 0, 1),
        ([front(), http("/items/7"), lost("POST", method="POST", path="/items/7")], 0, 1),
        (
            [
                *(front(), asks(GET), grpc(GET)),
                made("a", "front-client-20", "server", "other", (21, 28), rpc_method=GET),
            ],
            0,
            1,
        ),
        # Two calls around one span, two spans within one call: nobody knows which
        ([front(), asks(GET, (19, 40)), asks(GET), grpc(GET)], 0, 1),
        ([front(), asks(GET), grpc(GET), grpc(GET, (23, 26))], 0, 2),
        # Longer than the call: it cannot be its answer
        ([front(), asks(GET), grpc(GET, (18, 40))], 0, 1),
        # The request itself, be it short, and another one beside it
        ([front(None, (1, 9)), asks(GET, (2, 8)), made("w", "x", "client", "w", (3, 900))], 0, 0),
        ([front(None), lost("GET", (500, 900), method="GET", path="/")], 0, 0),
    ],
)
def test_where_a_span_without_a_parent_belongs(spans: list[Span], joined: int, apart: int) -> None:
    built = build(Trace.of(TRACE, spans))
    assert built is not None
    assert built.service == "front"
    assert (built.rejoined, built.parentless) == (
        frozenset({"back"}) if joined else frozenset(),
        frozenset({"back"}) if apart else frozenset(),
    )
    assert built.strangers >= apart
    assert sum(call.callee == "back" for call in built.calls) == joined
    # And the service takes it as whole, with a device before it that sends a traceparent, or not
    given = Assembler(2.0, 60.0, patience=10.0, expected=Expectations())
    for number in range(10):
        given.add([s._replace(trace_id=f"{number:032x}") for s in spans], 0.0)
    taken = [trace for now in range(1, 30) for trace in given.pop(float(now))]
    if not any(span.parent_id == "x" for span in spans):
        assert [unusable(each, lineage(*each.spans)) for each in taken] == [""] * 10


def test_the_calls_of_what_was_joined_are_the_requests() -> None:
    deeper = made("SELECT", "back-server-22", "client", "back", (23, 26), point="back>db:SELECT:x")
    run = lineage(front(), asks(GET), grpc(GET), deeper)
    assert "back>db:SELECT:x" in run.support
    assert not run.orphans and not run.strangers


def test_the_repair_is_told_and_so_is_what_could_not_be_repaired(tmp_path: Path) -> None:
    call = Made("api", 0, host="shop", path="/a", start=10, end=90)
    fits, other = (Made("shop", None, 2, path, start=20, end=80) for path in ("/a", "/b"))
    whole = analysed(tmp_path, [[entered("/"), call, fits]] * 6)
    assert any("shop name no parents in 6 requests: they were put" in note for note in whole.notes)
    assert [each.service for each in whole.classes] == ["api"]
    lost = analysed(tmp_path, [[entered("/"), call, other]] * 6)
    assert any("no single call fits" in note for note in lost.notes)
    assert [each.service for each in lost.classes] == ["api"]
