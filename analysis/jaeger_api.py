"""Jaeger's query API: ``/api/services`` and ``/api/traces``, as its own pages ask it.

Others have it, too (VictoriaTraces, GreptimeDB), below a path of their own.
"""

from __future__ import annotations

from typing import IO

from ldfi.analysis.trace_api import TraceApi, TraceQuery
from ldfi.analysis.unknown_service import no_such_service


def fetch_from_jaeger(api: TraceApi, query: TraceQuery, file: IO[bytes]) -> None:
    """Fetch traces, in Jaeger's own JSON.

    Raises Unreachable, Invalid, and NotFound for a service that Jaeger does not know.
    """
    answer = api.document("/api/services")
    data = answer.get("data") if isinstance(answer, dict) else None
    services = sorted(each for each in data or () if isinstance(each, str))
    if query.service not in services:
        raise no_such_service(api.name, query.service, services)
    times = {"start": int(query.begin * 1e6), "end": int(query.end * 1e6)}
    api.save("/api/traces", file, service=query.service, limit=query.limit, **times)
