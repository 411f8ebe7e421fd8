"""Turning requests away at the gateway while too many are in progress.

Users do not slow down because an application does. Without a limit every request would be answered
after its user has given up; with one, some are refused at once and the others are served.
"""

from __future__ import annotations

from typing import Any

MOST_IN_PROGRESS = 60


class Shedding:
    """ASGI middleware: 503 for what comes on top of ``most`` requests in progress."""

    def __init__(self, app: Any, most: int = MOST_IN_PROGRESS) -> None:
        self._app = app
        self._most = most
        self._in_progress = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the request, or refuse it."""
        if self._in_progress >= self._most:
            headers = [(b"content-length", b"0"), (b"retry-after", b"1")]
            await send({"type": "http.response.start", "status": 503, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        self._in_progress += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._in_progress -= 1
