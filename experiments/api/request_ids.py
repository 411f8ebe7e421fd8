"""Each request has an id, which every line that is logged on its way carries.

A caller, or a proxy in front of us, may have given it one (``X-Request-ID``); the process that a
request is forwarded to takes over ours.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldfi.experiments.telemetry.logs import request_id

HEADER: Final = b"x-request-id"
_USABLE: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
"""Anything else would be a stranger's words in our log."""


class NameRequests:
    """Gives each request its id, and tells it to whoever asked."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == HEADER), b"")
        identity = given if _USABLE.fullmatch(given) else secrets.token_hex(8).encode()

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _named(message.get("headers", ()), identity)}
            await send(message)

        token = request_id.set(identity.decode())
        try:
            scope["headers"] = _named(scope["headers"], identity)  # read again when forwarded
            await self._app(scope, receive, sent)
        finally:
            request_id.reset(token)


def _named(headers: Iterable[tuple[bytes, bytes]], identity: bytes) -> list[tuple[bytes, bytes]]:
    pairs = [(name, value) for name, value in headers if name.lower() != HEADER]
    return [*pairs, (HEADER, identity)]
