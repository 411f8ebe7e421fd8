"""Applications behind ``fit``'s edge and OpenTelemetry's middleware, as a user would build them.

One has two addresses where the path says nothing, Falcor's model and GraphQL: what a request asks
for says which of its points it needs. They answer on loopback.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any

import pytest
from fastapi import FastAPI, HTTPException, Request
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.instrumentation._semconv import (
    _OpenTelemetrySemanticConventionStability as Stability,
)
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import SpanKind

from ldfi import fit
from ldfi.cli.ports import free_port
from ldfi.experiments.domain.campaign.recording import run_of
from ldfi.experiments.domain.traffic.known_class import KnownClass
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.experiments.domain.traffic.topology import Topology
from ldfi.fit.asgi import _features
from ldfi.fit.protocol.features import Features
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.runtime import Runtime, activate
from ldfi.lineage.classes import discover
from ldfi.lineage.lineage import Lineage, learn_in_full
from ldfi.lineage.readers.otlp import decode_protobuf
from ldfi.lineage.run_summary import Run
from ldfi.lineage.shapes import Shapes
from ldfi.lineage.span import Trace
from ldfi.testing.live_service import served
from tests.fit.edges import eventually

NEEDED = {
    "videos": "videodb",
    "lolomo": "rowsdb",
    "Home": "homedb",
    "Search": "searchdb",
}
"""What a path or an operation begins with → what is called for it."""


def point_of(needed: str) -> str:
    """The point that this needs."""
    return f"front>db:get:{NEEDED[needed]}"


@dataclass
class OneAddress(SpanExporter):
    """``seen``: the features that the edge saw of each request. ``otlp``: where spans go, where
    somebody listens there."""

    url: str = ""
    otlp: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    seen: list[Features] = field(default_factory=list)
    spans: list[ReadableSpan] = field(default_factory=list)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans += spans
        to = HTTPConnection(self.otlp, timeout=5)
        body = encode_spans(spans).SerializeToString()
        with suppress(ConnectionRefusedError):
            to.request("POST", "/v1/traces", body, {"content-type": "application/x-protobuf"})
            to.getresponse().read()
        return SpanExportResult.SUCCESS

    def lineages(self, requests: int) -> list[Lineage]:
        """What the service reads of so many requests, all since the last time."""
        eventually(lambda: sum(s.kind is SpanKind.SERVER for s in self.spans) >= requests)
        batch = decode_protobuf(encode_spans(self.spans).SerializeToString())
        self.spans.clear()
        traces: dict[str, list[Any]] = {}
        for span in batch.spans:
            traces.setdefault(span.trace_id, []).append(span)
        found = [learn_in_full(Trace.of(name, spans)) for name, spans in traces.items()]
        return [each for each in found if each is not None]


def learned(lineages: Sequence[Lineage]) -> list[KnownClass]:
    """The classes of some traffic."""
    shapes = Shapes()
    for each in lineages:
        shapes.add(each)
    found = discover(shapes)
    return [KnownClass.of(each, each.name, Topology(), 0.0, 1, 60.0) for each in found]


def failed(lineage: Lineage) -> Run:
    """A request that its device called failed."""
    outcome = Outcome(lineage.trace_id, "d1", "", False, "http_502")
    return run_of(Observation(lineage, outcome))


def one_address(keys: str, monkeypatch: pytest.MonkeyPatch) -> AbstractContextManager[OneAddress]:
    """Serve the one with two addresses."""
    return traced(_application(), "front", keys, monkeypatch)


@contextmanager
def traced(
    application: FastAPI, service: str, keys: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OneAddress]:
    """Serve an application."""
    # It is read once in a process, and would stay so for the tests that come after
    monkeypatch.setattr(Stability, "_initialized", False)
    monkeypatch.setattr(Stability, "_OTEL_SEMCONV_STABILITY_SIGNAL_MAPPING", {})
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "http")
    there = OneAddress()
    resource = Resource({"service.name": service})
    provider = TracerProvider(resource=resource, sampler=fit.Sampler(ALWAYS_ON))
    provider.add_span_processor(SimpleSpanProcessor(there))
    monkeypatch.setattr(trace, "get_tracer", lambda *_, **__: provider.get_tracer(service))
    inner = OpenTelemetryMiddleware(
        application, tracer_provider=provider, exclude_spans=["receive", "send"]
    )

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            there.seen.append(_features(scope))
        await inner(scope, receive, send)

    activate(Runtime(service, Keys.parse(keys)))
    try:
        with served(fit.EdgeMiddleware(noting)) as url:
            there.url = url
            yield there
    finally:
        activate(None)


def _application() -> FastAPI:
    app = FastAPI()

    @app.get("/model.json")
    async def model(request: Request) -> dict[str, Any]:
        paths = [json.loads(each) for each in request.query_params.getlist("path")]
        return {"jsonGraph": {path[0]: await _got(path[0]) for path in paths}}

    @app.post("/graphql")
    async def graphql(request: Request) -> dict[str, Any]:
        asked = await request.json()
        span = trace.get_current_span()
        span.set_attribute("graphql.operation.name", asked["operationName"])
        return {"data": await _got(asked["operationName"])}

    return app


async def _got(needed: str) -> str:
    try:
        with fit.point("db", "get", peer=NEEDED[needed]):
            return needed
    except Exception as error:
        raise HTTPException(502) from error
