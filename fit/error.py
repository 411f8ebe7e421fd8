"""The fault ``error``, and the exceptions of other kinds: the call fails at once.

What a failure looks like differs from library to library, and every client in
:mod:`ldfi.fit.clients` makes its own: an exception or an answer that its callers would see if the
dependency were down. What they have in common is here.
"""

from __future__ import annotations

import errno
import os
from typing import Final, TypeVar

Failure = TypeVar("Failure", bound=BaseException)

TEXT: Final = "fault injected"
"""What the message of every injected failure contains, so that nobody hunts for a real outage."""

STATUS: Final = 503
REASON: Final = "Service Unavailable"
BODY: Final = TEXT.encode()
HEADERS: Final = {"content-type": "text/plain", "content-length": str(len(BODY))}
"""The answer of an HTTP server that is there and cannot serve. RFC 9110, section 15.6.4."""


def refused() -> ConnectionRefusedError:
    """Make what the operating system says where nothing listens."""
    return marked(ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED)))


def refused_at(address: object) -> ConnectionRefusedError:
    """Make what asyncio says of that, which names the address."""
    return marked(ConnectionRefusedError(errno.ECONNREFUSED, f"Connect call failed {address}"))


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
