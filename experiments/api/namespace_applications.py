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
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final

from fastapi import FastAPI
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import State

from ldfi.experiments.api.application_state import begin, furnish, take_in, to_its_end, told
from ldfi.experiments.api.by_namespace import ByNamespace
from ldfi.experiments.api.halt_door import HaltDoor
from ldfi.experiments.cluster.candidate import Candidate
from ldfi.experiments.cluster.namespace_candidate import Post
from ldfi.experiments.cluster.service import Service
from ldfi.experiments.store import Database, namespaces
from ldfi.experiments.store.namespaces import Namespace

_log = logging.getLogger("ldfi")

LOOK_SECONDS: Final = 1.0
"""How soon a process knows of a namespace that another one has made, or of other limits."""


class NamespaceApplications:
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
        self._open: dict[str, _Open] = {}
        self._looking = asyncio.Lock()
        self._stack = AsyncExitStack()

    def get(self, name: str) -> FastAPI | None:
        """Find the application of a namespace; None where there is none of that name."""
        found = self._open.get(name)
        return None if found is None else found.app

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
            for each in await to_its_end(self._listed):
                known = self._open.get(each.name)
                if known is None:
                    await self._build(each)
                elif known.namespace != each:
                    known.limit(each, self._service)

    async def close(self) -> None:
        """End everything that goes on in them."""
        await self._stack.aclose()

    def _listed(self) -> list[Namespace]:
        with self._database.read() as session:
            return namespaces.listed(session)

    def _opened(self, name: str, stack: AsyncExitStack) -> Database:
        """Open the store of a namespace, until the stack ends."""
        store = namespaces.opened(self._service.database, self._database, name)
        stack.callback(store.close)
        return store

    async def _build(self, namespace: Namespace) -> None:
        async with AsyncExitStack() as stack:
            store = await to_its_end(self._opened, namespace.name, stack)
            service = self._service.of_namespace(namespace, store)
            app = _like(self._app)
            begin(app, service)
            app.state.otlp_grpc = self._app.state.otlp_grpc
            furnish(app, service, store, stack)
            for each in self._app.state.of_each:
                each(app)
            self._app.state.relay.under.append(app.state.relay)
            stack.callback(self._app.state.relay.under.remove, app.state.relay)
            if self.door is not None:
                relay = app.state.relay
                stack.callback(self.door.admit(store, lambda: app.state.engine, relay))
            take_in(app, service, stack)
            post = Post(service, store, told(app))
            if self.candidate is not None:
                self.candidate.join(post)
            self._open[namespace.name] = _Open(namespace, app, post)
            self._stack.push_async_callback(stack.pop_all().aclose)
        _log.info("namespace %s is open", namespace.name)


class _Open:
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
    by_namespace: object = ByNamespace  # which chooses among these, and is none of them
    alike.user_middleware = [each for each in app.user_middleware if each.cls is not by_namespace]
    alike.middleware_stack = None
    return alike
