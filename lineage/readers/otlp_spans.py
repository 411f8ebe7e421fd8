"""How many spans a body holds, without decoding it.

Spans lie three deep: in a request there are resources (field 1), in these scopes (field 2), in
those spans (field 2 again). Whatever else there is, is skipped by its length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_WITHIN: Final = ({1}, {2, 1000}, {2})
"""The fields that lead to a span, from the outermost message on. 1000: the scopes of old."""

_BYTES: Final = 2
_SKIPPED: Final = {1: 8, 5: 4}


def count_spans(body: bytes, most: int) -> int:
    """Count the spans in an ``ExportTraceServiceRequest``; any number above ``most`` means more.

    What cannot be read ends the count: whoever decodes it will say so.
    """
    return _count(body, 0, len(body), 0, most)


def _count(body: bytes, start: int, end: int, depth: int, most: int) -> int:
    found = 0
    for inner_start, inner_end in _fields(body, start, end, _WITHIN[depth]):
        last = depth == len(_WITHIN) - 1
        # an empty message costs whoever decodes it as much as a span does
        found += 1 if last else _count(body, inner_start, inner_end, depth + 1, most - found) or 1
        if found > most:
            break
    return found


def _fields(body: bytes, at: int, end: int, wanted: set[int]) -> Iterator[tuple[int, int]]:
    """Find the messages of some fields: where each begins and ends."""
    while at < end:
        tag, at = _number(body, at, end)
        kind, field = tag & 7, tag >> 3
        if kind == _BYTES:
            length, at = _number(body, at, end)
            if at + length > end:
                return
            if field in wanted:
                yield at, at + length
            at += length
        elif kind == 0:
            _, at = _number(body, at, end)
        elif kind in _SKIPPED:
            at += _SKIPPED[kind]
        else:
            return


def _number(body: bytes, at: int, end: int) -> tuple[int, int]:
    """Read a number of variable length; where it is cut short, 0 at the end."""
    value = shift = 0
    while at < end and shift < 70:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, end
