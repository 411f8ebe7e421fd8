"""Services in this process: their applications, traced, each behind a uvicorn of its own.

DEMO_HOSTS='{"ratings": "127.0.0.1:5001"}' python -m ldfi.demo.serve ratings
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import logging
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ldfi import fit
from ldfi.demo import telemetry
from ldfi.demo.client import new_client
from ldfi.demo.launcher import listen_at
from ldfi.demo.resolver import hosts_from_environment
from ldfi.demo.worlds import STREAMING, World

# Turning requests away at the gateway while too many are in progress.
#
# Users do not slow down because an application does. Without a limit every request would be
# answered after its user has given up; with one, some are refused at once and the others are
# served.

MOST_IN_PROGRESS = 60


class Shedding:
    """ASGI middleware: 503 for what comes on top of ``most`` requests in progress."""

    def __init__(self, app: Any, most: int = MOST_IN_PROGRESS) -> None:
        self._app = app
        self._most = most
        self._in_progress = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the request, or refuse it."""
        if self._in_progress >= self._most:
            headers = [(b"content-length", b"0"), (b"retry-after", b"1")]
            await send({"type": "http.response.start", "status": 503, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        self._in_progress += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._in_progress -= 1


GRACE_SECONDS = 1
"""How long requests may finish and spans be sent after the order to stop."""


def application(service: str, client: httpx.AsyncClient, world: World = STREAMING) -> Starlette:
    """Make the bare application of a service, calling others through ``client``."""
    routes = importlib.import_module(world.module(service)).routes
    app = Starlette(routes=[*routes, Route("/healthz", _healthz)])
    app.state.client = client
    return app


async def _healthz(_: Request) -> Response:
    return PlainTextResponse("ok")


def serve(world: World, sockets: Mapping[str, socket.socket]) -> None:
    """Serve the services that these sockets are for until SIGTERM; only the first calls others.

    Call it once in a process: ``fit`` and OpenTelemetry's clients know one name there.
    """
    asyncio.run(_serve(world, sockets))


async def _serve(world: World, sockets: Mapping[str, socket.socket]) -> None:
    traced = [name for name in sockets if name not in world.databases]
    providers = telemetry.start(traced)
    async with new_client() as client:
        servers = []
        for name in sockets:
            app: Any = application(name, client, world)
            if name in providers:
                app = telemetry.traced(app, providers[name])
            if name == world.gateway:
                app = Shedding(fit.EdgeMiddleware(app))
            servers.append(_Server(app))
        _stop_at_sigterm(servers)
        both = zip(servers, sockets.values(), strict=True)
        await asyncio.gather(*(server.serve(sockets=[each]) for server, each in both))
    for provider in providers.values():
        provider.force_flush(GRACE_SECONDS * 1000)


def _stop_at_sigterm(servers: Sequence[_Server]) -> None:
    """Stop on SIGTERM alone: Ctrl-C reaches the launcher, which then stops us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def stop() -> None:
        logging.getLogger("uvicorn.error").disabled = True  # requests cut short are no news now
        for server in servers:
            server.should_exit = True

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)


class _Server(uvicorn.Server):
    """uvicorn that leaves signals alone: several may serve in one process."""

    def __init__(self, app: Any) -> None:
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=120,  # longer than any client keeps an idle connection
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        super().__init__(config)

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


def main() -> None:
    """Serve one service of the streaming world at the address that ``DEMO_HOSTS`` gives it."""
    parser = argparse.ArgumentParser(prog="python -m ldfi.demo.serve", description=__doc__)
    parser.add_argument("service", choices=STREAMING.names)
    service = parser.parse_args().service
    address = hosts_from_environment().get(service)
    if address is None:
        parser.error(f"DEMO_HOSTS gives no address for {service!r}")
    host, _, port = address.rpartition(":")
    serve(STREAMING, {service: listen_at(host, int(port))})
    os._exit(0)  # an exporter's thread may still be waiting for a collector that is gone


if __name__ == "__main__":
    main()
