"""Spans and device metrics that came over HTTP, on their way into the stream.

They are answered for when the brokers have acknowledged them. What comes in while one write is
under way is written with the next, so all of it waits for one answer and not each for its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from ldfi.errors import StreamError
from ldfi.experiments.streams.stream import Producer, Stream, Topics

_log = logging.getLogger("ldfi")

KeyedMessage = tuple[str, str, bytes]
"""A topic, a key and what to write."""

ROOM: Final = 64 * 1024 * 1024
"""Bytes that may wait to be written."""

PATIENCE: Final = 8.0
"""Seconds after which a caller is told to try again: exporters give up after ten."""


class RecordWriter:
    """Writes to ``topics``, which it makes with so many ``partitions`` if they are not there."""

    def __init__(self, stream: Stream, topics: Topics, partitions: int) -> None:
        self.topics = topics
        self._stream = stream
        self._partitions = partitions
        self._producer: Producer | None = None
        self._waiting: list[tuple[Sequence[KeyedMessage], asyncio.Future[StreamError | None]]] = []
        self._bytes = 0
        self._wake = asyncio.Event()

    async def put(self, messages: Sequence[KeyedMessage]) -> None:
        """Write messages; return when all are acknowledged. Raises StreamError if not: send them
        again, duplicates are counted once."""
        if not messages:
            return
        size = sum(len(value) for _, _, value in messages)
        if self._bytes + size > ROOM:
            raise StreamError("too much waits to be written to Kafka already; send it again later")
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((messages, done))
        self._bytes += size
        self._wake.set()
        try:
            async with asyncio.timeout(PATIENCE):
                error = await asyncio.shield(done)
        except TimeoutError:
            raise StreamError(
                f"Kafka has acknowledged nothing for {PATIENCE:g} s; is it up?"
            ) from None
        if error is not None:
            raise error

    async def run(self) -> None:
        """Write until cancelled."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                batch, self._waiting = self._waiting, []
                messages = [message for each, _ in batch for message in each]
                error = await asyncio.to_thread(self._written, messages)
                self._bytes -= sum(len(value) for _, _, value in messages)
                for _, done in batch:
                    if not done.done():
                        done.set_result(error)
        finally:
            if self._producer is not None:
                self._producer.close()

    def _written(self, messages: Sequence[KeyedMessage]) -> StreamError | None:
        """Write and wait. What goes wrong is a value, for it is many callers' at once."""
        try:
            if self._producer is None:
                self._stream.ensure(self.topics.partitions(self._partitions))
                self._producer = self._stream.producer()
            for topic, key, value in messages:
                self._producer.send(topic, key.encode(), value)
            self._producer.flush()
        except StreamError as error:
            _log.warning("telemetry was not written: %s", error)
            return error
        except Exception as error:  # noqa: BLE001 - whatever it is, callers have to send it again
            _log.exception("telemetry was not written")
            return StreamError(f"not written: {error!r}")
        return None
