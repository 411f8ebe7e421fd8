"""The fault ``error``, and the exceptions of other kinds: the call fails at once.

What a failure looks like differs from library to library, and every client in
:mod:`ldfi.fit.clients` makes its own: an exception or an answer that its callers would see if the
dependency were down. What they have in common is here.
"""

from __future__ import annotations

import builtins
import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from ldfi.fit.protocol.kinds import RECORDS, FaultKind

Failure = TypeVar("Failure", bound=BaseException)

TEXT: Final = "fault injected"
"""What the message of every injected failure contains, so that nobody hunts for a real outage."""

STATUS: Final = 503
REASON: Final = "Service Unavailable"
BODY: Final = TEXT.encode()
HEADERS: Final = {"content-type": "text/plain", "content-length": str(len(BODY))}
"""The answer of an HTTP server that is there and cannot serve. RFC 9110, section 15.6.4."""


CONNECTING: Final[dict[FaultKind, dict[str, Any]]] = {
    word: record["connecting"] for word, record in RECORDS.items() if "connecting" in record
}
"""The kinds with which no connection can be made → what each library makes of that."""


def connecting(kind: FaultKind) -> OSError:
    """Make what the operating system, or its resolver, says where no connection can be made."""
    return _unconnected(CONNECTING[kind]["python"])


def connecting_at(kind: FaultKind, address: object) -> OSError:
    """Make what asyncio says of that, which may name the address."""
    how = CONNECTING[kind]["python"]
    return _unconnected(how, how.get("asyncio", "").format(address=address))


def _unconnected(how: dict[str, str], said: str = "") -> OSError:
    number = getattr(errno, how["errno"], None) or getattr(socket, how["errno"])
    made = getattr(socket, how["exception"], None) or getattr(builtins, how["exception"])
    failure: OSError = made(number, said or how.get("text") or os.strerror(number))
    return marked(failure)


def reset() -> ConnectionResetError:
    """Make what it says where the other end has torn the connection down."""
    return marked(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))


def marked(failure: Failure, cause: BaseException | None = None) -> Failure:
    """Note on an exception that it was injected, where tracebacks show it and messages do not.

    Its message stays what the library says by itself, for there are programs that look at it.
    ``cause``: what it was raised from.
    """
    failure.add_note(TEXT)
    failure.__cause__ = cause
    return failure


@contextmanager
def marking() -> Iterator[None]:
    """Mark what the library raises within, from what it raises it from."""
    try:
        yield
    except Exception as failure:
        marked(failure, failure.__cause__)
        raise


def was_injected(failure: object) -> bool:
    """Return whether an exception is one that :func:`marked` noted."""
    return TEXT in getattr(failure, "__notes__", ())
