"""A span as we keep it: its ids, its times, and what it means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from ldfi.lineage.operation import Operation

Links = tuple[tuple[str, str], ...]
"""Spans that another one points to: trace id and span id of each."""


class Span(NamedTuple):
    """One span. Times are nanoseconds since the epoch, 0 where they are not known; ids lower-case
    hex."""

    trace_id: str
    span_id: str
    parent_id: str | None
    start: int
    end: int
    operation: Operation
    links: Links = ()
    """What it has to do with besides its parent: the messages that a consumer took."""

    @property
    def identity(self) -> tuple[str, str, str]:
        """Return the key that tells duplicates: span id, kind and service.

        The id alone does not: Zipkin's client and server of one call share it, and so do proxies
        between them. Who says no kind may have said *internal* elsewhere.
        """
        what = self.operation
        return (self.span_id, what.kind or "internal", what.service)


@dataclass(frozen=True, slots=True)
class Trace:
    """The spans of one trace, each once, in an order that does not depend on how they came."""

    trace_id: str
    spans: Sequence[Span]
    missing: str = ""
    """What was known to belong to it and has not come (:mod:`ldfi.lineage.expectations`): such a
    trace is no evidence."""
    heard: float | None = field(default=None, compare=False)
    """When its last span came (Unix seconds), where somebody put it together as spans came."""

    @classmethod
    def of(
        cls,
        trace_id: str,
        spans: Iterable[Span],
        missing: str = "",
        heard: float | None = None,
    ) -> Trace:
        """Collect spans; duplicates go. Of contradicting duplicates the longest is kept."""
        given = list(spans)
        if len({span[1] for span in given}) < len(given):
            given = _distinct(given)
            given.sort(key=_order)
        else:
            given.sort(key=_start_and_id)
        return cls(trace_id, tuple(given), missing, heard)


_start_and_id = itemgetter(3, 1)


def _order(span: Span) -> tuple[int, str, bool, tuple[str, str, str]]:
    return (span[3], span[1], span[5].serves, span.identity)


def _distinct(spans: Iterable[Span]) -> list[Span]:
    kept: dict[tuple[str, str, str], Span] = {}
    for span in spans:
        known = kept.get(span.identity)
        if known is None or _preference(span) > _preference(known):
            kept[span.identity] = span
    return list(kept.values())


def _preference(span: Span) -> tuple[int, int, str, str, str, bool, str, Links]:
    operation = span.operation
    return (
        span.end,
        -span.start,
        span.parent_id or "",
        operation.service,
        operation.name,
        operation.failed is True,
        str(operation.fields),
        span.links,
    )
