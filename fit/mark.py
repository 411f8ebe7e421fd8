"""The mark that leaves a process before a fault takes effect in it.

The proof of a fault stands on the span of the call that it hits, and that leaves with the next
batch, seconds later. Where the fault ends the process, the batch is gone, and so is the proof. So
a span of its own, ``fit.mark``, is ended and flushed first, in both arms alike, and the call waits
for that :data:`WITHIN_SECONDS` at most. It hangs below the *caller's* call, beside what this
process will tell of the request: where nothing but the mark came of it, and the caller got no
answer, the fault has killed the process.

    1 treatment 8d21f0 5f1c2a7b refused@api>http:GET db:80/users/*

That is: version, arm, experiment, instance (a process, by lot), fault. What it says is the same in
all languages (``fit/vectors/marks.json``).
"""

from __future__ import annotations

import os
import re
import secrets
import threading
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry import trace

from ldfi.fit import attributes, request, runtime

VERSION: Final = "1"
WITHIN_SECONDS: Final = 0.005
"""The longest that a call waits for its mark to leave."""

_MARK: Final = re.compile(
    r"1 (treatment|control) ([A-Za-z0-9._~-]{1,64}) ([A-Za-z0-9]{1,32})"
    r" ([A-Za-z0-9:_.=-]{1,80})@([^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,500})"
)


@dataclass(frozen=True, slots=True)
class Mark:
    """What a mark says. ``instance``: the process that it left."""

    arm: str
    experiment: str
    instance: str
    kind: str
    point: str

    def __str__(self) -> str:
        return f"{VERSION} {self.arm} {self.experiment} {self.instance} {self.fault}"

    @property
    def fault(self) -> str:
        """Return ``kind@point``."""
        return f"{self.kind}@{self.point}"

    @classmethod
    def parse(cls, text: str) -> Mark | None:
        """Read what ``str`` wrote; None for anything else."""
        found = _MARK.fullmatch(text)
        return None if found is None else cls(*found.groups())


class _Process:
    """This process: its name, and the flush that is under way."""

    def __init__(self) -> None:
        self.instance = secrets.token_hex(8)
        self.flushed: threading.Event | None = None


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
    """Have all that is ended exported, in a thread; one at a time. Returns what says that it is
    done."""
    under_way = _process.flushed
    if under_way is not None and not under_way.is_set():
        return under_way
    done = _process.flushed = threading.Event()
    threading.Thread(target=_flushed, args=[done], name="fit-mark", daemon=True).start()
    return done


def _flushed(done: threading.Event) -> None:
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
