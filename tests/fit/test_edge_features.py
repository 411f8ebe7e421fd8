"""What the edge sees of a request is what lineage learns its class from: the same, at both ends."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.instrumentation.wsgi import OpenTelemetryMiddleware
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from ldfi.fit import asgi, wsgi
from ldfi.fit.protocol.features import request_features
from ldfi.lineage.readers.otlp import decode_protobuf
from ldfi.testing.live_service import served
from tests.fit.applications import Recorded, echo_app, recording, traced
from tests.fit.edges import wsgi_served
from tests.fit.test_wsgi import echo

TARGETS = [
    "/boot",
    "/",
    "/titles/17/similar?page=2&q=",
    "/titles/tt0111161?token=0123456789abcdef0123456789abcdef",
    "/caf%C3%A9/menu?d%C3%A9j%C3%A0=vu",
    "/a%20b/c;v=1,2?x=1&x=2&y",
    "/deep/" + "x" * 3000 + "?long=" + "y" * 3000,
]


@pytest.fixture
def everything() -> Recorded:
    return recording(ALWAYS_ON)


def learned(recorded: Recorded) -> dict[str, str]:
    """What lineage reads from the exported span of the request."""
    body = encode_spans(recorded.spans()).SerializeToString()
    (span,) = [each for each in decode_protobuf(body).spans if each.operation.kind == "server"]
    return dict(span.operation.features)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target[:24])
def test_asgi(everything: Recorded, target: str) -> None:
    seen: list[Any] = []
    inner = traced(echo_app(), everything)

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            seen.append(asgi._features(scope))
        await inner(scope, receive, send)

    with served(noting) as url:
        httpx.get(f"{url}{target}", trust_env=False)
    # OpenTelemetry's ASGI middleware writes the query on some versions' spans only
    whole, known = seen[0], learned(everything)
    assert known["path"] == whole["path"]
    assert known.items() <= whole.items()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target[:24])
def test_wsgi(everything: Recorded, target: str) -> None:
    seen: list[Any] = []
    inner = OpenTelemetryMiddleware(echo, tracer_provider=everything.provider)

    def noting(environ: dict[str, Any], start_response: Any) -> Any:
        seen.append(wsgi._features(environ))
        return inner(environ, start_response)

    with wsgi_served(noting) as url:
        httpx.get(f"{url}{target}", trust_env=False)
    assert seen == [learned(everything)]


def test_strangers_cannot_fill_the_memory_with_long_paths() -> None:
    features = request_features("GET", "/x" * 100_000, "a=" + "y" * 100_000 + "&b=1")

    assert len(features["path"]) <= 2048
    assert features["query.a"] == "*"
    assert "query.b" not in features
