"""A door for ``ldfi halt`` alone, which nothing that goes on at the other one can close.

It has a thread and a loop of its own, room for a few connections, descriptors put by for them, and
a connection to the database that is open already. So it answers while strangers hold all the
connections of the other door, while no descriptor is left, and while the engine's loop is busy.

Whoever halts here is asked for the same tokens, and it is the same in the audit. The engine of this
process, if it has one, is told before the record is written; one elsewhere looks every second.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Final

import uvicorn
from fastapi import APIRouter, FastAPI, Request
from starlette.concurrency import run_in_threadpool
from uvicorn.server import ServerState

from ldfi.experiments.api import problems
from ldfi.experiments.api.auth import Operator
from ldfi.experiments.api.by_namespace import ByNamespace
from ldfi.experiments.api.connections import PatientConnection
from ldfi.experiments.api.front_door import FrontDoor, cannot_listen
from ldfi.experiments.api.input_documents import UNSAID, PerhapsReason
from ldfi.experiments.api.rate_limit import RateLimiter
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.api.safety import Disarmed
from ldfi.experiments.cluster.relay import EdgeRelay
from ldfi.experiments.cluster.tokens import Tokens
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import halts
from ldfi.experiments.store.database import Database
from ldfi.experiments.telemetry import clock

_log = logging.getLogger("ldfi")

ROOM: Final = 32
"""Connections at once: of those that say nothing, the oldest gives way to a new one."""

SPARE: Final = 16
"""Descriptors that are put by, for the time when the process has no others left."""

LOOK_SECONDS: Final = 0.25
"""How often is seen to it that they are still put by."""


class HaltConnection(PatientConnection):
    """One connection of this door; those of the other do not count here."""

    seconds: ClassVar[float] = 3.0
    most: ClassVar[int] = ROOM
    _idle: ClassVar[dict[Any, None]] = {}
    _all: ClassVar[set[Any]] = set()

    def _busy(self) -> bool:
        """Return whether a whole request is being answered: one whose body is still to come
        idles."""
        return super()._busy() and not self.cycle.more_body


class Halting:
    """Halts one namespace, from a thread of its own. ``database``: with a connection put by.
    ``engine``: that of this process, if it has one just now, and ``relay``: what serves its edges
    if not; both belong to ``loop``."""

    def __init__(
        self,
        tokens: Tokens,
        database: Database,
        engine: Callable[[], Engine | None],
        relay: EdgeRelay,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.tokens = tokens
        self.database = database
        self._engine = engine
        self._relay = relay
        self._loop = loop

    def halt(self, reason: str, who: str) -> Disarmed:
        """Halt everything, here at once, and return what that has done.

        Raises what the database raises, where no engine is here that writes it later.
        """
        engine = self._engine()
        disarmed = [] if engine is None else engine.board.armed()
        if engine is not None:
            self._tell(engine.scheduler.switch.heed, reason)
        else:
            self._tell(self._relay.halt)
        try:
            with self.database.change(clock.now(), who) as change:
                halted = halts.set_halted(change, reason)
        except Exception:
            if engine is None:
                raise
            _log.exception("halted, and that cannot be put on record yet")
            self._tell(engine.scheduler.switch.owe, reason, who)
            return Disarmed(halted=reason, disarmed=disarmed, on_record=False)
        return Disarmed(halted=halted, disarmed=disarmed, on_record=True)

    def application(self) -> FastAPI:
        """Make what answers at the door."""
        app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
        app.state.tokens, app.state.rate_limiter = self.tokens, RateLimiter()
        app.state.halting = self
        problems.install(app)
        app.include_router(router)
        return app

    def _tell(self, work: Callable[..., None], *arguments: str) -> None:
        with suppress(RuntimeError):  # that loop has just ended, and the engine with it
            self._loop.call_soon_threadsafe(work, *arguments)


class HaltDoor:
    """Listens from when it is made until it is closed. ``engine``: that of this process, if it has
    one just now, and ``relay``: what serves its edges if not; both belong to the loop that runs
    here. Raises Conflict."""

    def __init__(
        self,
        address: tuple[str, int],
        tokens: Tokens,
        database: Database,
        engine: Callable[[], Engine | None],
        relay: EdgeRelay,
    ) -> None:
        self._listener = _listening(*address)
        self._database = database.reserved()
        self._engines_loop = asyncio.get_running_loop()
        self._loop = asyncio.SelectorEventLoop()
        self._spare: list[int] = []
        self._tokens = tokens.beside(self._database)
        self._default = Halting(
            self._tokens, self._database, engine, relay, self._engines_loop
        ).application()
        self._others: dict[str, FastAPI] = {}
        self._connection = self._protocol()
        self._thread = threading.Thread(target=self._run, name="halt", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Return where it listens."""
        port: int = self._listener.getsockname()[1]
        return port

    def admit(
        self, database: Database, engine: Callable[[], Engine | None], relay: EdgeRelay
    ) -> Callable[[], None]:
        """Let another namespace be halted here, too, whose store this is. What is returned ends
        it."""
        reserved = database.reserved()
        halting = Halting(
            self._tokens.within(reserved), reserved, engine, relay, self._engines_loop
        )
        self._others[database.namespace] = halting.application()

        def dismiss() -> None:
            self._others.pop(database.namespace, None)
            reserved.close()

        return dismiss

    def close(self) -> None:
        """Listen no more."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._listener.close()
        for each in self._spare:
            os.close(each)
        FrontDoor.scarce.clear()
        self._database.close()

    def _protocol(self) -> Callable[[], HaltConnection]:
        app = ByNamespace(self._default, self._others.get)
        config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None)
        config.load()
        return partial(HaltConnection, config, ServerState(), {}, self._loop)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._put_by()
        begun = self._loop.create_task(self._begin())
        self._loop.run_forever()
        self._loop.run_until_complete(begun)  # closed at once: what it has begun, it ends

    async def _begin(self) -> None:
        """Do once what a request will need: what is imported or opened late could not be then. The
        door opens whatever comes of it."""
        try:
            await run_in_threadpool(self._tokens.look_up, "")
        except Exception:  # noqa: BLE001 - a door that opens comes first
            _log.exception("the door for halting could not try its database")
        self._loop.add_reader(self._listener, self._take)

    def _take(self) -> None:
        """Let in whoever waits; where no descriptor is left for them, for one that was put by, and
        where there is none of these either, for that of whoever has said nothing for longest."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:
                FrontDoor.scarce.set()
                if not self._spare and HaltConnection.oldest_gives_way():
                    return  # its descriptor is ours in the next turn, before others find it
                if not self._spare:  # it would be called again at once, and again
                    self._loop.remove_reader(self._listener)
                    self._loop.call_later(LOOK_SECONDS, self._look_again)
                    return
                os.close(self._spare.pop())
                continue
            connection.setblocking(False)
            made = self._loop.connect_accepted_socket(self._connection, connection)
            self._loop.create_task(made)

    def _look_again(self) -> None:
        self._loop.add_reader(self._listener, self._take)

    def _put_by(self) -> None:
        with suppress(OSError):
            while len(self._spare) < SPARE:
                self._spare.append(os.open(os.devnull, os.O_RDONLY))
            FrontDoor.scarce.clear()
        self._loop.call_later(LOOK_SECONDS, self._put_by)


router = APIRouter(route_class=GuardedRoute)


@router.post("/api/v1/halt")
def halt(request: Request, caller: Operator, why: PerhapsReason = UNSAID) -> Disarmed:
    """Disarm everything at once; nothing starts again before `resume`. It needs no body."""
    halting: Halting = request.app.state.halting
    return halting.halt(why.reason, caller.name)


def _listening(host: str, port: int) -> socket.socket:
    """Listen there. Raises Conflict."""
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(where[:2], family=family, backlog=128)
    except OSError as error:
        raise cannot_listen("halt_port", host, port, error) from error
    listener.setblocking(False)
    return listener
