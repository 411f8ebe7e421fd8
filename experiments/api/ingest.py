"""What comes in from the systems under test and from the users' devices."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Annotated, ClassVar, Final, Literal

from fastapi import APIRouter, FastAPI, Request, Response
from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from pydantic import BaseModel, ConfigDict, Field, JsonValue, SkipValidation, ValidationError

from ldfi.errors import StreamError
from ldfi.experiments.api.auth import Devices, Ingest
from ldfi.experiments.api.decoding import MAX_BODY, Decoding, check_count, unzipped
from ldfi.experiments.api.forward import engine_of
from ldfi.experiments.api.problems import Problem
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.domain.traffic.observation import Outcome
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.streams.otlp import Divided, divide, from_json
from ldfi.experiments.streams.record_writer import KeyedMessage, RecordWriter
from ldfi.experiments.streams.wire import write_outcome
from ldfi.experiments.telemetry import clock
from ldfi.fit.protocol.allocation import DEVICE_BITS, mark_of
from ldfi.lineage.errors import UnreadableTraces
from ldfi.lineage.readers.batch import Batch
from ldfi.lineage.readers.otlp import decode_protobuf
from ldfi.lineage.readers.otlp_json import decode_json
from ldfi.lineage.text import clean

MAX_METRICS: Final = 10_000
PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
AT_ONCE: Final = 2_000
"""Spans that the engine takes in before others have their turn."""


class IngestRoute(GuardedRoute):
    """Spans and device metrics come in bulk. With a stream any process takes them."""

    max_body: ClassVar[int] = MAX_BODY

    def is_for_leader(self, app: FastAPI) -> bool:
        """Return whether they go straight to the engine, and another process has it."""
        return app.state.record_writer is None and app.state.engine is None


router = APIRouter(tags=["ingest"], route_class=IngestRoute)

_JSON_TRACES = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "api"}}]},
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "traceId": "5b8efff798038103d269b633813fc60c",
                            "spanId": "eee19b7ec3c1b174",
                            "name": "GET /boot",
                            "kind": 2,
                            "startTimeUnixNano": "1767225600000000000",
                            "endTimeUnixNano": "1767225600100000000",
                        }
                    ]
                }
            ],
        }
    ]
}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_OTLP = {
    "required": True,
    "description": "An ExportTraceServiceRequest; `Content-Encoding` may be gzip or zstd.",
    "content": {
        "application/x-protobuf": _BINARY,
        "application/json": {"schema": {"type": "object"}, "example": _JSON_TRACES},
    },
}
_ACCEPTED = {
    "description": "Taken; `partialSuccess` says how many spans were not.",
    "content": {
        "application/x-protobuf": _BINARY,
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {"partialSuccess": {"type": "object"}},
                "additionalProperties": False,
            },
            "example": {},
        },
    },
}


@router.post(
    "/v1/traces",
    response_class=Response,
    openapi_extra={"requestBody": _OTLP},
    responses={200: _ACCEPTED, 415: {}},
)
async def receive_traces(request: Request, _caller: Ingest) -> Response:
    """Take in spans as OTLP over HTTP: protobuf or JSON, plain or compressed; answers with partial
    success."""
    body, encoding = await request.body(), request.headers.get("content-encoding", "")
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind not in {PROTOBUF, JSON}:
        raise Problem(415, "unsupported-media-type", f"{kind!r}: send {PROTOBUF} or {JSON}")
    decoding: Decoding = request.app.state.decoding
    record_writer: RecordWriter | None = request.app.state.record_writer
    try:
        if record_writer is not None:
            divided = await decoding.do(lambda: _divided(kind, body, encoding))
            await _put(
                record_writer, [(record_writer.topics.spans, *piece) for piece in divided.pieces]
            )
            rejected = divided.rejected
        else:
            batch = await decoding.do(lambda: _decoded(kind, body, encoding))
            rejected = await _to_engine(engine_of(request), batch)
    except UnreadableTraces as error:
        raise Problem(400, "unreadable-traces", str(error)) from error
    return _accepted(kind, rejected)


async def _to_engine(engine: Engine, batch: Batch) -> int:
    """Hand spans to the engine, some at a time, and count those that could not be used."""
    for at in range(0, len(batch.spans), AT_ONCE):
        engine.receive_spans(batch.spans[at : at + AT_ONCE], clock.now())
        await asyncio.sleep(0)
    engine.dropped["span_unreadable"] += batch.rejected
    return batch.rejected


def _decoded(kind: str, body: bytes, encoding: str) -> Batch:
    """Unzip and decode a body. Raises UnreadableTraces, and Problem for one too large."""
    plain = unzipped(body, encoding)
    check_count(plain, as_json=kind == JSON)
    return decode_json(plain) if kind == JSON else decode_protobuf(plain)


def _divided(kind: str, body: bytes, encoding: str) -> Divided:
    """Unzip a body and divide it by traces. Raises as :func:`_decoded` does."""
    plain = unzipped(body, encoding)
    check_count(plain, as_json=kind == JSON)
    if kind == JSON:
        decode_json(plain)  # says what is wrong in its own words
        plain = from_json(plain)
    return divide(plain)


async def _put(record_writer: RecordWriter, messages: list[KeyedMessage]) -> None:
    try:
        await record_writer.put(messages)
    except StreamError as error:
        raise Problem(503, "stream-unavailable", str(error), {"Retry-After": "2"}) from error


_METRIC: Final[dict[str, JsonValue]] = {
    "device": "b81d-42",
    "member": "m-7",
    "trace_id": "5b8efff798038103d269b633813fc60c",
    "outcome": "failure",
    "error_code": "PLAYBACK-7",
}


def _accepted(kind: str, rejected: int) -> Response:
    answer = ExportTraceServiceResponse()
    if rejected:
        answer.partial_success.rejected_spans = rejected
        answer.partial_success.error_message = "spans without usable ids or times"
    if kind == "application/json":
        return Response(MessageToJson(answer), media_type=kind)
    return Response(answer.SerializeToString(), media_type=kind)


class DeviceMetric(BaseModel):
    """What one device saw of one request."""

    model_config = ConfigDict(
        extra="ignore", json_schema_extra={"examples": [{**_METRIC, "duration_ms": 182.5}]}
    )
    device: Annotated[
        str,
        Field(
            min_length=1,
            max_length=200,
            description="Any id that stays: the one that its requests carry to the edge. It is "
            "hashed with a secret key on arrival and never stored or logged in clear.",
        ),
    ]
    trace_id: Annotated[
        str, Field(pattern="^[0-9A-Fa-f]{32}$", description="The trace of the request.")
    ]
    outcome: Annotated[
        Literal["success", "degraded", "failure"],
        Field(
            description="What the user got in the end. `degraded`: it was accepted, but something "
            "was missing from it."
        ),
    ]
    member: Annotated[
        str, Field(max_length=200, description="Whose device it is. Hashed like `device`.")
    ] = ""
    session: Annotated[
        str, Field(max_length=200, description="Checked, then forgotten: nothing needs it so far.")
    ] = ""
    error_code: Annotated[
        str | None, Field(max_length=100, description="What the device calls the failure.")
    ] = None
    duration_ms: Annotated[
        float, Field(ge=0, le=86_400_000, description="How long the user waited.")
    ] = 0.0


class DeviceMetrics(BaseModel):
    """A batch of device metrics. Each is checked by itself; bad ones are counted, not fatal.

    Also counted, in `dropped` of the status: second reports on one trace (`join_duplicate`),
    those that contradict each other (`join_contradiction`; the worse counts), those of a device
    that no edge can have drawn for the request (`join_not_drawn`; refused),
    reports whose trace never came (`join_unknown_trace`), and those that belong to an experiment
    nobody knows any more (`unknown_experiment`).
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"metrics": [_METRIC]}]})
    metrics: Annotated[
        list[SkipValidation[DeviceMetric]],
        Field(
            description="The reports; one that cannot be read is counted and left out, the others "
            "are taken.",
            max_length=MAX_METRICS,
        ),
    ]


class Received(BaseModel):
    """How many of a batch were taken and how many could not be read."""

    accepted: int = Field(description="Reports that were taken.")
    rejected: int = Field(description="Reports that could not be read, and were left out.")


@router.post("/api/v1/device-metrics", status_code=202)
async def receive_device_metrics(
    batch: DeviceMetrics, request: Request, _caller: Devices
) -> Received:
    """Take in outcomes as the users' devices saw them."""
    key: bytes = request.app.state.member_key
    outcomes = [o for item in batch.metrics if (o := _outcome(item, key)) is not None]
    rejected = len(batch.metrics) - len(outcomes)
    record_writer: RecordWriter | None = request.app.state.record_writer
    if record_writer is not None:
        await _put(
            record_writer,
            [(record_writer.topics.metrics, o.trace_id, write_outcome(o)) for o in outcomes],
        )
    else:
        engine = engine_of(request)
        engine.dropped["metric_unreadable"] += rejected
        engine.receive_outcomes(outcomes, clock.now())
    return Received(accepted=len(outcomes), rejected=rejected)


def _outcome(item: object, key: bytes) -> Outcome | None:
    try:
        metric = DeviceMetric.model_validate(item)
    except ValidationError:
        return None
    return Outcome(
        trace_id=metric.trace_id.lower(),
        device=_hashed(metric.device, key),
        member=_hashed(metric.member, key),
        success=metric.outcome != "failure",
        degraded=metric.outcome == "degraded",
        error_code=None if metric.error_code is None else clean(metric.error_code),
        duration=metric.duration_ms / 1000,
        mark=mark_of(metric.device) & DEVICE_BITS,
    )


def _hashed(identity: str, key: bytes) -> str:
    """Hash people and their devices at the door; nothing behind it knows who they are."""
    return hashlib.blake2b(
        identity.encode("utf-8", "surrogatepass"), key=key, digest_size=12
    ).hexdigest()
