"""Reading a body at the edge, where that is allowed: GraphQL and JSON-RPC say there what they ask.

``FIT_READ_BODY=1`` allows it. Read are JSON bodies of 64 KiB at most whose length is announced, of
devices that an experiment claims, while a rule asks for what stands in bodies; and they are handed
on as they came. Without it such requests are of no class that a body tells.
"""

from __future__ import annotations

import io
import os
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

VARIABLE: Final = "FIT_READ_BODY"
LARGEST: Final = 64 * 1024
"""Bytes."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


def allowed() -> bool:
    """Return whether bodies may be read in this process."""
    return os.environ.get(VARIABLE, "") == "1"


def readable(headers: Mapping[str, str]) -> bool:
    """Return whether a body is JSON, announced, and not too large."""
    length = headers.get("content-length", "")
    small = length.isascii() and length.isdecimal() and 0 < int(length[:9]) <= LARGEST
    return small and len(length) <= 9 and "json" in headers.get("content-type", "")


async def peeked(receive: Receive) -> tuple[bytes | None, Receive]:
    """Read the body of an ASGI request; None where it does not come as it was announced. Also
    returns what hands on everything that was taken, and then the rest."""
    taken: list[Message] = []
    size, whole = 0, False
    while not whole and size <= LARGEST:
        message = await receive()
        taken.append(message)
        if message["type"] != "http.request":
            break
        size += len(message.get("body", b""))
        whole = not message.get("more_body", False)
    body = b"".join(each.get("body", b"") for each in taken) if whole else None
    waiting = iter(taken)

    async def again() -> Message:
        for message in waiting:
            return message
        return await receive()

    return body, again


def peeked_wsgi(environ: dict[str, Any]) -> bytes | None:
    """Read the body of a WSGI request, and put it back."""
    length = int(environ["CONTENT_LENGTH"])
    body: bytes = environ["wsgi.input"].read(length)
    environ["wsgi.input"] = io.BytesIO(body)
    return body if len(body) == length else None
