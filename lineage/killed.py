"""Whether a process died of the fault that a request brought into it.

A mark leaves the process before the fault takes effect (:mod:`ldfi.fit.protocol.mark`); all else
that the process says of the request comes later. So a mark of which nothing else ever came tells of
a process that is gone, or of a batch that was lost. Its caller tells the two apart: who was
answered spoke with somebody alive. A caller that gave up waiting knows nothing either way, and then
nothing is said. Where no caller is there the request came from outside, or its service is gone as
well.

A proxy beside a service leaves marks in its name, below the call that passes, and proves what
fired by a span of its own there: it tells of the proxy, and not of the service. That lives where
the call is told of, which ends after the mark; a call of somebody else's, which a service without
tracing has passed on, tells nothing of it.

To be asked of traces that were waited for: what is on its way is no hole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ldfi.fit.protocol.mark import Mark
from ldfi.lineage.operation import Operation
from ldfi.lineage.span import Span

_NOBODY: Final = frozenset({"status:502", "status:503", "status:504"})
"""What a proxy answers in the place of a process that is gone."""

_GAVE_UP: Final = ("timeout", "timedout", "timed_out", "deadline", "cancel", "abort")
"""What stands in the names of errors of those who waited no longer."""


class Death(NamedTuple):
    """A process that told of a fault, and of nothing after that. ``at``: when it was about to fire,
    nanoseconds since the epoch, by the clock of the process."""

    service: str
    mark: Mark
    at: int


def marks(spans: Iterable[Span]) -> list[tuple[Span, Mark]]:
    """List the marks among these spans."""
    said = ((span, span.operation.mark) for span in spans)
    read = ((span, Mark.parse(text)) for span, text in said if text)
    return [(span, mark) for span, mark in read if mark is not None]


def deaths(spans: Iterable[Span]) -> list[Death]:
    """List the processes that died under a request, by all that is there of its trace."""
    spans = list(spans)
    left = marks(spans)
    if not left:
        return []
    by_id = {span.span_id: span for span in spans if not span.operation.mark}
    return [
        Death(span.operation.service, mark, span.start)
        for span, mark in left
        if _died(span, mark, by_id)
    ]


def _died(left: Span, mark: Mark, by_id: Mapping[str, Span]) -> bool:
    call = by_id.get(left.parent_id or "")
    later = [each for each in by_id.values() if _said_later(each, left)]
    if any(not _by_proxy(each, left, mark) for each in later):
        return False
    return call is None if later else _unanswered(call)


def _said_later(span: Span, left: Span) -> bool:
    """Return whether a span is of the same service and ended after the mark."""
    return span.operation.service == left.operation.service and span.end >= left.start


def _by_proxy(span: Span, left: Span, mark: Mark) -> bool:
    """Return whether a proxy proves by this span what its mark has announced: both are below the
    call."""
    return span.parent_id == left.parent_id and span.operation.point == mark.point


def _unanswered(call: Span | None) -> bool:
    """Return whether a call ended without an answer, and not since its caller waited no longer.
    Nobody knows it of one that is not there, and of a message, which nobody answers."""
    if call is None or call.operation.kind == "producer":
        return True
    what = call.operation
    return what.failed is True and not _answered(what) and not _gave_up(what)


def _answered(what: Operation) -> bool:
    return what.failure.startswith(("status:", "grpc:")) and what.failure not in _NOBODY


def _gave_up(what: Operation) -> bool:
    error = f"{dict(what.fields).get('error_type', '')} {what.failure}".lower()
    return any(word in error for word in _GAVE_UP)
