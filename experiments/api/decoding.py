"""Bodies of traces: what may be unzipped and decoded at all, and by whom.

Decoding takes seconds for the largest bodies there may be, so it is done in a thread, one body at
a time: the loop that keeps leases is not held up, and neither is whoever else asks. How much there
is to decode is found out before: a few kilobytes can be the promise of millions of spans.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from typing import Final, TypeVar

from ldfi.experiments.api.problems import Problem
from ldfi.lineage.errors import UnreadableTraces
from ldfi.lineage.readers import compressed
from ldfi.lineage.readers.otlp_spans import count_spans

MAX_BODY: Final = 16 * 1024 * 1024
MAX_SPANS: Final = 100_000
"""Spans of one request; the Collector sends 8,192 by default."""

MAX_OBJECTS: Final = 1_000_000
"""Objects in one request as JSON: a span has two for each of its attributes."""

RATIO: Final = 100
"""How many times its size a body may become, unzipped. Repeated spans come to about fifty."""

SMALL: Final = 256 * 1024
"""Bytes that any body may become."""

WAITING: Final = 16
"""Bodies that wait to be decoded at most."""

EITHER: Final = "gzip-or-identity"
"""Content coding of a body that came over gRPC, which does not say whether a message is zipped."""

_GZIP: Final = b"\x1f\x8b"
"""How gzip begins, and no message of protobuf does: there is no such type of field."""

Decoded = TypeVar("Decoded")


class Decoding:
    """Has bodies decoded, one after the other. Made where there is a loop."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(1)
        self._waiting = 0

    async def do(self, work: Callable[[], Decoded]) -> Decoded:
        """Do the work in a thread, when it is its turn. Raises Problem 503 where too much waits,
        and what the work raises."""
        if self._waiting >= WAITING:
            detail = f"{WAITING} bodies wait to be decoded already; send it again later"
            raise Problem(503, "busy", detail, {"Retry-After": "1"})
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(work)
        finally:
            self._waiting -= 1


def unzipped(body: bytes, encoding: str) -> bytes:
    """Unzip a body, if it is zipped. Raises Problem 400, 413 or 415."""
    if encoding == EITHER:
        encoding = "gzip" if body.startswith(_GZIP) else ""
    if encoding in {"", "identity"}:
        return body
    most = min(MAX_BODY, max(SMALL, RATIO * len(body)))
    if encoding == "gzip":
        plain, ended = _gunzipped(body, most)
    elif encoding == "zstd":
        plain, ended = _unzstd(body, most)
    else:
        raise Problem(415, "unsupported-encoding", f"{encoding!r}: send gzip, zstd or nothing")
    if not ended:
        raise Problem(400, f"unreadable-{encoding}", f"the body in {encoding} was cut short")
    return plain


def _gunzipped(body: bytes, most: int) -> tuple[bytes, bool]:
    """Unzip a body, and tell whether it was whole."""
    unzip = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        plain = unzip.decompress(body, most)
    except zlib.error as error:
        raise Problem(400, "unreadable-gzip", f"the body is not gzip: {error}") from error
    if unzip.unconsumed_tail:
        raise _too_large()
    return plain, unzip.eof


def _unzstd(body: bytes, most: int) -> tuple[bytes, bool]:
    """Do the same with zstd."""
    try:
        zstd = compressed.zstd()
    except UnreadableTraces as error:
        raise Problem(415, "unsupported-encoding", error.reason) from error
    options = {zstd.DecompressionParameter.window_log_max: compressed.WINDOW_LOG}
    unzip = zstd.ZstdDecompressor(options=options)
    try:
        plain: bytes = unzip.decompress(body, max_length=most)
    except zstd.ZstdError as error:
        raise Problem(400, "unreadable-zstd", f"the body is not zstd: {error}") from error
    if not unzip.eof and not unzip.needs_input:
        raise _too_large()
    return plain, unzip.eof


def _too_large() -> Problem:
    detail = f"unzipped, a body may have {MAX_BODY} bytes, and {RATIO} times what was sent"
    return Problem(413, "too-large", detail)


def check_count(body: bytes, *, as_json: bool) -> None:
    """Refuse a body that holds too much to be decoded. Raises Problem 413."""
    if as_json:
        most, what, there = MAX_OBJECTS, "objects", body.count(b"{")
    else:
        most, what, there = MAX_SPANS, "spans", count_spans(body, MAX_SPANS)
    if there > most:
        raise Problem(413, "too-large", f"a body may hold {most} {what}; send less at once")
