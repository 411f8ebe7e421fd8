"""Grafana Tempo's API: a search by TraceQL, then each trace by its id.

``/api/v2/traces`` says whether a trace is whole; an older Tempo has ``/api/traces`` only. A trace
that Tempo had to cut (it was larger than its limit) is left out: a part is no evidence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, Final

from ldfi.analysis.trace_api import TraceApi, TraceQuery
from ldfi.analysis.unknown_service import no_such_service
from ldfi.errors import NotFound

AT_ONCE: Final = 8
"""Traces that are asked for at a time."""


def fetch_from_tempo(api: TraceApi, query: TraceQuery, file: IO[bytes]) -> int:
    """Fetch traces, as JSON lines; returns how many were left out, being gone or cut.

    Raises Unreachable, Invalid, and NotFound for a service that Tempo does not know.
    """
    found = _search(api, query)
    if not found and query.service:
        services = _services(api, query)
        if query.service not in services:
            raise no_such_service(api.name, query.service, services)
    left_out = 0
    for number, document in enumerate(_traces(api, found)):
        api.progress(f"{api.name}: traces", number + 1, len(found))
        if document is None or document.get("status") in {1, "PARTIAL"}:
            left_out += 1
        else:
            file.write(json.dumps(document).encode() + b"\n")
    return left_out


def _search(api: TraceApi, query: TraceQuery) -> list[str]:
    name = json.dumps(query.service, ensure_ascii=False)  # TraceQL quotes as JSON does
    wanted = f"{{ resource.service.name = {name} }}" if query.service else "{}"
    answer = api.document("/api/search", q=wanted, limit=query.limit, **_between(query))
    traces = answer.get("traces") if isinstance(answer, dict) else None
    ids = (each.get("traceID") for each in traces or () if isinstance(each, dict))
    return [each for each in ids if isinstance(each, str) and each.isalnum()]


def _services(api: TraceApi, query: TraceQuery) -> list[str]:
    answer = api.document("/api/search/tag/service.name/values", **_between(query))
    values = answer.get("tagValues") if isinstance(answer, dict) else None
    return sorted(each for each in values or () if isinstance(each, str))


def _between(query: TraceQuery) -> dict[str, int]:
    return {"start": int(query.begin), "end": int(query.end) + 1}


def _traces(api: TraceApi, ids: list[str]) -> Iterator[dict[str, Any] | None]:
    """Ask for traces, some at a time; None for one that is gone."""
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        yield from pool.map(lambda each: _trace(api, each), ids)
    finally:
        pool.shutdown(cancel_futures=True)


def _trace(api: TraceApi, trace_id: str) -> dict[str, Any] | None:
    for path in (f"/api/v2/traces/{trace_id}", f"/api/traces/{trace_id}"):
        try:
            document = api.document(path)
        except NotFound:
            continue  # of an older Tempo it is the path, else the trace
        gone = not isinstance(document, dict) or not document.get("trace", True)
        return None if gone else document
    return None
