"""The trace of a request that an engineer replayed, as a Collector sends it."""

from __future__ import annotations

from typing import Any

from ldfi.fit.protocol.scenario import scenario_of

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def replayed(point: str) -> dict[str, Any]:
    """OTLP in JSON: a request in which an error at ``point`` fired."""
    experiment = scenario_of("engineer-7")
    spans = [
        _span("a" * 16, "c" * 16, 2, {"fit.experiment": experiment, "fit.arm": "treatment"}),
        _span("b" * 16, "a" * 16, 3, {"fit.point": point, "fit.fired": "error"}),
    ]
    resource = {"attributes": [_attribute("service.name", "api")]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}


def _span(name: str, parent: str, kind: int, attributes: dict[str, str]) -> dict[str, Any]:
    return {
        "traceId": TRACE,
        "spanId": name,
        "parentSpanId": parent,
        "name": "GET /boot",
        "kind": kind,
        "startTimeUnixNano": "1767225600000000000",
        "endTimeUnixNano": "1767225600100000000",
        "attributes": [_attribute(key, value) for key, value in attributes.items()],
    }


def _attribute(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}
