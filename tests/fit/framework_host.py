"""An edge in a web framework under its real instrumentation: a program of its own, since a process
is instrumented as a whole.

    python -m tests.fit.framework_host FRAMEWORK (auto | hand) NEXT

It prints its port, and asks ``NEXT`` (a URL) for the path of each request before it answers.
``auto``: it was started by ``opentelemetry-instrument``.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import httpx
import uvicorn

from ldfi import fit
from tests.fit.edges import wsgi_served


def _provider() -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

    fit.install()
    trace.set_tracer_provider(TracerProvider(sampler=fit.Sampler(ParentBased(ALWAYS_OFF))))


async def _ask(url: str) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        await client.get(url)


def starlette(by_hand: bool, onward: str) -> Any:
    """Starlette."""
    from opentelemetry.instrumentation.starlette import StarletteInstrumentor
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def page(request: Request) -> PlainTextResponse:
        await request.body()
        await _ask(onward + request.url.path)
        return PlainTextResponse("")

    app = Starlette(routes=[Route("/{rest:path}", page, methods=["GET", "POST"])])
    if by_hand:
        StarletteInstrumentor.instrument_app(app)
    return fit.EdgeMiddleware(app)


def fastapi(by_hand: bool, onward: str) -> Any:
    """FastAPI."""
    from fastapi import FastAPI, Request
    from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor

    async def page(request: Request) -> None:
        await request.body()
        await _ask(onward + request.url.path)

    app = FastAPI()
    page.__annotations__["request"] = Request
    app.api_route("/{rest:path}", methods=["GET", "POST"])(page)
    if by_hand:
        FastAPIInstrumentor.instrument_app(app)
    return fit.EdgeMiddleware(app)


def flask(by_hand: bool, onward: str) -> Any:
    """Flask."""
    import requests
    from flask import Flask, request
    from opentelemetry.instrumentation.flask import FlaskInstrumentor

    app = Flask("edge")

    @app.route("/<path:rest>", methods=["GET", "POST"])
    def page(rest: str) -> str:
        request.get_data()
        requests.get(f"{onward}/{rest}", timeout=10)
        return ""

    if by_hand:
        FlaskInstrumentor().instrument_app(app)  # type: ignore[no-untyped-call]
    return fit.WSGIEdgeMiddleware(app)


def django_wsgi(by_hand: bool, _onward: str) -> Any:
    """Django, threads."""
    from django.core.wsgi import get_wsgi_application
    from opentelemetry.instrumentation.django import DjangoInstrumentor

    if by_hand:
        DjangoInstrumentor().instrument()
    return fit.WSGIEdgeMiddleware(get_wsgi_application())


def django_asgi(by_hand: bool, _onward: str) -> Any:
    """Django, tasks."""
    from django.core.asgi import get_asgi_application
    from opentelemetry.instrumentation.django import DjangoInstrumentor

    if by_hand:
        DjangoInstrumentor().instrument()
    return fit.EdgeMiddleware(get_asgi_application())


def aiohttp(by_hand: bool, onward: str) -> Any:
    """aiohttp's server."""
    from ldfi.fit.aiohttp_server import edge_middleware

    app = aiohttp_inside(by_hand, onward)
    app.middlewares.insert(0, edge_middleware())
    return app


def aiohttp_inside(by_hand: bool, onward: str) -> Any:
    """aiohttp's server, not as an edge."""
    from aiohttp import ClientSession, web
    from opentelemetry.instrumentation.aiohttp_server import AioHttpServerInstrumentor

    if by_hand:
        AioHttpServerInstrumentor().instrument()

    async def page(request: web.Request) -> web.Response:
        await request.read()
        async with ClientSession() as session, session.get(onward + request.path) as answer:
            await answer.read()
        return web.Response()

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", page)
    return app


FRAMEWORKS: dict[str, Callable[[bool, str], Any]] = {
    each.__name__: each
    for each in (starlette, fastapi, flask, django_wsgi, django_asgi, aiohttp, aiohttp_inside)
}


def _tell(port: object) -> None:
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


def _serve(app: Any) -> None:
    if isinstance(app, fit.EdgeMiddleware):
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))

        async def serve() -> None:
            serving = asyncio.create_task(server.serve())
            while not server.started:
                await asyncio.sleep(0.01)
            _tell(server.servers[0].sockets[0].getsockname()[1])
            await serving

        asyncio.run(serve())
    elif isinstance(app, fit.WSGIEdgeMiddleware):
        with wsgi_served(app) as url:
            _tell(url.rpartition(":")[2])
            sys.stdin.read()
    else:
        from aiohttp import web

        async def serve_web() -> None:
            runner = web.AppRunner(app)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            _tell(runner.addresses[0][1])
            await asyncio.Event().wait()

        asyncio.run(serve_web())


def main(framework: str, how: str, onward: str) -> None:
    """Serve a framework's application behind the edge."""
    by_hand = how == "hand"
    if by_hand:
        from opentelemetry.instrumentation.aiohttp_client import AioHttpClientInstrumentor
        from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
        from opentelemetry.instrumentation.requests import RequestsInstrumentor

        _provider()
        for each in (AioHttpClientInstrumentor, HTTPXClientInstrumentor, RequestsInstrumentor):
            each().instrument()
    _serve(FRAMEWORKS[framework](by_hand, onward))


if __name__ == "__main__":
    main(*sys.argv[1:])
