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
    within: dict[int, int] = {}
    for halves in places.values():
        if len(halves) > 1:
            within |= _within(halves, spans)
    meant: dict[tuple[str, str], int] = {}
    found = []
    for i, span in enumerate(spans):
        parent = within.get(i)
        above = places.get(span.parent_id, ()) if span.parent_id is not None else ()
        if parent is None and above and span.parent_id != span.span_id:
            key = span.parent_id or "", span.operation.service
            if key not in meant:
                meant[key] = above[0] if len(above) == 1 else _meant(key[1], above, spans)
            parent = meant[key]
        found.append(parent)
    return found


def _meant(service: str, halves: Sequence[int], spans: Sequence[Span]) -> int:
    """Choose the half that a span of a service names as its parent."""
    own = [i for i in halves if spans[i].operation.service == service]
    among = sorted(own or halves, key=lambda i: _order(spans[i]))
    serving = [i for i in among if spans[i].operation.serves]
    return serving[-1] if serving else among[-1]


def _within(halves: Sequence[int], spans: Sequence[Span]) -> dict[int, int]:
    """Find for each half the one that it lies in; the outermost is not there."""
    among = sorted(halves, key=lambda each: _order(spans[each]))
    calling = [each for each in among if spans[each].operation.kind in _CALLING]
    serving = [each for each in among if spans[each].operation.serves]
    beside = [*calling, *serving]
    found = _one_in_another(calling)
    if calling:
        found |= dict.fromkeys(serving, calling[-1])
    else:
        through = [each for each in serving if spans[each].operation.kind == "server"]
        found |= _one_in_another(through)
    own = {spans[each].operation.service: each for each in beside}
    known = frozenset(beside)
    working = [each for each in among if each not in known] if beside else []
    found |= {each: own.get(spans[each].operation.service, beside[-1]) for each in working}
    return found if beside else _one_in_another(among)


def _one_in_another(among: Sequence[int]) -> dict[int, int]:
    return dict(zip(among[1:], among, strict=False))


def _order(span: Span) -> tuple[int, int, str, str]:
    """Sort what lies in one another, outermost first."""
    return (span.start, -span.end, span.operation.service, span.operation.kind)
