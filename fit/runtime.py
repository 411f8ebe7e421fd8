"""What is installed in this process, and the one question every injection point asks.

Unarmed, the answer costs a look-up in OpenTelemetry's context and nothing else. Whatever goes
wrong in here is swallowed: a fault of ours must never become a fault of the host's.
"""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import dataclass, field
from typing import Final, Protocol

from opentelemetry import baggage
from opentelemetry.context import Context

from ldfi.fit.protocol.context import ENTRY, MAX_LENGTH, FailureContext, decode
from ldfi.fit.protocol.errors import ContextError
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.protocol.kinds import FaultKind

_log = logging.getLogger("fit")
_REMEMBERED: Final = 1024
GRACE: Final = 300.0
"""Seconds for which a context that has run out is still told from none: its request goes on."""


class Witness(Protocol):
    """Told what happens at the points of this process, beside the spans. For tests."""

    def on_passed(self, point: str) -> None:
        """Note that a request under a valid context has reached a point."""

    def on_fired(self, point: str, kind: FaultKind) -> None:
        """Note that a fault is about to hit a call there."""


@dataclass(slots=True)
class Runtime:
    """The name of this service, the keys it trusts, and the contexts it has verified already.

    With a ``witness`` faults fire where no span is recorded, too: it is the proof.
    """

    service: str
    keys: Keys
    witness: Witness | None = None
    _verified: dict[str, FailureContext | None] = field(default_factory=dict)

    def context(self, within: Context | None = None) -> FailureContext | None:
        """Read the failure context of the current request; None without one that is valid."""
        value = baggage.get_baggage(ENTRY, within)
        if value is None:
            return None
        return self.verify(str(value))

    def verify(self, value: str) -> FailureContext | None:
        """Verify once, remember, and look at the expiry every time."""
        found = self.recognize(value)
        return found if found is not None and found.expires > time.time() else None

    def recognize(self, value: str) -> FailureContext | None:
        """Do what :meth:`verify` does, also for a context that has run out less than
        :data:`GRACE` seconds ago: nothing may be injected by that."""
        if len(value) > MAX_LENGTH:
            return None
        now = time.time()
        try:
            found = self._verified[value]
        except KeyError:
            found = self._first_look(value, now)
        return found if found is not None and found.expires + GRACE > now else None

    def _first_look(self, value: str, now: float) -> FailureContext | None:
        try:
            found = decode(self.keys, value, now, grace=GRACE)
        except ContextError as error:
            _log.info("failure context ignored: %s", error)  # no louder: strangers may send many
            found = None
        if len(self._verified) >= _REMEMBERED:
            self._verified.clear()
        self._verified[value] = found
        return found


_runtime: Runtime | None = None


def activate(runtime: Runtime | None) -> None:
    """Put a runtime in place for this process, or with None take it away."""
    global _runtime  # noqa: PLW0603 - one process is one service
    _runtime = runtime


def active() -> Runtime | None:
    """Return the runtime of this process; None where ``fit`` is not installed or has no key."""
    return _runtime


def swallow() -> None:
    """Log an exception of ours and go on; called from an ``except`` block. Never raises."""
    with contextlib.suppress(Exception):  # a host's log handler may fail, too
        _log.debug("fit failed inside itself; the request goes on", exc_info=True)


def current() -> FailureContext | None:
    """Return the failure context of the request being served: its experiment and its arm.

    None for nearly every request. For labels of metrics, say; raises nothing.
    """
    try:
        active_now = active()
        return None if active_now is None else active_now.context()
    except Exception:
        swallow()
        return None
