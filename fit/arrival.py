"""What the edge tells the sampler: this request has just come in, from nobody of ours.

A device may send a ``traceparent``, and then the SERVER span at the edge has a parent like any
other. Only the edge knows that nobody will ever export that parent. It stands outside the tracing
and sees no span; the sampler sees the span and not the edge. So the one leaves word, and the other
takes it with the first SERVER span that has no parent in this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar

from opentelemetry.trace import SpanContext

_word: ContextVar[list[Mapping[str, str]] | None] = ContextVar("fit_arrival", default=None)
"""Empty once it was taken: a list, for what is in it is seen by tasks that were begun since."""


def leave_word(features: Mapping[str, str] | None = None) -> None:
    """Have the first SERVER span of the request that is served now marked, and tell of these
    features."""
    _word.set([features or {}])


def taken(parent: SpanContext) -> Mapping[str, str] | None:
    """Tell whether a SERVER span with this parent is the request as it came in; once for each.
    Returns the features that its span shall tell of; None where it is none."""
    word = _word.get()
    if not word or (parent.is_valid and not parent.is_remote):
        return None
    return word.pop()
