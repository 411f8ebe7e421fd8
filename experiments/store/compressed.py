"""A column of JSON that SQLite holds compressed, as PostgreSQL does by itself with what is large
(TOAST). Results are a quarter of their text then, what was learned of a class less than a tenth,
and all that three years leave stays below 500 MB (docs/measurements.md).

SQLite cannot look into such a column: a query asks for all of it or whether it is there.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any, Final

from pydantic_core import from_json
from sqlalchemy import JSON, Dialect
from sqlalchemy.types import TypeDecorator

_FAST = 1
"""Of zlib's levels: certificates of many classes are megabytes, and a tick waits for them."""

_written: Final = json.JSONEncoder(separators=(",", ":")).encode


def pack(document: Any) -> bytes | None:
    """Compress a document; None stays None."""
    if document is None:
        return None
    return zlib.compress(_written(document).encode(), _FAST)


def unpack(held: bytes | str | None) -> Any:
    """Read what :func:`pack` wrote, or a version before it, which wrote text."""
    if held is None:
        return None
    return parse(zlib.decompress(held) if isinstance(held, bytes) else held)


def parse(text: bytes | str) -> Any:
    """Read JSON, in half the time that the standard library takes. Raises ValueError."""
    try:
        return from_json(text)
    except ValueError:
        return json.loads(text)  # halves of characters, which were once not cleaned


class Compressed(TypeDecorator[Any]):
    """JSON, of which None is NULL."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        """Return how it is written."""
        return pack if dialect.name == "sqlite" else super().bind_processor(dialect)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """Return how it is read."""
        return unpack if dialect.name == "sqlite" else super().result_processor(dialect, coltype)
