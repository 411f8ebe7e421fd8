"""Applications that trace themselves. These come last: a process has one global tracer provider."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

exported = InMemorySpanExporter()


@pytest.fixture(scope="module", autouse=True)
def provider() -> TracerProvider:
    """What the application exports to."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exported))
    trace.set_tracer_provider(provider)
    return provider


def shop(http: httpx.AsyncClient, **options: Any) -> Any:
    """Asks within a span of its own, and fails without ``stock``."""

    async def page(_: Request) -> Response:
        with trace.get_tracer("shop").start_as_current_span("thinking"):
            answer = await http.get("http://stock/17")
        return Response(status_code=answer.status_code)

    return OpenTelemetryMiddleware(Starlette(routes=[Route("/page", page)]), **options)


async def ask(app: Any) -> int:
    """The status of the page."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
        return (await client.get("http://shop/page")).status_code


@pytest.mark.ldfi
@pytest.mark.anyio
async def test_own_spans() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200))
    async with httpx.AsyncClient(transport=transport) as http:
        HTTPXClientInstrumentor.instrument_client(http)
        assert await ask(shop(http)) == 200


@pytest.mark.ldfi
@pytest.mark.anyio
async def test_spans_not_sampled() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200))
    async with httpx.AsyncClient(transport=transport) as http:
        app = shop(http, tracer_provider=TracerProvider(sampler=ALWAYS_OFF))
        assert await ask(app) == 200


def test_what_the_application_exports_is_its_own() -> None:
    names = {span.name for span in exported.get_finished_spans()}
    assert {"thinking", "GET"} <= names
    assert not names & {"test", "request", "GET stock"}


@pytest.mark.ldfi
def test_sqlalchemy() -> None:
    engine = create_engine("sqlite://")
    SQLAlchemyInstrumentor().instrument(engine=engine)
    try:
        with engine.connect() as connection:
            assert connection.execute(text("SELECT 1")).scalar() == 1
            try:
                connection.execute(text("SELECT name FROM sqlite_master"))
            except OperationalError:
                connection.rollback()
    finally:
        engine.dispose()
        SQLAlchemyInstrumentor().uninstrument()
