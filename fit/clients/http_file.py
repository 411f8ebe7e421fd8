"""What the standard library reads an answer from: the file of a socket, or what stands in for one.

http.client reads so for everybody, urllib3 included.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from http.client import HTTPResponse
from typing import Any, Final

from ldfi.fit.slow import Pace, Slow

_BUFFER: Final = 65536


class Wire:
    """All that http.client wants of a socket: it gives these bytes, or raises as it is read."""

    def __init__(self, sent: bytes | OSError) -> None:
        self._sent = sent

    def makefile(self, *_: Any) -> Any:
        """Return the file to read from."""
        if isinstance(self._sent, bytes):
            return io.BytesIO(self._sent)
        return io.BufferedReader(_Failing(self._sent))

    def close(self) -> None:
        """Close nothing."""


class _Failing(io.RawIOBase):
    def __init__(self, failure: OSError) -> None:
        super().__init__()
        self._failure = failure

    def readable(self) -> bool:
        return True

    def readinto(self, _: Any) -> int:
        raise self._failure


def slow_down(
    slow: Slow, response: HTTPResponse, patience: float | None, length: Callable[[], int | None]
) -> None:
    """Have the body of an answer come slowly, where it is to. ``length``: of the body, in bytes;
    None where it is not announced."""
    read: Any = response.fp  # None without a body, whatever its type says
    if read is None:
        return
    pace = slow.begun(length)
    if pace is not None:
        file: Any = SlowFile(read, pace, patience)
        response.fp = io.BufferedReader(file, _BUFFER)


class SlowFile(io.RawIOBase):
    """What is read of a socket's file at its pace."""

    def __init__(self, file: Any, pace: Pace, patience: float | None) -> None:
        super().__init__()
        self._file = file
        self._pace = pace
        self._patience = patience
        self._at = 0

    def readable(self) -> bool:
        """Return a message that it can be read."""
        return True

    def fileno(self) -> int:
        """Return the socket's number."""
        return int(self._file.fileno())

    def readinto(self, into: Any) -> int:
        """Read what may come, and wait until anything may. Raises TimeoutError, as sockets do."""
        there = len(self._file.peek(1))
        size = self._pace.size(self._at, min(there, len(into)) or 1)
        wait = self._pace.due(self._at)
        if self._patience is not None and wait > self._patience:
            time.sleep(self._patience)
            raise TimeoutError("timed out")
        if wait > 0:
            time.sleep(wait)
        data: bytes = self._file.read1(size)
        into[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        """Close the socket's file."""
        self._file.close()
        super().close()
