"""Trace files: any of our formats, compressed or in an archive, however large.

The format is found by looking at the bytes, never at the name. Memory stays bounded by the
largest line, trace or message, not by the file.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from ldfi.lineage.errors import UnreadableTraces
from ldfi.lineage.readers import formats
from ldfi.lineage.readers.batch import Batch
from ldfi.lineage.readers.compressed import opened, zstd_errors
from ldfi.lineage.readers.otlp import decode_protobuf
from ldfi.lineage.readers.split import elements

_PEEK: Final = 512
_MAX_LINE: Final = 16 << 20
"""Bytes within which the first line must end for a file to be read line by line."""

_MAX_MESSAGE: Final = 512 << 20


def read_file(path: Path) -> Iterator[Batch]:
    """Read the spans of a file, batch by batch.

    Raises UnreadableTraces at the place where the file cannot be read further, OSError where it
    cannot be opened. A bad line among good ones is one rejected span, not the end.
    """
    with path.open("rb") as raw:
        yield from read_stream(raw)


def read_stream(raw: IO[bytes]) -> Iterator[Batch]:
    """Read the spans of an open file that can seek. Raises UnreadableTraces."""
    damaged: tuple[type[Exception], ...] = (EOFError, zlib.error, gzip.BadGzipFile)
    damaged += (tarfile.TarError, *zstd_errors())
    try:
        yield from _read(raw)
    except damaged as error:
        raise UnreadableTraces(f"the compressed data is damaged: {error}") from error


def _read(raw: IO[bytes]) -> Iterator[Batch]:
    start = _peek(raw, _PEEK)
    plain = opened(raw, start)
    if plain is not None:
        yield from _read(plain)
    elif start[257:262] == b"ustar":
        yield from _archive(raw)
    elif _is_json(start):
        yield from _json(raw)
    elif start:
        yield from _protobuf(raw)


def _is_json(start: bytes) -> bool:
    """Tell JSON from protobuf, which may begin with a line feed and a bracket as well: a group of
    91 or 123 bytes. JSON has no other control characters, and protobuf cannot do without: they
    are its tags."""
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    return text[:1] in (b"{", b"[") and not any(
        byte < 0x20 and byte not in b"\t\r\n" for byte in text
    )


def _archive(raw: IO[bytes]) -> Iterator[Batch]:
    with tarfile.open(fileobj=raw, mode="r:") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is not None:
                yield from _read(file)


def _json(raw: IO[bytes]) -> Iterator[Batch]:
    begin = raw.tell()
    line = raw.readline(_MAX_LINE)
    raw.seek(begin)
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        yield from _document(raw)
    else:
        yield from _lines(raw)


def _lines(raw: IO[bytes]) -> Iterator[Batch]:
    reason: UnreadableTraces | None = None
    good = False
    for line in raw:
        if not line.strip():
            continue
        try:
            batch = formats.read_json(line)
        except UnreadableTraces as error:
            reason = reason or error
            yield Batch([], 1) if good else Batch([], 0)
        else:
            good = True
            yield batch
    if reason is not None and not good:
        raise reason


def _document(raw: IO[bytes]) -> Iterator[Batch]:
    begin = raw.tell()
    whole = raw.read(_MAX_LINE + 1)
    if len(whole) <= _MAX_LINE:
        yield formats.read_json(whole)
        return
    raw.seek(begin)
    for element in elements(raw):
        yield formats.read_value(element)


def _protobuf(raw: IO[bytes]) -> Iterator[Batch]:
    """Read one message, or messages each behind its length (four bytes, as the Collector
    writes)."""
    head = _peek(raw, 5)
    if len(head) == 5 and head[0] == 0 and head[4:] == b"\x0a":
        while length := raw.read(4):
            size = int.from_bytes(length, "big")
            if size > _MAX_MESSAGE:
                raise UnreadableTraces(f"a message of {size} bytes is too large")
            body = raw.read(size)
            if len(body) < size:
                raise UnreadableTraces("the file ends in the middle of a message")
            yield decode_protobuf(body)
        return
    body = raw.read(_MAX_MESSAGE + 1)
    if len(body) > _MAX_MESSAGE:
        raise UnreadableTraces(f"one message of more than {_MAX_MESSAGE >> 20} MiB is too large")
    try:
        yield decode_protobuf(body)
    except UnreadableTraces:
        if _is_text(body):
            raise UnreadableTraces(
                "this is text but no JSON: no format of traces that is read here"
            ) from None
        raise


def _is_text(body: bytes) -> bool:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return False
    return all(letter.isprintable() or letter.isspace() for letter in text[:_PEEK])


def _peek(raw: IO[bytes], size: int) -> bytes:
    start = raw.read(size)
    raw.seek(-len(start), io.SEEK_CUR)
    return start
