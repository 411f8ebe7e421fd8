"""The request that code works for, and whether it is over.

A failure context goes along with OpenTelemetry's context into whatever a request starts: a task, a
timer, a thread that was given it. All of them still have it when the request has been answered, and
then work for others: a worker, a periodic refresh. So each call looks at the span of the request
that it came from, and once that has ended is let through, and hands no context on
(:mod:`ldfi.fit.hosts`): the next service could not tell.

The sampler sees it: it is asked before each span, and so before the first that is begun within the
request's own. Work that serves several requests while the first of them goes on (a batch, a token
that is fetched once for all) cannot be told apart in this way.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final

from opentelemetry.trace import Span, SpanKind

_request: Final[ContextVar[Any]] = ContextVar("fit_request", default=None)


def note(around: Span) -> None:
    """Note within which span another one is begun, if it is that of a request."""
    if getattr(around, "kind", None) is SpanKind.SERVER:
        _request.set(around)


def serving() -> Any:
    """Return the span of the request that this code works for; None where nobody knows."""
    return _request.get()


def over(call: Span) -> bool:
    """Return whether the request that a call belongs to has ended; False where nobody knows."""
    request = _request.get()
    if request is None or getattr(request, "end_time", None) is None:
        return False
    own: int = request.get_span_context().trace_id
    return own == call.get_span_context().trace_id
