"""Who is waited for: which messages a request could have waited for, as far as its spans can tell.

A consumer runs beside the request that sent its message. Whether the request waited for what came
of it is written nowhere, so it is concluded:

- **It answered.** Something that came of the message was taken in again by a service above it
  while that service was still at work: a reply, a call back, or a span with a link to the reply.
  What the consumer did until its reply was sent and taken in was waited for. What it began
  afterwards was not, unless the next rule says so.
- **It was over in time.** It ended before the request did. Nobody can see whether somebody polled
  a table for its result or held a future, so it counts as waited for: a consumer wrongly taken as
  detached hides a hypothesis, one wrongly taken as waited for costs experiments.
- **Else it is detached.** It outlasted the request, and no reply of it was seen: nothing that it
  did can have changed the answer.

Clocks of two hosts may differ by :data:`SKEW`; a consumer that ends later than the request by less
than that was over in time. A duration is good on any host: who took longer than was left of the
request when its message was sent outlasted it, whatever the clocks say.

- **It began too late.** What begins when the service that makes it has ended its own part of the
  request cannot have changed the answer, whatever it is: a call, or work in the background. Both
  times are by one clock there. What another service says began late may have another clock.

Assumed: clocks differ by no more than that, and what a service is told before its span ends, it is
told by a message or a call that leaves a span, or by somebody whose span ends before its own.
A span that only *follows from* its parent and is no consumer (OpenTracing's word for: the parent
does not depend on it) is detached unless it answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ldfi.lineage.span import Span

SKEW: Final = 300_000_000
"""Nanoseconds by which the clocks of two hosts may differ."""

TICK: Final = 1_000_000
"""Nanoseconds by which two times of one clock may differ as they are written down."""

DEEP: Final = 500
"""Spans inside one another above which nobody looks for replies: all is taken as waited for."""

_ALWAYS: Final = 1 << 64
"""A time that never comes."""


@dataclass(frozen=True, slots=True)
class Waits:
    """``detached``: places of spans that nobody waits for. ``until``: of spans waited for only
    until they had answered, when that was, by the clock of their own service."""

    detached: frozenset[int] = frozenset()
    until: Mapping[int, int] = field(default_factory=dict)


def end_of(span: Span) -> int:
    """Return when a span ended; never, where it does not say."""
    return span.end if span.end > span.start else _ALWAYS


def outlasts(latest: int, request: Span) -> bool:
    """Return whether something that ended then, on some host, ended after a request had."""
    return latest > end_of(request) + SKEW


def outliving(spans: Sequence[Span], request: Span) -> frozenset[str]:
    """Name the parents that have not come and that outlast a request.

    Whoever makes a call that ends after the request was not over in time either. Where something
    of it came back while the request was going on, it may have been waited for all the same. A
    clock that is wrong looks the same, so there must be something that can go on for longer: work
    in a service that the request is known to have been in, a message, a call that was given up.
    """
    by_id = {span.span_id: span for span in spans}
    missing: dict[str, str] = {}
    late: set[str] = set()
    answered: set[str] = set()
    for span in spans:
        trail, at = {span.span_id: None}, span
        while at.span_id not in missing and at.parent_id in by_id and at.parent_id not in trail:
            at = by_id[at.parent_id]
            trail[at.span_id] = None
        above = missing.get(at.span_id) or at.parent_id or ""
        missing.update(dict.fromkeys(trail, above))
        if outlasts(span.end, request):
            late.add(above)
        elif _may_have_answered(span, request):
            answered.add(above)
    answered |= {missing.get(taken, "") for span in spans for _, taken in span.links}
    late = late if _goes_on(spans) else late & _in_known_services(spans, missing)
    return frozenset(late - answered - by_id.keys() - {""})


def _goes_on(spans: Sequence[Span]) -> bool:
    """Return whether a span was sent on by someone, or given up on."""
    above = {span.parent_id for span in spans}
    return any(
        span.operation.kind in {"producer", "consumer"}
        or (span.operation.failed is True and span.span_id not in above)
        for span in spans
    )


def _in_known_services(spans: Sequence[Span], missing: Mapping[str, str]) -> set[str]:
    """Name the missing parents of what was done by services that are in the request otherwise."""
    known = {span.operation.service for span in spans if not missing[span.span_id]}
    return {
        span.parent_id
        for span in spans
        if span.parent_id == missing[span.span_id] and span.operation.service in known
    }


def _may_have_answered(span: Span, request: Span) -> bool:
    """Return whether something that was over in time may have told the request of it."""
    what = span.operation
    return what.kind == "consumer" or (what.serves and what.service == request.operation.service)


def waits(
    spans: Sequence[Span], parents: Mapping[int, int], request: Span, order: Sequence[int]
) -> Waits:
    """Return which spans of a trace were waited for. ``order``: places, parents before children."""
    late = begun_late(spans, parents, order)
    apart = {i for i in order if i in parents and spans[i].operation.detached}
    if not apart:
        return Waits(late)
    search = _Search(spans, parents, apart)
    depth: dict[int, int] = {}
    for i in order:
        depth[i] = depth[parents[i]] + 1 if i in parents else 0
    if max(depth.values()) > DEEP:
        return Waits(late)
    for i in order:
        if i in apart and _in_time(spans[i], spans[parents[i]], request):
            search.mark(search.path(i))
        if spans[i].operation.serves and depth[i] > 1:
            search.mark(search.answer(i))
    places = {spans[i].span_id: i for i in order}
    for i in order:
        for _, linked in spans[i].links:
            if linked in places:
                search.mark(search.taken_in(i, places[linked]), first=1)
    over = end_of(request) + SKEW + 1
    outlasted = {i for i in search.until if outlasts(spans[i].end, request)}
    until = {i: min(at, over) if i in outlasted else at for i, at in search.until.items()}
    until = {i: at for i, at in until.items() if at < _ALWAYS}
    return Waits(late | (apart - search.until.keys()), until)


def begun_late(
    spans: Sequence[Span], parents: Mapping[int, int], order: Iterable[int]
) -> frozenset[int]:
    """Return places of spans that a service began after its SERVER span around them had ended.
    ``order``: parents before children."""
    around: dict[int, Span] = {}
    late: set[int] = set()
    for i in order:
        above = parents.get(i)
        if above is None:
            continue
        what = spans[above].operation
        within = around.get(above) if not what.serves else None
        if what.kind == "server":
            within = spans[above]
        if within is not None:
            around[i] = within
            if is_late(spans[i], within):
                late.add(i)
    return frozenset(late)


def is_late(span: Span, served: Span) -> bool:
    """Return whether a service began something when its part of the request had ended."""
    what = span.operation
    here = not what.serves and what.service == served.operation.service
    return here and span.start > end_of(served) + TICK


def _in_time(span: Span, sent: Span, request: Span) -> bool:
    """Return whether a consumer may have been over before the request was."""
    if span.operation.kind != "consumer" or outlasts(span.end, request):
        return False
    here = sent.operation.service == request.operation.service
    over = sent.start + span.end - span.start
    return over <= end_of(request) + (0 if here else SKEW)


@dataclass(slots=True)
class _Search:
    spans: Sequence[Span]
    parents: Mapping[int, int]
    apart: set[int]
    until: dict[int, int] = field(default_factory=dict)

    def path(self, place: int) -> list[int]:
        """List a span and all that it is inside of, inmost first."""
        found = [place]
        while (above := self.parents.get(found[-1])) is not None:
            found.append(above)
        return found

    def answer(self, place: int) -> list[int]:
        """Find the way from a span in which something came back up to the outermost span of the
        same service that was still at work; empty where nothing came back."""
        span, whole = self.spans[place], self.path(place)
        service = span.operation.service
        for length in range(len(whole), 2, -1):
            above = self.spans[whole[length - 1]]
            if above.operation.service == service and span.start <= end_of(above) + SKEW:
                way = whole[: length - 1]
                crossed = sum(i in self.apart for i in way)
                left = any(self.spans[i].operation.service != service for i in way)
                back = left or crossed > 1 or place not in self.apart
                return way if crossed and back else []
        return []

    def taken_in(self, place: int, sent: int) -> list[int]:
        """Find the way from a span that took a message up to where both sides are inside of one
        span; empty where nobody waits for the one that took it."""
        own = self.path(place)
        above = set(own)
        whole = self.path(sent)
        common = next((at for at, each in enumerate(whole) if each in above), 0)
        until = whole[common]
        mine = own[: own.index(until)] if until in above else own
        waited = all(each not in self.apart or each in self.until for each in mine)
        return [place, *whole[:common]] if waited else []

    def mark(self, way: Sequence[int], first: int = 0) -> None:
        """Note that a caller waited for the spans along this way, from its ``first``."""
        for at, place in enumerate(way):
            if at >= first and place in self.apart:
                self.until[place] = max(self.until.get(place, 0), self._handed_on(way, at))

    def _handed_on(self, way: Sequence[int], at: int) -> int:
        """Return when the service of a span had handed on what came back along this way."""
        service, last = self.spans[way[at]].operation.service, at
        for lower in range(at - 1, -1, -1):
            within = way[lower]
            if within in self.apart or self.spans[within].operation.service != service:
                break
            last = lower
        if last in {0, at}:
            return _ALWAYS
        sent, taken = self.spans[way[last]], self.spans[way[last - 1]]
        if taken.operation.kind != "consumer":
            return end_of(sent)
        # what is sent within a transaction is on its way only when that ends
        return max(end_of(sent), taken.start + SKEW)
