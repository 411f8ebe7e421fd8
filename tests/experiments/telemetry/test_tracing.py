"""The service's traces of itself: where they go, what is in them, and that they feed no loop."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.util._once import Once
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ldfi.cli.ports import free_port
from ldfi.experiments.telemetry import tracing
from ldfi.testing.world import QUICK, World
from tests.deploy.sink import Sink, listening, until

ADMIN = "admin-0123456789abcdef"
HEADERS = {"authorization": f"Bearer {ADMIN}"}
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@contextmanager
def serving(folder: Path, port: str, **variables: str) -> Iterator[httpx.Client]:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("OTEL_")}
    environment |= {"LDFI_TOKENS": f"admin:{ADMIN}", "OTEL_BSP_SCHEDULE_DELAY": "100", **variables}
    words = ["serve", "--port", port, "--database", "x.sqlite3"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ldfi.cli", *words],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(Path.cwd()), "NO_PROXY": "127.0.0.1"},
    )
    url = f"http://127.0.0.1:{port}"
    with httpx.Client(base_url=url, headers=HEADERS, trust_env=False) as client:
        try:
            until(lambda: process.poll() is not None or answers(client), 30)
            yield client
        finally:
            process.terminate()
            process.wait(20)


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def requests_for(client: httpx.Client, route: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    mine = [each for each in lines if each.startswith("ldfi_http_requests_total{")]
    return sum(float(each.rsplit(" ", 1)[1]) for each in mine if f'route="{route}"' in each)


def test_requests_are_traced_but_for_those_of_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
    paths, sink = [*tracing.UNTRACED.split(","), "/api/v1/status"], Sink()

    async def asked(app: ASGIApp) -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://ldfi") as client:
            for path in paths:
                assert (await client.get(path)).is_success

    with listening(sink) as endpoint:
        monkeypatch.setenv(ENDPOINT, endpoint)
        routes = [Route(path, lambda _: Response()) for path in paths]
        asyncio.run(asked(tracing.traced(Starlette(routes=routes))))
        provider = trace.get_tracer_provider()
        assert isinstance(provider, TracerProvider)
        provider.shutdown()  # which sends what it has
    assert set(sink.names) == {("ldfi", "GET /api/v1/status")}


@pytest.mark.long
def test_requests_are_traced_where_the_environment_says_but_no_machines(tmp_path: Path) -> None:
    sink, port = Sink(), str(free_port())
    with listening(sink) as endpoint, serving(tmp_path, port, **{ENDPOINT: endpoint}) as client:
        client.get("/api/v1/edge/rules?edge=e&wait=0")
        client.get("/metrics")
        client.post("/v1/traces", json={"resourceSpans": []})
        client.post("/api/v1/device-metrics", json={"metrics": []})
        client.get("/api/v1/status")
        until(lambda: sink.names, 10)
    assert set(sink.names) == {("ldfi", "GET /api/v1/status")}


@pytest.mark.long
def test_a_service_that_exports_to_itself_causes_no_more_exports(tmp_path: Path) -> None:
    port = str(free_port())
    own = {
        ENDPOINT: f"http://127.0.0.1:{port}",
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{ADMIN}",
    }
    with serving(tmp_path, port, **own) as client:
        client.get("/api/v1/status")
        until(lambda: requests_for(client, "/v1/traces") == 1, 10)
        with pytest.raises(AssertionError, match="in vain"):
            until(lambda: requests_for(client, "/v1/traces") > 1, 1.5)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, False),
        ({ENDPOINT: ""}, False),
        ({ENDPOINT: "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x/v1/traces"}, True),
        ({ENDPOINT: "http://x", "OTEL_SDK_DISABLED": "True"}, False),
        ({ENDPOINT: "http://x", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_SERVICE_NAME": "ldfi"}, False),
    ],
)
def test_it_is_off_unless_asked_for(variables: dict[str, str], expected: bool) -> None:
    assert tracing.wanted(variables) is expected


def test_what_becomes_of_an_experiment_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "TRACER", provider.get_tracer("test"))
    with World.in_memory() as world:
        world.start(QUICK)
        armed = world.until_armed()
        world.engine.scheduler.commands.abort(armed, "enough", "kim", world.now)
        world.steps(10)

    told = [
        span.name
        for span in exporter.get_finished_spans()
        if (span.attributes or {}).get("ldfi.experiment") == armed
    ]
    assert told == ["propose experiment", "arm experiment", "end experiment"]
