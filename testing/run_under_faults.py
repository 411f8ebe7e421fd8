"""Code under faults, with no network and no control plane, and what became of them.

The failure context is signed with a key made for the block and put into the baggage of the current
OpenTelemetry context. It goes wherever that goes: into functions, coroutines, ``asyncio.to_thread``
and in-process test clients. What fires is told to a witness, so that no SDK and no span is needed.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

from opentelemetry import baggage, context, trace

from ldfi.fit import clients, runtime, uninstall
from ldfi.fit.clients import fakes
from ldfi.fit.protocol.context import ENTRY, encode
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.protocol.kinds import FaultKind, shown_as
from ldfi.fit.protocol.native_kinds import check_native
from ldfi.fit.protocol.notation import draw_key_of
from ldfi.fit.protocol.points import Point
from ldfi.fit.runtime import Runtime
from ldfi.testing.errors import NotFired

_LIFETIME: Final = 3600
"""Seconds for which the context is valid; it leaves with its block, and so does its key."""


@dataclass(frozen=True, slots=True)
class Injected:
    """What a block injects, and what has come of it so far.

    ``headers`` are for a client that is not instrumented and calls a server of this process in
    another thread.
    """

    faults: tuple[Fault, ...]
    headers: dict[str, str]
    fired: list[str] = field(default_factory=list)
    """``kind@point`` of every call that was made to fail, or to hang, in order."""
    passed: list[str] = field(default_factory=list)
    """The name of every point that was reached, in order, whether or not anything fired."""

    def missing(self) -> list[str]:
        """Return the faults that have not fired."""
        return [
            str(each)
            for each in self.faults
            if shown_as(f"{each.kind}@{each.point}") not in self.fired
        ]

    def on_passed(self, point: str) -> None:
        """Note a point that was reached; called by ``fit``."""
        self.passed.append(point)

    def on_fired(self, point: str, kind: FaultKind) -> None:
        """Note a fault that fired; called by ``fit``."""
        self.fired.append(f"{kind}@{point}")


@contextmanager
def faults(
    *wanted: str | Fault, service: str = "", delay: float = 10.0, must_fire: bool = True
) -> Iterator[Injected]:
    """Make the calls of a block fail as ``wanted``, and tell which did.

    Faults are written ``KIND@POINT``, with names of points as :mod:`ldfi.fit.protocol.points` makes
    them. ``service`` is the name of this process's service, by default that with which ``fit`` was
    installed, else the one caller in the faults. ``delay``: seconds that a ``delay`` lasts where
    the caller sets no timeout, and the longest where lengths are drawn; the same faults draw the
    same ones.

    Raises NotFired at the end where any fault has not fired, unless ``must_fire`` is False. Where
    the block raises by itself, that is raised, with a note on what did not fire. Raises ValueError
    for what is no fault, for a kind that its point cannot have, or where the service cannot be
    told.

    A block counts as one request, in a trace of its own; one within another is under its own
    faults only.
    """
    chosen = tuple(Fault.parse(each) if isinstance(each, str) else each for each in wanted)
    for fault in chosen:
        check_native(fault.kind, fault.point)
    before = runtime.active()
    keys = Keys.parse(f"testing:{secrets.token_hex(16)}")
    expires = int(time.time()) + _LIFETIME
    longest, draw_key = max(1, round(delay * 1000)), draw_key_of(chosen)
    signed = encode(
        keys, "testing", "treatment", expires, chosen, delay_ms=longest, draw_key=draw_key
    )
    injected = Injected(chosen, {"baggage": f"{ENTRY}={signed}"})
    name = service or (before.service if before else _only_caller(chosen))
    with _installed(Runtime(name, keys, injected), before), _carrying(signed):
        try:
            yield injected
        except BaseException as error:
            if must_fire and injected.missing():
                error.add_note(f"ldfi: {NotFired(injected.missing(), injected.passed)}")
            raise
    if must_fire and injected.missing():
        raise NotFired(injected.missing(), injected.passed)


def _only_caller(chosen: tuple[Fault, ...]) -> str:
    callers = {Point.parse(fault.point).caller for fault in chosen}
    if len(callers) != 1:
        raise ValueError(
            f"the callers in these faults are {sorted(callers)}: say which service this process "
            'is, as in faults(..., service="shop")'
        )
    return callers.pop()


@contextmanager
def _installed(ours: Runtime, before: Runtime | None) -> Iterator[None]:
    """Every client as an injection point, above what a test puts in place of the wire."""
    with ExitStack() as stack:
        stack.callback(runtime.activate, before)
        if before is None:
            stack.callback(uninstall)
            clients.patch_all(skip=["httpcore"])  # httpx has its points in httpx_transports
            fakes.patch_all()
        stack.enter_context(_httpx())
        runtime.activate(ours)
        yield


@contextmanager
def _httpx() -> Iterator[None]:
    try:
        from ldfi.fit.clients import httpx_transports
    except ModuleNotFoundError:  # a service without httpx
        yield
        return
    with httpx_transports.patched():
        yield


@contextmanager
def _carrying(signed: str) -> Iterator[None]:
    """Put the signed context in the current one, in a new trace: calls are counted by trace."""
    around = trace.set_span_in_context(_a_request(), baggage.set_baggage(ENTRY, signed))
    token = context.attach(around)
    try:
        yield
    finally:
        context.detach(token)


def _a_request() -> trace.Span:
    return trace.NonRecordingSpan(
        trace.SpanContext(
            secrets.randbits(127) + 1,
            secrets.randbits(63) + 1,
            is_remote=False,
            trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
        )
    )
