"""Standard output and standard error, which may end before the command does: ``ldfi … | head``.

Nobody reads what comes after that, so it is not an error of the command, and never exit code 1,
which says that a failure was found.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from ldfi.cli import exits
from ldfi.error_words import system


class OutputClosed(SystemExit):
    """Raised where nobody reads on. It ends the command as SIGPIPE ends others."""


class Output:
    """A stream whose reader may leave: raises OutputClosed once, then takes everything quietly.

    Whatever prints has its own way with a broken pipe, and exit code 1 in the end: none sees one.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._closed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, unless the reader has left."""
        if self._closed:
            return len(text)
        with self._broken():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, unless the reader has left."""
        if not self._closed:
            with self._broken():
                self._stream.flush()

    @contextmanager
    def _broken(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self._close()
            raise OutputClosed(exits.BROKEN_PIPE) from None
        except OSError as error:
            self._close()
            with suppress(OSError):
                os.write(2, f"ldfi: the output cannot be written: {system(error)}\n".encode())
            raise SystemExit(exits.USAGE) from None

    def _close(self) -> None:
        """Send what is left nowhere, or Python complains of it at its end."""
        self._closed = True
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


@contextmanager
def readers_may_leave() -> Iterator[None]:
    """Let both streams be cut off for as long as a command runs."""
    before = sys.stdout, sys.stderr
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None:  # closed before we were started
            setattr(sys, name, Output(stream))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


@contextmanager
def last_words() -> Iterator[None]:
    """Print what a command says last: its verdict stands even if nobody reads that to its end."""
    with suppress(OutputClosed):
        yield
