"""Occurrence: a fault that hits the first calls of a request and lets later ones through.

That is how a caller's retries are tried: ``error:2`` fails twice, and a caller that tries three
times gets its answer. Calls are counted for each request (trace) and point, in one process: the
replicas of a service do not know of each other. Only faults that name a number are counted.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final

REMEMBERED: Final = 4096
"""Requests and points counted at once. The longest untouched are forgotten first."""


class Occurrences:
    """How often each request has reached each point. Safe in threads."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._counts: OrderedDict[tuple[int, str], int] = OrderedDict()
        self._lock = Lock()

    def admits(self, trace_id: int, point: str, first: int) -> bool:
        """Count this call; whether it is among the ``first``."""
        key = (trace_id, point)
        with self._lock:
            count = self._counts.pop(key, 0) + 1
            self._counts[key] = count
            if len(self._counts) > self._remembered:
                self._counts.popitem(last=False)
        return count <= first
