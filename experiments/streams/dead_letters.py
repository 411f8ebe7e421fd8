"""What cannot be read, on its way to the topic of dead letters, with the reason.

A letter waits here until the brokers have acknowledged it, so that whoever finds it may go on at
once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ldfi.experiments.streams.stream import Header, Message, Producer

VALUE_BYTES: Final = 512 * 1024
KEY_BYTES: Final = 1024
REASON_BYTES: Final = 1024
"""What is kept of a message and its reason: a letter must never be too large itself."""

WAITING: Final = 10_000
"""Letters that wait at most; beyond that the oldest are given up, and counted."""


class _Letter(NamedTuple):
    key: bytes | None
    value: bytes
    headers: tuple[Header, ...]


class DeadLetters:
    """Letters to one topic. ``buried`` counts all there were, ``lost`` those given up."""

    def __init__(self, topic: str) -> None:
        self.buried = self.lost = 0
        self._topic = topic
        self._waiting: list[_Letter] = []

    def __len__(self) -> int:
        """Count the letters that nobody has acknowledged."""
        return len(self._waiting)

    def bury(self, message: Message, reason: str) -> None:
        """Note that a message cannot be used, and why."""
        self.buried += 1
        where = f"{message.topic}/{message.partition}/{message.offset}"
        said = reason.encode("utf-8", "backslashreplace")[:REASON_BYTES]
        key = message.key[:KEY_BYTES] if message.key is not None else None
        headers = (("reason", said), ("from", where.encode()))
        self._waiting.append(_Letter(key, message.value[:VALUE_BYTES], headers))
        if len(self._waiting) > WAITING:
            del self._waiting[0]
            self.lost += 1

    def send(self, producer: Producer) -> int:
        """Send the waiting messages; return how many, for :meth:`acknowledged`. Raises
        StreamError."""
        for key, value, headers in self._waiting:
            producer.send(self._topic, key, value, headers)
        return len(self._waiting)

    def acknowledged(self, count: int) -> None:
        """Forget the oldest letters: they are where they cannot be lost."""
        del self._waiting[:count]
