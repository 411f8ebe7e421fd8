"""The loop that feeds the engine with observations, for as long as a process leads."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Final

from ldfi.errors import StreamError
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.database import Database
from ldfi.experiments.streams.intake import Intake
from ldfi.experiments.streams.stream import Message, Stream, Topics
from ldfi.experiments.telemetry import clock
from ldfi.experiments.telemetry.instruments import INTAKE_LAG

_log = logging.getLogger("ldfi")

READ_SECONDS: Final = 0.2
AGAIN_SECONDS: Final = 1.0
AT_ONCE: Final = 250
"""Observations taken in before others in this loop have their turn."""


class Feed:
    """``intake`` is None until the brokers have answered for the first time. ``measured``: how far
    it is behind is the process's to tell; that of other namespaces is nobody else's business."""

    def __init__(
        self,
        stream: Stream,
        topics: Topics,
        partitions: int,
        db: Database,
        engine: Engine,
        *,
        measured: bool = True,
    ) -> None:
        self._measured = measured
        self.intake: Intake | None = None
        self._stream = stream
        self._topics = topics
        self._partitions = partitions
        self._db = db
        self._engine = engine
        self._told: Counter[str] = Counter()
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        """Read and take in until :meth:`stop`. Not to be cancelled: it may be within a read."""
        while not self._stopped.is_set():
            try:
                messages = await asyncio.to_thread(self._read)
            except StreamError as error:
                _log.warning("no observations: %s; trying again", error)
                await self._pause()
            except Exception:  # noqa: BLE001 - whatever it was, the next attempt may do better
                _log.exception("observations cannot be read; trying again")
                await self._pause()
            else:
                await self._take(messages)

    def stop(self) -> None:
        """Let :meth:`run` come to its end."""
        self._stopped.set()

    def keep(self, now: float) -> None:
        """Put on record how far we are; after everything else, when the service ends."""
        if self.intake is not None:
            self.intake.keep(now)

    async def close(self) -> None:
        """Give up the connection, when :meth:`run` has ended."""
        self._measure(0)  # of no concern here any more
        if self.intake is not None:
            try:
                await asyncio.to_thread(self.intake.close)
            except StreamError as error:
                _log.warning("%s", error)

    def _read(self) -> list[Message]:
        if self.intake is None:
            self._stream.ensure(self._topics.partitions(self._partitions))
            self.intake = Intake(self._stream, self._topics, self._db, self._engine)
        return self.intake.read(READ_SECONDS)

    async def _take(self, messages: list[Message]) -> None:
        assert self.intake is not None, "something was read"  # noqa: S101
        for at in range(0, max(1, len(messages)), AT_ONCE):
            try:
                self.intake.take(messages[at : at + AT_ONCE], clock.now())
            except Exception:  # noqa: BLE001 - the database may be away for a while
                _log.exception("what was learned is not on record yet; trying again")
            await asyncio.sleep(0)
        self._measure(self.intake.lag)
        self._engine.dropped.update(self.intake.dropped - self._told)
        self._told = self.intake.dropped.copy()
        if not messages:
            await asyncio.sleep(0.01)  # a stream in memory never waits

    def _measure(self, lag: float) -> None:
        if self._measured:
            INTAKE_LAG.set(lag)

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(AGAIN_SECONDS):
                await self._stopped.wait()
        except TimeoutError:
            return
