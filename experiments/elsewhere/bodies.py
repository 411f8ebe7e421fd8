"""Bodies of requests, as HTTP/1.1 sends them: at a length that is told, or in chunks (RFC 9112,
sections 6 and 7.1). ``http.server`` reads neither by itself."""

from __future__ import annotations

from email.message import Message
from io import BufferedIOBase


def body_of(headers: Message, stream: BufferedIOBase, most: float = float("inf")) -> bytes | None:
    """Read the body of a request; None where it has more than ``most`` bytes, and then the
    connection is of no more use."""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return _chunks(stream, most)
    length = int(headers.get("content-length") or 0)
    return stream.read(length) if length <= most else None


def _chunks(stream: BufferedIOBase, most: float) -> bytes | None:
    found = bytearray()
    while size := int(stream.readline().partition(b";")[0].strip() or b"0", 16):
        if len(found) + size > most:
            return None
        found += stream.read(size)
        stream.readline()
    while stream.readline().strip():
        pass
    return bytes(found)
