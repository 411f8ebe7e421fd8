"""Joining: a consumer with a trace of its own, and links to the messages that it took.

Such a trace *follows* those that its links point to, and what the consumer did belongs to each of
these requests as well, as a child of the linked span. A consumer of a batch has many links; what it
does for all of them together is done for each, and what it does within a span that names other
messages only is done for those.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from ldfi.lineage.span import Span

MOST_LINKS: Final = 1_000
"""Links of one span that are followed; a batch is smaller."""


class Follows:
    """Which traces follow which, by the links seen so far."""

    def __init__(self) -> None:
        self._followers: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._followed: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def note(self, span: Span) -> Iterator[str]:
        """Note whom the trace of a span follows; names those that it did not before."""
        for trace_id in linked(span):
            if trace_id not in self._followed[span.trace_id]:
                self._followed[span.trace_id][trace_id] = None
                self._followers[trace_id][span.trace_id] = None
                yield trace_id

    def followed(self, trace_id: str) -> list[str]:
        """List the traces that this one follows."""
        return list(self._followed.get(trace_id, ()))

    def followers(self, trace_id: str) -> list[str]:
        """List the traces that follow this one, and those that follow them."""
        found = {trace_id: None}
        pending = [trace_id]
        for each in pending:  # grows while we walk
            for follower in self._followers.get(each, ()):
                if follower not in found:
                    found[follower] = None
                    pending.append(follower)
        return pending[1:]

    def joined(self, trace_id: str, spans_of: Callable[[str], Iterable[Span]]) -> list[Span]:
        """List what followers did for a request, as spans of its own trace."""
        found: list[Span] = []
        onto = [trace_id]
        for each in onto:
            for follower in self._followers.get(each, ()):
                if follower not in onto:
                    onto.append(follower)
                    found += grafts(list(spans_of(follower)), each, trace_id)
        return found

    def forget(self, trace_id: str) -> None:
        """Forget a trace that is gone."""
        for followed in self._followed.pop(trace_id, ()):
            followers = self._followers[followed]
            followers.pop(trace_id, None)
            if not followers:
                del self._followers[followed]


def linked(span: Span) -> list[str]:
    """List the other traces whose messages a span took."""
    if span.operation.kind != "consumer":
        return []
    given = dict.fromkeys(trace_id for trace_id, _ in islice(span.links, MOST_LINKS))
    return [trace_id for trace_id in given if trace_id != span.trace_id]


def grafts(spans: list[Span], onto: str, trace_id: str) -> list[Span]:
    """Copy what a trace did for another one, under the spans that it links to there.

    ``trace_id``: the trace that the copies are spans of. A second copy of a span gets a new id.
    """
    below: defaultdict[str | None, list[Span]] = defaultdict(list)
    for span in spans:
        below[span.parent_id].append(span)
    known = {span.span_id for span in spans}
    pending = [span for span in spans if span.parent_id not in known]
    found: list[Span] = []
    for span in pending:  # grows while we walk; what was taken is not walked again
        if onto not in linked(span):
            pending.extend(below.get(span.span_id, ()))
            continue
        parents = [span_id for there, span_id in span.links[:MOST_LINKS] if there == onto]
        for number, parent in enumerate(dict.fromkeys(parents)):
            found += _copies(span, below, onto, trace_id, parent, f".{number}" if number else "")
    return found


def _copies(
    top: Span,
    below: defaultdict[str | None, list[Span]],
    onto: str,
    trace_id: str,
    parent: str,
    mark: str,
) -> Iterator[Span]:
    pending: list[tuple[Span, str]] = [(top, parent)]
    seen: set[int] = set()
    while pending:
        span, above = pending.pop()
        elsewhere = linked(span)
        if id(span) in seen or (elsewhere and onto not in elsewhere):
            continue
        seen.add(id(span))
        own = span.span_id + mark
        yield span._replace(trace_id=trace_id, span_id=own, parent_id=above)
        pending.extend((child, own) for child in below.get(span.span_id, ()))
