"""What the routes of an application work on, and what goes on beside them while it runs.

Each namespace has an application, and so a state, of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any, TypeVar

from fastapi import FastAPI

from ldfi.experiments.api.decoding import Decoding
from ldfi.experiments.api.forward import Forwarder
from ldfi.experiments.api.rate_limit import RateLimiter
from ldfi.experiments.cluster.ingest import Ingest, worker_of
from ldfi.experiments.cluster.leader import note_end
from ldfi.experiments.cluster.relay import EdgeRelay
from ldfi.experiments.cluster.service import Service
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database
from ldfi.experiments.streams.record_writer import RecordWriter
from ldfi.experiments.telemetry import instruments

T = TypeVar("T")


def begin(app: FastAPI, service: Service) -> None:
    """Put into an application's state what it knows before anything runs."""
    app.state.tokens = service.tokens
    app.state.member_key = service.member_key
    app.state.trace_url, app.state.public_url = service.trace_url, service.public_url
    app.state.limits = service.limits
    app.state.owners, app.state.called = service.owners, service.called
    app.state.engine = app.state.record_writer = app.state.ingest = app.state.otlp_grpc = None
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
    app.state.record_writer = RecordWriter(service.stream, service.topics, service.partitions)
    beside(stack, app.state.record_writer.run())
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


async def to_its_end(work: Callable[..., T], *arguments: Any) -> T:
    """Have something done in a thread. Whoever is cancelled meanwhile waits for its end all the
    same, and then stops: no thread uses what has been closed."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


def told(app: FastAPI) -> Callable[[Engine | None], None]:
    """Make what an application is told its engine with, whenever that is another one."""

    def changed(engine: Engine | None) -> None:
        app.state.engine = engine
        app.state.relay.rest()

    return changed
