"""What comes in from the systems under test and from the users' devices."""

from __future__ import annotations

import hashlib
import re
import time
import zlib
from typing import Annotated, Literal

from fastapi import APIRouter, Request, Response
from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from experiments.api.auth import Devices, Ingest
from experiments.api.problems import Problem
from experiments.domain.observation import Outcome
from experiments.engine import Engine
from lineage.errors import UnreadableTraces
from lineage.readers.batch import Batch
from lineage.readers.otlp import decode_protobuf
from lineage.readers.otlp_json import decode_json

router = APIRouter()

MAX_BODY = 16 * 1024 * 1024
MAX_METRICS = 10_000
_TRACE_ID = re.compile(r"[0-9a-f]{32}")


@router.post("/v1/traces", tags=["ingest"])
async def receive_traces(request: Request, _caller: Ingest) -> Response:
    """OTLP over HTTP: protobuf or JSON, plain or gzipped; answers with partial success."""
    body = _unzip(await _body(request), request.headers.get("content-encoding", ""))
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    try:
        batch = _decode(kind, body)
    except UnreadableTraces as error:
        raise Problem(400, "unreadable-traces", str(error)) from error
    engine: Engine = request.app.state.engine
    engine.receive_spans(batch.spans, time.time())
    engine.dropped["span_unreadable"] += batch.rejected
    return _accepted(kind, batch.rejected)


def _decode(kind: str, body: bytes) -> Batch:
    if kind == "application/x-protobuf":
        return decode_protobuf(body)
    if kind == "application/json":
        return decode_json(body)
    raise Problem(
        415, "unsupported-media-type", f"{kind!r}: send application/x-protobuf or application/json"
    )


def _accepted(kind: str, rejected: int) -> Response:
    answer = ExportTraceServiceResponse()
    if rejected:
        answer.partial_success.rejected_spans = rejected
        answer.partial_success.error_message = "spans without usable ids or times"
    if kind == "application/json":
        return Response(MessageToJson(answer), media_type=kind)
    return Response(answer.SerializeToString(), media_type=kind)


async def _body(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY:
            raise Problem(413, "too-large", f"a body may have {MAX_BODY} bytes; send less at once")
        parts.append(part)
    return b"".join(parts)


def _unzip(body: bytes, encoding: str) -> bytes:
    if encoding in {"", "identity"}:
        return body
    if encoding != "gzip":
        raise Problem(415, "unsupported-encoding", f"{encoding!r}: send gzip or nothing")
    unzip = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        plain = unzip.decompress(body, MAX_BODY)
    except zlib.error as error:
        raise Problem(400, "unreadable-gzip", f"the body is no gzip: {error}") from error
    if unzip.unconsumed_tail:
        raise Problem(413, "too-large", f"unzipped, a body may have {MAX_BODY} bytes")
    if not unzip.eof:
        raise Problem(400, "unreadable-gzip", "the gzipped body was cut short")
    return plain


class DeviceMetric(BaseModel):
    """What one device saw of one request."""

    model_config = ConfigDict(extra="ignore")
    device: Annotated[str, Field(min_length=1, max_length=200)]
    trace_id: Annotated[str, Field(min_length=32, max_length=32)]
    outcome: Literal["success", "failure"]
    member: Annotated[str, Field(max_length=200)] = ""
    session: Annotated[str, Field(max_length=200)] = ""
    error_code: Annotated[str, Field(max_length=100)] | None = None
    duration_ms: Annotated[float, Field(ge=0, le=86_400_000)] = 0.0


class DeviceMetrics(BaseModel):
    """A batch of device metrics. Each is checked by itself; bad ones are counted, not fatal."""

    metrics: Annotated[list[dict[str, object]], Field(max_length=MAX_METRICS)]


class Received(BaseModel):
    """How many of a batch were taken and how many could not be read."""

    accepted: int
    rejected: int


@router.post("/api/v1/device-metrics", status_code=202, tags=["ingest"])
async def receive_device_metrics(
    batch: DeviceMetrics, request: Request, _caller: Devices
) -> Received:
    """Outcomes as the users' devices saw them."""
    engine: Engine = request.app.state.engine
    key: bytes = request.app.state.member_key
    outcomes = [o for item in batch.metrics if (o := _outcome(item, key)) is not None]
    rejected = len(batch.metrics) - len(outcomes)
    engine.dropped["metric_unreadable"] += rejected
    engine.receive_outcomes(outcomes, time.time())
    return Received(accepted=len(outcomes), rejected=rejected)


def _outcome(item: dict[str, object], key: bytes) -> Outcome | None:
    try:
        metric = DeviceMetric.model_validate(item)
    except ValidationError:
        return None
    trace_id = metric.trace_id.lower()
    if not _TRACE_ID.fullmatch(trace_id):
        return None
    return Outcome(
        trace_id=trace_id,
        device=_hashed(metric.device, key),
        member=_hashed(metric.member, key),
        success=metric.outcome == "success",
        error_code=metric.error_code,
        duration=metric.duration_ms / 1000,
    )


def _hashed(identity: str, key: bytes) -> str:
    """People and their devices are hashed at the door; nothing behind it knows who they are."""
    return hashlib.blake2b(identity.encode(), key=key, digest_size=12).hexdigest()
