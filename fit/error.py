"""The fault ``error``: the call fails at once.

What a failure looks like differs from library to library, and every client in
:mod:`ldfi.fit.clients` makes its own: an exception or an answer that its callers would see if the
dependency were down. What they have in common is here.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = "fault injected"
"""What the message of every injected failure contains, so that nobody hunts for a real outage."""

STATUS: Final = 503
REASON: Final = "Service Unavailable"
BODY: Final = TEXT.encode()
HEADERS: Final = {"content-type": "text/plain", "content-length": str(len(BODY))}
"""The answer of an HTTP server that is there and cannot serve. RFC 9110, section 15.6.4."""
