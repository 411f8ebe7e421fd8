"""The whole service over a socket, with devices and an edge that go on in real time.

    with live_service({"/boot": boot}) as service, service.client("operator") as client:
        client.post("/api/v1/campaigns", json={...})

For tests of what talks to the service: programs that use its API, pages, exporters, notifications.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from ldfi.testing.errors import needs_service

try:
    import httpx
    from fastapi import FastAPI

    from ldfi.experiments.api.app import create_app
    from ldfi.experiments.cluster.service import Service
    from ldfi.experiments.cluster.tokens import ROLES, Role, Tokens
    from ldfi.experiments.domain.settings import Limits
    from ldfi.testing.programs import Application
    from ldfi.testing.world import World
except ModuleNotFoundError as error:
    raise needs_service(__name__, error) from error

_STEP_SECONDS: Final = 0.1
_LIMITS: Final = Limits(members_per_hour=100_000, members_per_day=100_000)


@dataclass
class LiveService:
    """``url`` answers; ``tokens`` has a token for each role.

    ``traffic`` may be switched off, and then nothing asks for rules either; ``programs`` may be
    changed while it lives, as a release would.
    """

    tokens: Mapping[Role, str]
    programs: dict[str, Application] = field(default_factory=dict)
    traffic: bool = True
    url: str = ""

    def client(self, role: Role = "admin") -> httpx.Client:
        """Make a client of the API in a role."""
        headers = {"authorization": f"Bearer {self.tokens[role]}"}
        return httpx.Client(base_url=self.url, headers=headers, trust_env=False, timeout=20)

    async def live(self, app: FastAPI) -> None:
        """Have some traffic again and again, in the event loop of the service."""
        world = World(app.state.database, self.programs or None, engine=app.state.engine)
        while True:
            world.now = time.time()
            if self.programs:
                world.programs = dict(self.programs)
            if self.traffic:
                world.step(requests=40, seconds=0.0)
            await asyncio.sleep(_STEP_SECONDS)


@contextmanager
def live_service(
    programs: Mapping[str, Application] | None = None,
    *,
    database: str = "",
    tokens: Mapping[Role, str] | None = None,
    **settings: Any,
) -> Iterator[LiveService]:
    """Run the service with a world around it as long as the block lasts.

    ``programs`` as in :class:`ldfi.testing.world.World`. ``database``: SQLAlchemy's URL, by default
    that of a file which goes with the block. ``tokens`` by role, made anew by default. Any other
    setting goes to :class:`ldfi.experiments.cluster.service.Service`.
    """
    with TemporaryDirectory() as folder:
        given = tokens or {role: secrets.token_hex(16) for role in ROLES}
        service = LiveService(given, dict(programs or {}))
        made = Service(
            Tokens(",".join(f"{role}:{token}" for role, token in given.items())),
            database or f"sqlite:///{Path(folder) / 'ldfi.sqlite3'}",
            **{"lease": 20.0, "quiet": 0.1, "limits": _LIMITS, **settings},
        )
        with served(_with_traffic(create_app(made), service)) as service.url:
            yield service


def _with_traffic(app: FastAPI, service: LiveService) -> FastAPI:
    without = app.router.lifespan_context

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        async with without(app):
            task = asyncio.create_task(service.live(app))
            yield
            task.cancel()

    app.router.lifespan_context = running
    return app


# An ASGI application over a real socket, for as long as a block lasts.

try:
    import uvicorn
except ModuleNotFoundError as error:
    raise needs_service(__name__, error) from error


START_SECONDS: Final = 120.0
"""How long an application may take until it answers."""


@contextmanager
def served(app: Any, **options: Any) -> Iterator[str]:
    """Serve an ASGI application on loopback in a thread of its own; gives its URL. ``options`` are
    uvicorn's. Raises RuntimeError where it does not start."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", **options))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    while not server.started:
        if not thread.is_alive():
            raise RuntimeError("the application did not start; what it raised is in the log above")
        if time.monotonic() > deadline:
            raise RuntimeError(f"the application has not started within {START_SECONDS:.0f} s")
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(5)
