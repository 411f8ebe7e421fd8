"""Saying what this process can make fail, as a span now and then: campaigns try nothing else.

A thread of its own writes one span ``fit.reach`` soon after ``fit.install()``, whenever another
library gets its points, and every few minutes after that. It goes where all spans go, as a trace of
its own, so it needs no other door; in a process whose spans are not recorded nothing is said.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from opentelemetry import context, trace

from ldfi.fit import runtime
from ldfi.fit.protocol import attributes
from ldfi.fit.protocol.points import Point
from ldfi.fit.protocol.reach import LIBRARY, MAX_REACHES, OWN, InjectorReport, PointPattern

SETTLED_SECONDS: Final = 3.0
"""Libraries are imported one after the other: so long is waited for the next."""

AGAIN_SECONDS: Final = 5.0
EVERY_SECONDS: Final = 300.0
"""From one report to the next: the first where a sampler has dropped it, then twice as long each
time; the second at most."""

_KIND: Final = re.compile(r"[\w.-]{1,40}", re.ASCII)
_kinds: Final[set[str]] = set()
_libraries: Final[set[str]] = set()
_unknown: Final[set[str]] = set()
_bare: Final[dict[str, int]] = {}
_more: Final = threading.Event()


def reaches(kind: str, libraries: Iterable[str] = ()) -> None:
    """Note that points of this kind (``http``, ``db``, …) can be made to fail in this process.

    ``libraries``: whose calls they are, by the names of OpenTelemetry's instrumentations.
    """
    fresh = set(libraries) - _libraries
    if kind not in _kinds or fresh:
        _kinds.add(kind)
        _libraries.update(fresh)
        _more.set()


def lacks(library: str) -> None:
    """Note that this process has a library whose calls cannot be made to fail: ``fit`` does not
    know it, and it sends no failure context."""
    if library not in _unknown:
        _unknown.add(library)
        _more.set()


def bare(library: str, calls: int) -> None:
    """Note that so many calls by a library have run in no trace at all."""
    _bare[library] = calls


def report(service: str) -> InjectorReport:
    """Return what can be reached here, and of which libraries; which cannot
    (``CALLER>unknown:LIBRARY|none``: no kind is possible there); and by which of them calls ran in
    no trace (``CALLER>bare:LIBRARY:N|none``: N or more)."""
    named = [str(Point(service, kind, "*")) for kind in _readable(_kinds)]
    if named:
        held = _readable({OWN, *_libraries})
        named += [f"{Point(service, LIBRARY[:-1], library)}" for library in held]
    named += [f"{Point(service, 'unknown', library)}|none" for library in _readable(_unknown)]
    named += [f"{Point(service, 'bare', name)}:{_bare[name]}|none" for name in sorted(_bare)]
    reaches = tuple(map(PointPattern.parse, named[:MAX_REACHES]))
    return InjectorReport(f"python/{_version()}", reaches)


def _readable(words: Iterable[str]) -> list[str]:
    return [word for word in sorted(words) if _KIND.fullmatch(word)]


def write(service: str) -> bool:
    """Write the report; whether it was recorded."""
    said = report(service)
    if not said.reaches:
        return False
    tracer = trace.get_tracer("fit")
    root = context.Context()  # of no request
    span = tracer.start_span(attributes.REACH, root, attributes={attributes.REACH: str(said)})
    span.end()
    return span.is_recording() or span.get_span_context().trace_flags.sampled


class _Reporter:
    """The thread. One in each process: a forked one begins its own."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        thread = threading.Thread(target=self._run, name="fit-reach", daemon=True)
        thread.start()

    def stop(self) -> None:
        self._stopped.set()
        _more.set()

    def _run(self) -> None:
        pause = AGAIN_SECONDS
        while not self._stopped.wait(SETTLED_SECONDS):
            _more.clear()
            active = runtime.active()
            try:
                written = active is not None and write(active.service)
            except Exception:
                runtime.swallow()
                written = False
            pause = EVERY_SECONDS if written else min(2 * pause, EVERY_SECONDS)
            _more.wait(pause)


_reporter: _Reporter | None = None


def start() -> None:
    """Begin to report; does nothing where that has begun."""
    global _reporter  # noqa: PLW0603 - one process has one
    if _reporter is None:
        _reporter = _Reporter()


def stop() -> None:
    """InjectorReport no more."""
    global _reporter  # noqa: PLW0603 - one process has one
    if _reporter is not None:
        _reporter.stop()
        _reporter = None


def _after_fork() -> None:
    if _reporter is not None:
        stop()
        start()


def _version() -> str:
    try:
        return version("ldfi")
    except PackageNotFoundError:
        return "0"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
