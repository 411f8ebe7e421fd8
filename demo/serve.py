"""One service in this process: its application, traced, behind uvicorn.

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
from ldfi.demo.services import DATABASES, GATEWAY, NAMES, module_name
from ldfi.demo.shedding import Shedding

GRACE_SECONDS = 1
"""How long requests may finish and spans be sent after the order to stop."""


def application(service: str, client: httpx.AsyncClient) -> Starlette:
    """Make the bare application of a service, calling others through ``client``."""
    routes = importlib.import_module(module_name(service)).routes
    app = Starlette(routes=[*routes, Route("/healthz", _healthz)])
    app.state.client = client
    return app


async def _healthz(_: Request) -> Response:
    return PlainTextResponse("ok")


def serve(service: str, listening: socket.socket) -> None:
    """Serve until SIGTERM. Call it once in a process: telemetry is the process's own."""
    asyncio.run(_serve(service, listening))


async def _serve(service: str, listening: socket.socket) -> None:
    provider = None if service in DATABASES else telemetry.start(service)
    async with new_client() as client:
        app: Any = application(service, client)
        if provider is not None:
            app = telemetry.traced(app)
        if service == GATEWAY:
            app = Shedding(fit.EdgeMiddleware(app))
        await _Server(app).serve(sockets=[listening])
    if provider is not None:
        provider.force_flush(GRACE_SECONDS * 1000)


class _Server(uvicorn.Server):
    """uvicorn that stops on SIGTERM alone: Ctrl-C reaches the launcher, which then stops us."""

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
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stop)
        yield

    def _stop(self) -> None:
        logging.getLogger("uvicorn.error").disabled = True  # requests cut short are no news now
        self.should_exit = True


def main() -> None:
    """Serve one service at the address that ``DEMO_HOSTS`` gives it."""
    parser = argparse.ArgumentParser(prog="python -m ldfi.demo.serve", description=__doc__)
    parser.add_argument("service", choices=NAMES)
    service = parser.parse_args().service
    address = hosts_from_environment().get(service)
    if address is None:
        parser.error(f"DEMO_HOSTS gives no address for {service!r}")
    host, _, port = address.rpartition(":")
    serve(service, listen_at(host, int(port)))
    os._exit(0)  # an exporter's thread may still be waiting for a collector that is gone


if __name__ == "__main__":
    main()
