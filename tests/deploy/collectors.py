"""A real Collector with our configuration, and traces to send to it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from deploy.stack import collector
from tests.deploy.programs import collector as installed


@contextmanager
def running(log: Path, *more: str, **variables: str) -> Iterator[str]:
    """A Collector, with more configuration and variables; the URL at which it takes spans."""
    installed()
    with collector.running(log, *more, **variables) as started:
        yield started.url


def export(
    client: httpx.Client,
    trace_id: str,
    number: int,
    service: str = "api",
    error: bool = False,
    **marks: str,
) -> None:
    """Send one span of a trace, by itself: its number is its id, and the parent's is one less."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = service
    span = resource.scope_spans.add().spans.add()
    span.trace_id, span.span_id = bytes.fromhex(trace_id), number.to_bytes(8, "big")
    span.parent_span_id = (number - 1).to_bytes(8, "big") if number > 1 else b""
    span.name, span.start_time_unix_nano = f"call {number}", time.time_ns()
    span.end_time_unix_nano = span.start_time_unix_nano + 1_000_000
    span.status.code = Status.STATUS_CODE_ERROR if error else Status.STATUS_CODE_UNSET
    for name, value in marks.items():
        span.attributes.add(key=name.replace("_", ".")).value.string_value = value
    answer = client.post(
        "/v1/traces",
        content=request.SerializeToString(),
        headers={"content-type": "application/x-protobuf"},
    )
    assert answer.status_code == 200


def traces(kind: int, count: int) -> list[str]:
    """So many trace ids; those of another kind are others."""
    return [f"{kind:08x}{number:024x}" for number in range(1, count + 1)]


def send(url: str, trace_ids: list[str], **what: str | bool) -> None:
    """Traces of three spans, the innermost first; only the second one is marked."""
    service = str(what.pop("service", "api"))
    with httpx.Client(base_url=url, trust_env=False) as client:
        for trace_id in trace_ids:
            for number in (3, 2, 1):
                marks = what if number == 2 else {}
                export(client, trace_id, number, service, **marks)  # type: ignore[arg-type]
