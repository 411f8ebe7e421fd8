"""Compressed traces: gzip, and zstd where this Python or ``backports.zstd`` can read it."""

from __future__ import annotations

import gzip
import zlib
from importlib import import_module
from typing import IO, Any, Final, cast

from ldfi.lineage.errors import UnreadableTraces

GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
"""How what is compressed begins."""

WINDOW_LOG: Final = 23
"""Windows of 8 MiB are what whoever reads zstd over HTTP must have (RFC 9659), and no more."""

_MODULES: Final = ("compression.zstd", "backports.zstd")


def zstd() -> Any:
    """Return the module that reads zstd. Raises UnreadableTraces where there is none."""
    for name in _MODULES:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise UnreadableTraces(
        "this is zstd: unpack it first (zstd -d FILE), or pip install 'backports.zstd'"
    )


def opened(raw: IO[bytes], start: bytes) -> IO[bytes] | None:
    """Open what a compressed file holds; None for one that does not begin like one."""
    if start.startswith(GZIP):
        return cast(IO[bytes], gzip.GzipFile(fileobj=raw))
    if start.startswith(ZSTD):
        return cast(IO[bytes], zstd().ZstdFile(raw))
    return None


def decompressed(body: bytes, encoding: str) -> bytes:
    """Decompress the body of a request. Raises UnreadableTraces for what is damaged, or in an
    encoding that nobody here knows."""
    if encoding in {"", "identity"}:
        return body
    damaged: tuple[type[Exception], ...] = (EOFError, OSError, zlib.error, *zstd_errors())
    try:
        if encoding == "gzip":
            return gzip.decompress(body)
        if encoding == "zstd":
            return cast(bytes, zstd().decompress(body))
    except damaged as error:
        raise UnreadableTraces(f"the body is no {encoding}: {error}") from error
    raise UnreadableTraces(f"{encoding!r}: send gzip, zstd or nothing")


def zstd_errors() -> tuple[type[Exception], ...]:
    """Name what is raised for damaged zstd."""
    try:
        return (zstd().ZstdError,)
    except UnreadableTraces:
        return ()
