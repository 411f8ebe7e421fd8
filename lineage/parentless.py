"""SERVER spans that have lost their parents, as old exporters write them: where they belong.

Such a span says that it is the outermost of its trace, and would hide the request that it is a part
of. Two things show that it is not: it lies in time within the request's own span, or a call of
another service asked for the same and nobody has answered it.

- **Joined** it is under the one call that encloses it, asked for the same method, and has no
  answer. Clocks of two hosts may differ by :data:`ldfi.lineage.waiting.SKEW`; times that fit as
  they are go first.
- Where clocks are no help, as many spans as there are such calls are joined in their order.
- Else it is **parentless**: no part of the request as far as anyone can tell, and not the request.
  So it is with several calls for one span: nobody knows which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ldfi.fit.protocol.points import Point
from ldfi.lineage.operation import Operation
from ldfi.lineage.shared_ids import parents
from ldfi.lineage.span import Span
from ldfi.lineage.waiting import SKEW, TICK


@dataclass(frozen=True, slots=True)
class Parentless:
    """By their places: spans that have lost their parents."""

    joined: Mapping[int, int] = field(default_factory=dict)
    """Each with the place of the call that it belongs under."""
    apart: frozenset[int] = frozenset()
    """Those that belong nowhere."""


NONE = Parentless()
MANY: Final = 200
"""Spans that say that they are the outermost of one trace, beyond which none is put right: each is
held against each, and somebody may send any number."""


def find(spans: Sequence[Span], above: Sequence[int | None]) -> Parentless:
    """Find the spans of a trace that have lost their parents. ``above``: the place of the parent of
    each span, None where it is not there."""
    roots = [i for i, parent in enumerate(above) if parent is None]
    if len(roots) < 2:
        return NONE
    outermost = [i for i in roots if _says_outermost(spans[i])]
    if len(outermost) > MANY:
        return NONE
    answered = {above[i] for i, span in enumerate(spans) if span.operation.serves}
    calls = [
        i
        for i, span in enumerate(spans)
        if span.operation.kind == "client" and span.operation.point and i not in answered
    ]
    asked = {
        i: [c for c in calls if _may_answer(spans[c], spans[i]) and _outermost(c, above) != i]
        for i in outermost
    }
    within = [i for i in outermost if _is_within(i, roots, spans, SKEW)]
    lost = [i for i in outermost if asked[i]]
    if not any(i not in lost and _may_be_the_request(spans[i]) for i in roots):
        lost = []  # each is asked for by another one
    joined: dict[int, int] = {}
    for skew in (0, SKEW):
        joined |= _pairs({i: asked[i] for i in within if i not in joined}, joined, spans, skew)
    joined |= _in_order({i: asked[i] for i in lost if i not in joined}, joined, spans)
    apart = {i for i in within if _is_within(i, roots, spans, 0)} | {*lost}
    return Parentless(joined, frozenset(apart - joined.keys())) if joined or apart else NONE


def repaired(spans: Sequence[Span]) -> Sequence[Span]:
    """Copy a trace with each span under its call, and without those that belong nowhere; the same
    spans, where none has lost its parent."""
    if not any(map(_says_outermost, spans)):
        return spans
    found = find(spans, parents(spans))
    if found is NONE:
        return spans
    return [
        span._replace(parent_id=spans[found.joined[i]].span_id) if i in found.joined else span
        for i, span in enumerate(spans)
        if i not in found.apart
    ]


def _says_outermost(span: Span) -> bool:
    return span[2] is None and span[5].kind == "server"


def _is_within(i: int, roots: Iterable[int], spans: Sequence[Span], skew: int) -> bool:
    """Return whether a request lies within another one, or within what is outermost of the
    trace."""
    span = spans[i]
    others = (spans[other] for other in roots if other != i)
    return any(
        (each.parent_id is None or each.operation.kind == "server")
        and _length(each) > _length(span)
        and _encloses(each, span, skew)
        for each in others
    )


def _outermost(place: int, above: Sequence[int | None]) -> int:
    """Find the outermost span that another one is inside of."""
    for _ in above:
        parent = above[place]
        if parent is None:
            break
        place = parent
    return place


def _pairs(
    asked: Mapping[int, Sequence[int]], joined: Mapping[int, int], spans: Sequence[Span], skew: int
) -> dict[int, int]:
    """Find the pairs of which each is the only one for the other."""
    taken = set(joined.values())
    fitting = {
        i: [c for c in calls if c not in taken and _encloses(spans[c], spans[i], skew)]
        for i, calls in asked.items()
    }
    wanted = Counter(call for found in fitting.values() for call in found)
    return {i: c[0] for i, c in fitting.items() if len(c) == 1 and wanted[c[0]] == 1}


def _in_order(
    asked: Mapping[int, Sequence[int]], joined: Mapping[int, int], spans: Sequence[Span]
) -> dict[int, int]:
    """Pair as many spans as there are calls for them, the first with the first; none where one of
    the calls failed and another did not, for then it matters which."""
    taken = set(joined.values())
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, calls in asked.items():
        left = sorted((c for c in calls if c not in taken), key=lambda c: (spans[c].start, c))
        groups.setdefault(tuple(left), []).append(i)
    wanted = Counter(call for calls in groups for call in calls)
    return {
        i: call
        for calls, found in groups.items()
        if len(calls) == len(found)
        and all(wanted[call] == 1 for call in calls)
        and len({(spans[call].parent_id, spans[call].operation.failed) for call in calls}) == 1
        for i, call in zip(sorted(found, key=lambda i: (spans[i].start, i)), calls, strict=True)
    }


def _may_answer(call: Span, span: Span) -> bool:
    """Return whether a span may be what a call asked for, whatever their clocks say."""
    asked, served = call.operation, span.operation
    fits = asked.service != served.service and _length(call) + TICK >= _length(span)
    return fits and _same_method(asked, served)


def _may_be_the_request(span: Span) -> bool:
    return span.parent_id is None or span.operation.kind == "server"


def _encloses(outer: Span, inner: Span, skew: int) -> bool:
    fits = outer.start - skew <= inner.start and inner.end <= outer.end + skew + TICK
    return fits and _length(outer) + TICK >= _length(inner)


def _length(span: Span) -> int:
    return span.end - span.start


def _same_method(asked: Operation, served: Operation) -> bool:
    """Return whether a call asks for what was served: the method and the path, wildcards and all,
    or else the last word of their names."""
    point, got = Point.parse(asked.point or ""), served.features
    wants = asked.features
    if point.kind == "http":
        wants = {"method": point.operation, "path": point.template or "/"}
    if "method" not in wants or "method" not in got:
        return _last_word(asked) == _last_word(served)
    one, other = (each.get("path", "/").rstrip("/").split("/") for each in (wants, got))
    alike = len(one) == len(other) and all(
        a == b or "*" in (a, b) for a, b in zip(one, other, strict=True)
    )
    return wants["method"] == got["method"] and alike


def _last_word(what: Operation) -> str:
    return what.name.rpartition("/")[2].rpartition(".")[2]
