"""Bodies of requests, as HTTP/1.1 sends them: at a length that is told, or in chunks (RFC 9112,
sections 6 and 7.1). ``http.server`` reads neither by itself."""

from __future__ import annotations

import re
from email.message import Message
from io import BufferedIOBase
from typing import Final

_PIECE: Final = 65_536
"""Bytes that are read at once: memory is taken for what has come, not for what was told."""
_LINE: Final = 4_096
_TRAILERS: Final = 100
_LENGTH: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_SIZE: Final = re.compile(rb"[0-9a-fA-F]{1,15}")


def body_of(headers: Message, stream: BufferedIOBase, most: float = float("inf")) -> bytes | None:
    """Read the body of a request. None where it has more than ``most`` bytes, where its length is
    none, or where it ends before: then the connection is of no more use."""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return _chunks(stream, most)
    told = {str(each).strip() for each in headers.get_all("content-length", [])}
    if not told:
        return b""
    length = told.pop()
    if told or _LENGTH.fullmatch(length) is None:
        return None
    return _exactly(stream, int(length), most)


def _exactly(stream: BufferedIOBase, size: int, most: float) -> bytes | None:
    if size > most:
        return None
    found = bytearray()
    while piece := stream.read(min(size - len(found), _PIECE)):
        found += piece
    return bytes(found) if len(found) == size else None


def _chunks(stream: BufferedIOBase, most: float) -> bytes | None:
    found = bytearray()
    while size := _size(stream):
        piece = _exactly(stream, size, most - len(found))
        if piece is None or stream.readline(_LINE).strip():
            return None
        found += piece
    if size is None:
        return None
    ended = (not stream.readline(_LINE).strip() for _ in range(_TRAILERS))
    return bytes(found) if any(ended) else None


def _size(stream: BufferedIOBase) -> int | None:
    """Read how long the next chunk is; None where that is no length."""
    told = stream.readline(_LINE).partition(b";")[0].strip()
    return None if _SIZE.fullmatch(told) is None else int(told, 16)
