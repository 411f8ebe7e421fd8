"""Applications under test: what the test asks is the request, what they ask are dependencies."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest
import requests
import uvicorn
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

pytestmark = pytest.mark.ldfi


def fake(request: httpx.Request) -> httpx.Response:
    """Every dependency."""
    return httpx.Response(200, json=request.url.path)


def shop(http: httpx.AsyncClient) -> Starlette:
    """Fails without ``stock``; does without ``reviews``."""

    async def page(_: Request) -> Response:
        stock, reviews = await asyncio.gather(
            http.get("http://stock/17"), http.get("http://reviews/17"), return_exceptions=True
        )
        return JSONResponse({"reviews": _good(reviews)}, 200 if _good(stock) else 500)

    return Starlette(routes=[Route("/page/{id}", page), Route("/health", _health)])


def _good(answer: httpx.Response | BaseException) -> bool:
    return isinstance(answer, httpx.Response) and answer.is_success


async def _health(_: Request) -> Response:
    return Response()


@pytest.fixture
async def to_services(anyio_backend: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.MockTransport(fake)) as http:
        yield http


@pytest.mark.anyio
async def test_asgi(to_services: httpx.AsyncClient) -> None:
    transport = httpx.ASGITransport(shop(to_services))
    async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/page/17", params={"q": "x"})).status_code == 200


@pytest.mark.anyio
async def test_traced_asgi(to_services: httpx.AsyncClient) -> None:
    transport = httpx.ASGITransport(OpenTelemetryMiddleware(shop(to_services)))
    async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
        assert (await client.get("/page/17")).status_code == 200


@pytest.mark.anyio
async def test_asgi_behind_asgi(to_services: httpx.AsyncClient) -> None:
    """An application is a fake of another one's dependency."""
    inner = httpx.ASGITransport(shop(to_services))
    async with httpx.AsyncClient(transport=inner, base_url="http://shop") as to_shop:

        async def front(_: Request) -> Response:
            answer = await to_shop.get("/page/17")
            return Response(status_code=answer.status_code)

        outer = httpx.ASGITransport(Starlette(routes=[Route("/", front)]))
        async with httpx.AsyncClient(transport=outer, base_url="http://front") as client:
            assert (await client.get("/")).status_code == 200


@pytest.mark.filterwarnings("ignore")  # Starlette would rather have another httpx
def test_testclient() -> None:
    from starlette.testclient import TestClient

    http = httpx.AsyncClient(transport=httpx.MockTransport(fake))
    with TestClient(shop(http)) as client:
        assert client.get("/page/17").status_code == 200


def test_wsgi(http: httpx.Client) -> None:
    def application(_: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        answer = http.get("http://stock/17")
        start("200 OK" if answer.is_success else "500 Oh", [])
        return [b""]

    client = httpx.Client(transport=httpx.WSGITransport(application))
    assert client.get("http://shop/").status_code == 200


def test_server_in_a_thread() -> None:
    """Over a socket. OpenTelemetry's middleware takes the context from the request."""
    http = httpx.AsyncClient(transport=httpx.MockTransport(fake))
    app: Any = OpenTelemetryMiddleware(shop(http))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(
        target=contextvars.Context().run, args=(asyncio.run, server.serve()), daemon=True
    )
    thread.start()
    while not server.started:
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        assert httpx.get(f"http://127.0.0.1:{port}/page/17", trust_env=False).status_code == 200
    finally:
        server.should_exit = True
        thread.join()


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(self.path).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture(scope="module")
def real_server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def needs_one(server: str) -> bool:
    """Something of the application's that asks other services."""
    with requests.Session() as session:
        session.trust_env = False
        needed = session.get(f"{server}/needed").status_code == 200
        with suppress(requests.RequestException):
            session.get(f"{server}/optional")
        return needed


def test_requests_over_a_socket(real_server: str) -> None:
    """A library that only ``fit`` and OpenTelemetry know."""
    assert needs_one(real_server)


def test_nothing_but_its_own_request(real_server: str) -> None:
    """What the test itself asks of another process is no dependency."""
    with requests.Session() as session:
        session.trust_env = False
        assert session.get(f"{real_server}/needed").status_code == 200


def test_nothing_but_its_own_request_by_httpx(real_server: str) -> None:
    with httpx.Client(trust_env=False) as client:
        assert client.get(f"{real_server}/needed").status_code == 200


@pytest.mark.anyio
async def test_threads(http: httpx.Client) -> None:
    """``asyncio.to_thread`` takes the context along."""
    answer = await asyncio.to_thread(http.get, "http://stock/17")
    assert answer.is_success
