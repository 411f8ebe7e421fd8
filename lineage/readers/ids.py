"""Trace and span ids as they are written: hex, base64, in any case, with or without padding."""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from typing import Final

TRACE_ID_BYTES: Final = 16
SPAN_ID_BYTES: Final = 8


def trace_id(text: object) -> str | None:
    """Read a trace id as lower-case hex, 32 digits; None for what is no trace id.

    64-bit ids, still common in Zipkin and Jaeger, are padded on the left.
    """
    if not isinstance(text, str):
        return None
    whole = _read(text, TRACE_ID_BYTES)
    if whole is not None:
        return whole
    short = _read(text, SPAN_ID_BYTES)  # in base64; a short one in hex was padded
    return short.zfill(2 * TRACE_ID_BYTES) if short is not None else None


@lru_cache(maxsize=4096)
def span_id(text: object) -> str | None:
    """Read a span id as lower-case hex, 16 digits; None for what is no span id."""
    return _read(text, SPAN_ID_BYTES) if isinstance(text, str) else None


def _read(text: str, size: int) -> str | None:
    raw = _from_hex(text, size) or _from_base64(text, size)
    if raw is None or not any(raw):  # an id of zeros is invalid by definition
        return None
    return raw.hex()


def _from_hex(text: str, size: int) -> bytes | None:
    if len(text) > 2 * size or not text or not text.isascii():
        return None
    try:
        return bytes.fromhex(text.zfill(2 * size)) if text.isalnum() else None
    except ValueError:
        return None


def _from_base64(text: str, size: int) -> bytes | None:
    if len(text.rstrip("=")) != (size * 8 + 5) // 6:
        return None
    try:
        raw = base64.b64decode(
            text + "=" * (-len(text) % 4),
            altchars=b"-_" if "-" in text or "_" in text else None,
            validate=True,
        )
    except (binascii.Error, ValueError):
        return None
    return raw if len(raw) == size else None
