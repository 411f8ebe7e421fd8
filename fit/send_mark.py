"""Sends the mark of a fault that is about to fire, before it takes effect.

What it says stands in :mod:`ldfi.fit.protocol.mark`.

The span is ended at once and flushed in a thread, beside what the batch holds; the call waits
:data:`WITHIN_SECONDS` for it at most, in both arms alike. Under an event loop that holds the loop
up for as long, and only where a request under experiment reaches the point that is meant.
"""

from __future__ import annotations

import os
import secrets
import threading
from typing import Any, Final

from opentelemetry import trace

from ldfi.fit import request, runtime
from ldfi.fit.protocol import attributes
from ldfi.fit.protocol.mark import Mark

WITHIN_SECONDS: Final = 0.005


class _Process:
    """This process: its name, and the flush that marks wait for. One that is under way may have
    begun before a mark was there, so that waits for another one, which begins behind it."""

    def __init__(self) -> None:
        self.instance = secrets.token_hex(8)
        self.lock = threading.Lock()
        self.flushing = False
        self.next: threading.Event | None = None


_process = _Process()


def leave(arm: str, experiment: str, kind: str, point: str) -> None:
    """Send a mark, and wait until it has left, :data:`WITHIN_SECONDS` at most. Never raises."""
    try:
        said = Mark(arm, experiment, _process.instance, kind, point)
        around = _around()
        tracer = trace.get_tracer("fit")
        span = tracer.start_span(attributes.MARK, around, attributes={attributes.MARK: str(said)})
        span.end()
        if span.is_recording() or span.get_span_context().trace_flags.sampled:
            _flush().wait(WITHIN_SECONDS)
    except Exception:
        runtime.swallow()


def _around() -> Any:
    """Return a context in which the caller's call is the current span; that of the request here,
    where it came from outside."""
    here = trace.get_current_span()
    served = request.serving()
    if served is not None and _trace(served) == _trace(here):
        here = served
    above = getattr(here, "parent", None)
    found = here if above is None else trace.NonRecordingSpan(above)
    return trace.set_span_in_context(found)


def _trace(span: Any) -> int:
    return int(span.get_span_context().trace_id)


def _flush() -> threading.Event:
    """Have all that is ended by now exported, in a thread; one at a time. Returns what says that
    it is done."""
    process = _process
    with process.lock:
        done = process.next = process.next or threading.Event()
        begins, process.flushing = not process.flushing, True
    if begins:  # not under the lock: under gevent what is started may run before start() returns
        threading.Thread(target=_flushes, args=[process], name="fit-mark", daemon=True).start()
    return done


def _flushes(process: _Process) -> None:
    while True:
        with process.lock:
            done, process.next = process.next, None
            if done is None:
                process.flushing = False
                return
        try:
            flush = getattr(trace.get_tracer_provider(), "force_flush", None)
            if flush is not None:
                flush()
        except Exception:
            runtime.swallow()
        finally:
            done.set()


def _begin_anew() -> None:
    global _process  # noqa: PLW0603 - a forked process is another one
    _process = _Process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
