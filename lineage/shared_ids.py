"""Spans that share an id: which of them is meant by a parent, and how they lie in one another.

Zipkin's client and server of one call have one id, and proxies that stand between take it over. So
an id may be the name of several *halves* of one call, told apart by kind and service. A span
inside such a call names the shared id as its parent and means one half.

- **The half meant** is the one of the span's own service, for it was there that the span was begun;
  where a service called itself, the half that served. Where none is of its service, somebody who
  was called passed the context on: a half that served.
- **Among halves** those that called lie in one another by their times (they share a host), those
  that served are answers to the innermost of them. Where nobody recorded the call, a server that
  began later was reached through the earlier one. What merely worked lies within its own service.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from ldfi.lineage.span import Span

_CALLING: Final = frozenset({"client", "producer"})


def parents(spans: Sequence[Span]) -> list[int | None]:
    """Find the place of each span's parent; None where it is not there."""
    places: dict[str, list[int]] = defaultdict(list)
    for i, span in enumerate(spans):
        places[span.span_id].append(i)
    found = []
    for i, span in enumerate(spans):
        halves = places[span.span_id]
        within = _within(i, halves, spans) if len(halves) > 1 else None
        above = places.get(span.parent_id, ()) if span.parent_id is not None else ()
        if within is None and above and i not in above:
            within = above[0] if len(above) == 1 else _meant(span, above, spans)
        found.append(within)
    return found


def _meant(span: Span, halves: Sequence[int], spans: Sequence[Span]) -> int:
    """Choose the half that a span names as its parent."""
    service = span.operation.service
    own = [i for i in halves if spans[i].operation.service == service]
    among = sorted(own or halves, key=lambda i: _order(spans[i]))
    serving = [i for i in among if spans[i].operation.serves]
    return serving[-1] if serving else among[-1]


def _within(i: int, halves: Sequence[int], spans: Sequence[Span]) -> int | None:
    """Find the half that another one lies in; None for the outermost."""
    among = sorted(halves, key=lambda each: _order(spans[each]))
    calling = [each for each in among if spans[each].operation.kind in _CALLING]
    serving = [each for each in among if spans[each].operation.serves]
    if i in calling:
        return _before(i, calling)
    if i in serving:
        through = [each for each in serving if spans[each].operation.kind == "server"]
        return calling[-1] if calling else _before(i, through)
    service = spans[i].operation.service
    beside = [*calling, *serving]
    own = [each for each in beside if spans[each].operation.service == service]
    if beside:
        return (own or beside)[-1]
    return _before(i, among)


def _before(i: int, among: Sequence[int]) -> int | None:
    at = among.index(i) if i in among else 0
    return among[at - 1] if at else None


def _order(span: Span) -> tuple[int, int, str, str]:
    """Sort what lies in one another, outermost first."""
    return (span.start, -span.end, span.operation.service, span.operation.kind)
