"""What a reader hands over: spans, and how many it had to refuse."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ldfi.lineage.span import Span


class Batch(NamedTuple):
    """The spans of one document or request. ``rejected``: spans without usable ids or times."""

    spans: Sequence[Span]
    rejected: int


# Spans that our own code stumbles over: refused one by one, and told once.

_log: Final = logging.getLogger(__name__)
_told: Final[set[tuple[str, str, int | None]]] = set()
_EXAMPLE: Final = 2_000
"""Characters of a span that are shown."""


def refuse(error: Exception, span: Any) -> None:
    """Log why a span is refused, with the span as an example: once for each place in the code."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = (type(error).__name__, last.filename, last.lineno)
    if place in _told:
        return
    _told.add(place)
    _log.warning(
        "a span cannot be read and is refused, as is each like it: %s: %s (%s, line %s); it is %s",
        *(type(error).__name__, error, last.name, last.lineno, repr(span)[:_EXAMPLE]),
    )
