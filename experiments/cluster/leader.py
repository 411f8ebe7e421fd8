"""What a process does while it leads: the engine, and everything that goes on beside it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from ldfi.experiments.cluster.service import Service
from ldfi.experiments.notify.outbox import Outbox
from ldfi.experiments.scheduler import counts
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.scheduler.global_controls import GlobalControls
from ldfi.experiments.scheduler.guardrails import Guardrails
from ldfi.experiments.store.database import Database
from ldfi.experiments.streams.events import Events
from ldfi.experiments.streams.feed import Feed
from ldfi.experiments.telemetry import clock

_log = logging.getLogger("ldfi")

FEED_SECONDS: Final = 5.0
"""How long is waited for the last answer of Kafka. What is read and not kept is read again."""


class Leader:
    """The engine at work. Made anew each time a process begins to lead, from what is on record.

    ``db`` is fenced: it refuses writes after another leader has taken over. ``global_controls``:
    halt, guardrails and limits shared by all namespaces.
    """

    def __init__(self, service: Service, db: Database, global_controls: GlobalControls) -> None:
        self.database = db
        self.engine = Engine(
            db,
            now=clock.now(),
            lease=service.lease,
            waiting=service.waiting,
            limits=service.limits,
            outcomes=service.outcomes,
            global_controls=global_controls,
        )
        self._feed: Feed | None = None
        self._feeding: asyncio.Task[None] | None = None
        if service.stream is not None:
            self._feed = Feed(
                service.stream,
                service.topics,
                service.partitions,
                db,
                self.engine,
                measured=not db.namespace,
            )
            self._feeding = _begun(self._feed.run())
        self._tasks = [_begun(each) for each in _beside(service, db, self.engine)]

    async def end(self, reason: str) -> None:
        """Disarm, write results on record, and stop."""
        self.engine.board.close()
        fed = await self._stop()
        now = clock.now()
        self.engine.scheduler.shut_down(reason, now)
        if fed is not None:
            fed.keep(now)
            await fed.close()

    async def drop(self) -> None:
        """Stop at once and write nothing: another process may lead already."""
        self.engine.board.close()
        fed = await self._stop()
        if fed is not None:
            await fed.close()

    async def _stop(self) -> Feed | None:
        """Let everything end. The feed, unless it hangs since the brokers do not answer."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        if self._feed is None or self._feeding is None:
            return None
        self._feed.stop()
        ended, _ = await asyncio.wait({self._feeding}, timeout=FEED_SECONDS)
        return self._feed if ended else None


def _beside(service: Service, db: Database, engine: Engine) -> list[Coroutine[Any, Any, None]]:
    work = [engine.run(), engine.scheduler.certifier.run()]
    if service.prometheus is not None:
        guardrails = Guardrails(service.prometheus, service.guardrails)
        work.append(guardrails.watch(engine.scheduler.state))
        work.append(counts.watch(service.prometheus, engine.scheduler.state))
    if service.stream is not None:
        work.append(Events(service.stream, service.topics, service.partitions, db).run())
    work.append(Outbox(db, service.targets, service.public_url).run())
    return work


def _begun(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    task = asyncio.create_task(work)
    task.add_done_callback(note_end)
    return task


def note_end(task: asyncio.Task[None]) -> None:
    """Log a task that ended: none does by itself, so it failed unexpectedly."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.critical("a part of the service has died", exc_info=error)
