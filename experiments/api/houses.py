"""The application of each namespace: the same routes, over another state.

Whatever a route works on it finds in the state of its application: the store, the engine, who may
call, how often, which streams are open. A namespace beside the default one has all of that for
itself, so no route can reach what is another one's; there is nothing that it would have to leave
out.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any, Final

from fastapi import FastAPI
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import State

from ldfi.experiments.api.by_namespace import ByNamespace
from ldfi.experiments.api.decoding import Decoding
from ldfi.experiments.api.forward import Forwarder
from ldfi.experiments.api.halt_door import HaltDoor
from ldfi.experiments.api.rate_limit import RateLimiter
from ldfi.experiments.control.engine import Engine
from ldfi.experiments.process.candidate import Candidate
from ldfi.experiments.process.ingest import Ingest, worker_of
from ldfi.experiments.process.leader import note_end
from ldfi.experiments.process.post import Post
from ldfi.experiments.process.relay import EdgeRelay
from ldfi.experiments.process.service import Service
from ldfi.experiments.store import Database, namespaces
from ldfi.experiments.store.namespaces import Namespace
from ldfi.experiments.streams.door import Door
from ldfi.experiments.telemetry import instruments

_log = logging.getLogger("ldfi")

LOOK_SECONDS: Final = 1.0
"""How soon a process knows of a namespace that another one has made, or of other limits."""


def begin(app: FastAPI, service: Service) -> None:
    """Put into an application's state what it knows before anything runs."""
    app.state.tokens = service.tokens
    app.state.member_key = service.member_key
    app.state.trace_url, app.state.public_url = service.trace_url, service.public_url
    app.state.limits = service.limits
    app.state.owners, app.state.called = service.owners, service.called
    app.state.engine = app.state.door = app.state.ingest = None
    app.state.rate_limiter = RateLimiter()
    app.state.streams = set()
    app.state.counts_outcomes = service.prometheus is not None
    app.state.namespace = ""


def furnish(app: FastAPI, service: Service, database: Database, stack: AsyncExitStack) -> None:
    """Put into it what its routes work on, until the stack ends: the store, and what calls the
    process that leads."""
    instruments.time_transactions(database.engine)
    app.state.database = database
    app.state.namespace = database.namespace
    app.state.decoding = Decoding()
    app.state.forwarder = Forwarder(database)
    stack.push_async_callback(app.state.forwarder.close)
    relay = EdgeRelay(app.state.forwarder.leader, service.lease, database.namespace)
    app.state.relay = relay
    stack.push_async_callback(relay.close)
    beside(stack, relay.run())


def take_in(app: FastAPI, service: Service, stack: AsyncExitStack) -> None:
    """Have spans and device metrics go through Kafka, where there is one."""
    if service.stream is None:
        return
    app.state.door = Door(service.stream, service.topics, service.partitions)
    beside(stack, app.state.door.run())
    if service.role == "all":
        ingest = app.state.ingest = Ingest(lambda: worker_of(service))
        ingest.start()
        stack.push_async_callback(asyncio.to_thread, ingest.stop)


def beside(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> None:
    """Have something done until the stack ends."""
    task = asyncio.create_task(work)
    task.add_done_callback(note_end)

    async def stop() -> None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    stack.push_async_callback(stop)


class Houses:
    """All namespaces beside the default one, whose application this is. ``candidate``: what leads
    them, if this process may; ``door``: where they are halted, if there is one. ``apart``: whether
    there can be any."""

    def __init__(self, app: FastAPI, service: Service, database: Database) -> None:
        self.candidate: Candidate | None = None
        self.door: HaltDoor | None = None
        self._app = app
        self._service = service
        self._database = database
        self.apart = namespaces.kept_apart(service.database)
        self._houses: dict[str, _House] = {}
        self._looking = asyncio.Lock()
        self._stack = AsyncExitStack()

    def get(self, name: str) -> FastAPI | None:
        """Find the application of a namespace; None where there is none of that name."""
        house = self._houses.get(name)
        return None if house is None else house.app

    async def run(self) -> None:
        """Look every second what has changed on record, until cancelled."""
        failures = 0
        while True:
            try:
                await self.look()
                failures = 0
            except Exception as error:  # noqa: BLE001 - the database may be away for a while
                failures += 1
                level = logging.WARNING if failures == 1 else logging.DEBUG
                of_database = isinstance(error, SQLAlchemyError)
                _log.log(level, "namespaces: %s", error, exc_info=None if of_database else error)
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Follow what is on record. Raises what the database raises."""
        if not self.apart:
            return
        async with self._looking:
            for each in await asyncio.to_thread(self._listed):
                house = self._houses.get(each.name)
                if house is None:
                    await self._build(each)
                elif house.namespace != each:
                    house.limit(each, self._service)

    async def close(self) -> None:
        """End everything that goes on in them."""
        await self._stack.aclose()

    def _listed(self) -> list[Namespace]:
        with self._database.read() as session:
            return namespaces.listed(session)

    async def _build(self, namespace: Namespace) -> None:
        url = self._service.database
        name = namespace.name
        opening = asyncio.ensure_future(
            asyncio.to_thread(namespaces.opened, url, self._database, name)
        )
        try:
            store = await asyncio.shield(opening)
        except asyncio.CancelledError:  # the thread goes on, and what it opens is closed by nobody
            (await opening).close()
            raise
        async with AsyncExitStack() as stack:
            stack.callback(store.close)
            service = self._service.of_namespace(namespace, store)
            app = _like(self._app)
            begin(app, service)
            furnish(app, service, store, stack)
            for each in self._app.state.of_each:
                each(app)
            self._app.state.relay.under.append(app.state.relay)
            stack.callback(self._app.state.relay.under.remove, app.state.relay)
            if self.door is not None:
                relay = app.state.relay
                stack.callback(self.door.admit(store, lambda: app.state.engine, relay))
            take_in(app, service, stack)
            house = _House(namespace, app, Post(service, store, told(app)))
            if self.candidate is not None:
                self.candidate.join(house.post)
            self._houses[namespace.name] = house
            self._stack.push_async_callback(stack.pop_all().aclose)
        _log.info("namespace %s is open", namespace.name)


class _House:
    """One namespace in this process."""

    def __init__(self, namespace: Namespace, app: FastAPI, post: Post) -> None:
        self.namespace = namespace
        self.app = app
        self.post = post

    def limit(self, namespace: Namespace, of_all: Service) -> None:
        """Hold it to the limits that it has now."""
        limits = namespace.limits(of_all.limits)
        self.namespace, self.app.state.limits = namespace, limits
        self.post.service = replace(self.post.service, limits=limits)
        if self.post.leader is not None:
            self.post.leader.engine.scheduler.state.limits = limits


def _like(app: FastAPI) -> FastAPI:
    """Make an application with the same routes, and a state of its own."""
    alike = copy.copy(app)
    alike.state = State()
    alike.state.allowed = app.state.allowed
    above: object = ByNamespace  # which chooses among these, and is none of them
    alike.user_middleware = [each for each in app.user_middleware if each.cls is not above]
    alike.middleware_stack = None
    return alike


def told(app: FastAPI) -> Callable[[Engine | None], None]:
    """Make what an application is told its engine with, whenever that is another one."""

    def changed(engine: Engine | None) -> None:
        app.state.engine = engine
        app.state.relay.rest()

    return changed
