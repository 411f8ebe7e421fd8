"""Requests written down as OTLP: a span each for the request and for the calls in it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldfi.analysis.analysis import analyze
from ldfi.analysis.report import Analysis

NOON = 1_700_000_000_000_000_000
"""When requests begin: nanoseconds since the epoch."""


@dataclass(frozen=True)
class Made:
    """One span. ``within``: the number of its parent among the request's spans, or of none."""

    service: str
    within: int | None = None
    kind: int = 3
    path: str = "/"
    host: str = ""
    failed: bool = False
    start: int = 1
    end: int = 2


def entered(path: str, *, failed: bool = False, service: str = "api") -> Made:
    """Make the request's own span."""
    return Made(service, kind=2, path=path, failed=failed, start=0, end=1000)


def asked(
    host: str, start: int = 1, end: int = 2, *, failed: bool = False, within: int = 0
) -> Made:
    """Make a call of api to a host."""
    return Made("api", within, host=host, failed=failed, start=start, end=end)


def analysed(
    folder: Path, requests: Iterable[list[Made]], outcomes: Iterable[bool] | None = None
) -> Analysis:
    """Write requests, and how each ended for its user; say what is made of them."""
    made = list(enumerate(requests, 1))
    spans = [_otlp(f"{n:032x}", i, span) for n, all_ in made for i, span in enumerate(all_)]
    (folder / "traces.json").write_text(json.dumps({"resourceSpans": spans}))
    if outcomes is not None:
        told = [{"trace_id": f"{n:032x}", "success": ok} for n, ok in enumerate(outcomes, 1)]
        (folder / "outcomes.jsonl").write_text("\n".join(map(json.dumps, told)))
    return analyze([folder])


def _otlp(trace: str, number: int, made: Made) -> dict[str, Any]:
    called = {"url.full": f"http://{made.host}{made.path}"} if made.host else {}
    status = "503" if made.failed else "200"
    attributes = {
        "http.request.method": "GET",
        "url.path": made.path,
        "http.response.status_code": status,
        **called,
    }
    span = {
        "traceId": trace,
        "spanId": f"{number + 1:016x}",
        "parentSpanId": "" if made.within is None else f"{made.within + 1:016x}",
        "name": "GET",
        "kind": made.kind,
        "startTimeUnixNano": str(NOON + made.start),
        "endTimeUnixNano": str(NOON + made.end),
        "status": {"code": 2 if made.failed else 0},
        "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()],
    }
    name = {"key": "service.name", "value": {"stringValue": made.service}}
    return {"resource": {"attributes": [name]}, "scopeSpans": [{"spans": [span]}]}
