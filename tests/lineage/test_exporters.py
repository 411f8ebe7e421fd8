"""Telemetry that is exported is nobody's request, and no call that one needs."""

from __future__ import annotations

import pytest

from ldfi.fit.protocol.features import request_features
from ldfi.lineage.exporters import exports


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("POST", "/v1/traces", True),
        ("POST", "/v1/traces/", True),
        ("POST", "/otlp/v1/traces", True),
        ("POST", "/otlp/v1/metrics", True),
        ("POST", "/api/default/v1/traces", True),
        ("POST", "/opentelemetry.proto.collector.trace.v1.TraceService/Export", True),
        ("POST", "/api/v2/spans", True),
        ("GET", "/v1/traces", False),
        ("POST", "/shop/v1/logs", False),
        ("POST", "/v1/traces/search", False),
        ("POST", "/otlp/settings", False),
        ("POST", "/", False),
    ],
)
def test_what_hands_telemetry_on_is_told_from_requests(
    method: str, path: str, expected: bool
) -> None:
    assert exports(request_features(method, path)) is expected
