"""The service's events, read by a thread of its own, over whatever connections it takes.

When a connection breaks, the next one asks for what came after the last event that was seen
(``Last-Event-ID``), so that nothing is missed and nothing comes twice.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Final, Self

import httpx
from httpx_sse import SSEError

from ldfi.cli.client import Client
from ldfi.errors import ExperimentsError

PAUSE_SECONDS: Final = 1.0
"""Between two attempts to connect."""


@dataclass(frozen=True, slots=True)
class Event:
    """A row of the audit: ``what`` happened to ``subject``, and ``why``."""

    at: float
    who: str
    what: str
    subject: str
    why: str


class Stream:
    """Events after the one with the id ``after``; None: from now on."""

    def __init__(self, client: Client, after: int | None) -> None:
        self._client = client
        self._after = after
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._closed.set()

    def take(self, seconds: float) -> list[Event]:
        """Take what has happened, waiting for at most so long; often nothing."""
        taken: list[Event] = []
        with suppress(Empty):
            taken.append(self._events.get(timeout=seconds))
            while True:
                taken.append(self._events.get_nowait())
        return taken

    def _read(self) -> None:
        while not self._closed.is_set():
            try:
                self._read_once()
            except (httpx.HTTPError, SSEError, ExperimentsError):
                pass  # the next attempt goes on where this one broke
            except Exception:
                if not self._closed.is_set():
                    raise
                return  # the client was closed while we were reading
            time.sleep(PAUSE_SECONDS)

    def _read_once(self) -> None:
        with self._client.events(self._after) as events:
            for each in events:
                if self._closed.is_set():
                    return
                if each.event == "audit":
                    self._events.put(_event(json.loads(each.data)))
                if each.id:
                    self._after = int(each.id)


def _event(row: dict[str, Any]) -> Event:
    return Event(row["at"], row["who"], row["what"], row["subject"], row["why"])
