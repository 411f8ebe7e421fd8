"""The contract of every client: its point has one name at both ends.

A request is made as a service makes it: within a SERVER span, with a failure context in its
baggage. What was recorded then goes the way of real spans: encoded as OTLP, read by the lineage.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ldfi.fit.protocol.context import Arm, encode
from ldfi.fit.protocol.faults import Fault
from ldfi.lineage.lineage import Lineage, learn_in_full
from ldfi.lineage.readers.otlp import decode_protobuf
from ldfi.lineage.span import Trace
from tests.fit.applications import KEYS
from tests.fit.breaking import breaking, functions

SERVICE = "api"


class Requests:
    """Makes requests of service ``api`` and reads what they taught."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(resource=Resource({"service.name": SERVICE}))
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @contextmanager
    def request(
        self, *faults: str, arm: Arm = "treatment", delay_ms: int = 100, seconds: int = 60
    ) -> Iterator[None]:
        """One request under experiment, or with no ``faults`` one without a context. ``seconds``:
        how long that still holds."""
        self.exporter.clear()
        around = context.Context()
        if faults:
            armed = [Fault.parse(fault) for fault in faults]
            ends = int(time.time()) + seconds
            value = encode(KEYS, "e1", arm, ends, armed, delay_ms=delay_ms)
            around = baggage.set_baggage("fit", value, around)
        token = context.attach(around)
        try:
            with self.provider.get_tracer("test").start_as_current_span(
                "GET /", kind=trace.SpanKind.SERVER, record_exception=False
            ):
                yield
        finally:
            context.detach(token)

    def calls(self) -> list[ReadableSpan]:
        """The spans of the last request's calls."""
        calling = (trace.SpanKind.CLIENT, trace.SpanKind.PRODUCER)
        return [span for span in self.exporter.get_finished_spans() if span.kind in calling]

    def lineage(self) -> Lineage:
        """What the lineage reads of the last request, from its exported spans."""
        body = encode_spans(self.exporter.get_finished_spans()).SerializeToString()
        spans = list(decode_protobuf(body).spans)
        learned = learn_in_full(Trace.of(spans[0].trace_id, spans))
        assert learned is not None
        return learned


def holds(
    requests: Requests,
    point: str,
    call: Callable[[], Any],
    failure: Callable[[Any], bool],
    late: Callable[[Any], bool] | None = None,
) -> None:
    """One name at both ends: without a context, when it fails, when it is late, in control.

    ``call`` gives what its caller sees, an answer or an exception. ``failure`` and ``late`` look at
    that; ``late`` is None where the call has no timeout, so that it outlasts a delay.
    """
    with requests.request():
        usual = call()
    assert not isinstance(usual, BaseException), usual
    assert not failure(usual)
    assert requests.lineage().called == {point}
    assert requests.lineage().support == {point}

    with requests.request(f"error@{point}"):
        seen = call()
    assert failure(seen), seen
    run = requests.lineage()
    assert run.called == run.failed == {point}
    assert run.support == set()
    assert run.fired == {f"error@{point}"}
    _proved(requests, point, "error")

    with requests.request(f"delay@{point}", delay_ms=60_000 if late else 80):
        began = time.monotonic()
        seen = call()
        took = time.monotonic() - began
    assert late(seen) if late else not failure(seen), seen
    assert 0.05 < took < 10
    run = requests.lineage()
    assert run.called == {point}
    assert run.fired == {f"delay@{point}"}
    assert run.failed == ({point} if late else set())
    _proved(requests, point, "delay")

    with requests.request(f"error@{point}", arm="control"):
        seen = call()
    assert not isinstance(seen, BaseException)
    assert not failure(seen)
    run = requests.lineage()
    assert run.support == {point}
    assert run.fired == set()
    assert run.would_fire == {f"error@{point}"}

    with requests.request("error@api>http:GET:elsewhere/", f"delay@{point}x"):
        seen = call()
    assert not isinstance(seen, BaseException)
    assert requests.lineage().support == {point}
    assert requests.lineage().fired == set()


def unharmed(
    requests: Requests,
    client: ModuleType,
    point: str,
    call: Callable[[], Any],
    failure: Callable[[Any], bool],
) -> None:
    """Whatever breaks in the client's file, the host's call goes through, or fails as injected."""
    for owner, name in functions(client):
        if owner is not client:
            continue  # what stands in for the library is the host's by then
        for kind in ("error", "delay"):
            with pytest.MonkeyPatch.context() as patched, requests.request(f"{kind}@{point}"):
                breaking(owner, name, [client], patched)
                seen = call()
            assert not isinstance(seen, BaseException) or failure(seen), (name, seen)


def _proved(requests: Requests, point: str, kind: str) -> None:
    hit = [span for span in requests.calls() if (span.attributes or {}).get("fit.fired") == kind]
    assert hit
    for span in hit:
        assert span.attributes is not None
        assert span.attributes["fit.point"] == point
        events = [event for event in span.events if event.name == "fit.fault"]
        assert events
        assert events[0].attributes is not None
        assert dict(events[0].attributes) == {
            "fit.fired": kind,
            "fit.experiment": "e1",
            "fit.point": point,
        }


def seen(call: Callable[[], Any]) -> Callable[[], Any]:
    """The call as ``holds`` wants it: an exception is what the caller sees, too."""

    def look() -> Any:
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - whatever the caller sees
            return error

    return look


def seen_async(call: Callable[[], Awaitable[Any]]) -> Callable[[], Any]:
    """The same for a coroutine function, in an event loop of its own."""

    async def run() -> Any:
        return await call()

    return seen(lambda: asyncio.run(run()))
