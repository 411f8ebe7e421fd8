"""What the edge tells the sampler: this request has just come in, from nobody of ours.

A device may send a ``traceparent``, and then the SERVER span at the edge has a parent like any
other. Only the edge knows that nobody will ever export that parent. It stands outside the tracing
and sees no span; the sampler sees the span and not the edge. So the one leaves word, and the other
takes it with the first SERVER span that has no parent in this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import NamedTuple

from opentelemetry.trace import SpanContext


class Word(NamedTuple):
    """``features`` that the span shall tell of; ``again``: this edge has stamped a request of the
    same device for the same experiment before."""

    features: Mapping[str, str]
    again: bool = False


_word: ContextVar[list[Word] | None] = ContextVar("fit_arrival", default=None)
"""Empty once it was taken: a list, for what is in it is seen by tasks that were begun since."""


def leave_word(features: Mapping[str, str] | None = None) -> None:
    """Have the first SERVER span of the request that is served now marked, and tell of these
    features."""
    _word.set([Word(features or {})])


def note_again() -> None:
    """Add to the word that was left that the device is enrolled already."""
    word = _word.get()
    if word:
        word[-1] = word[-1]._replace(again=True)


def taken(parent: SpanContext) -> Word | None:
    """Return whether a SERVER span with this parent is the request as it came in; once for each.
    Returns what its span shall tell; None where it is none."""
    word = _word.get()
    if not word or (parent.is_valid and not parent.is_remote):
        return None
    return word.pop()
