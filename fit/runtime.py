"""What is installed in this process, and the one question every injection point asks.

Unarmed, the answer costs a look-up in OpenTelemetry's context and nothing else. Whatever goes
wrong in here is swallowed: a fault of ours must never become a fault of the host's.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import Final

from opentelemetry import baggage, trace
from opentelemetry.context import Context

from fit import attributes
from fit.context import ENTRY, FailureContext, Injection, decode
from fit.errors import ContextError
from fit.keys import Keys

_log = logging.getLogger("fit")
_REMEMBERED: Final = 1024


@dataclass(slots=True)
class Runtime:
    """The name of this service, the keys it trusts, and the contexts it has verified already."""

    service: str
    keys: Keys
    _verified: dict[str, FailureContext | None] = field(default_factory=dict)

    def context(self, within: Context | None = None) -> FailureContext | None:
        """The valid failure context of the current request, if there is one."""
        value = baggage.get_baggage(ENTRY, within)
        if value is None:
            return None
        return self.verify(str(value))

    def verify(self, value: str) -> FailureContext | None:
        """Verify once, remember, and look at the expiry every time."""
        now = time.time()
        try:
            found = self._verified[value]
        except KeyError:
            found = self._first_look(value, now)
        return found if found is not None and found.expires > now else None

    def _first_look(self, value: str, now: float) -> FailureContext | None:
        try:
            found = decode(self.keys, value, now)
        except ContextError as error:
            _log.warning("failure context ignored: %s", error)
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
    """The runtime of this process; None where ``fit`` is not installed or has no key."""
    return _runtime


def enter(runtime: Runtime, point: str, span: trace.Span) -> Injection | None:
    """Ask what shall happen at ``point``, and write the answer on ``span``.

    Returns the injection to carry out: None in the control arm, where the point only records
    that it would have fired, and for a span that proves nothing because it is not recorded —
    a fault nobody can see afterwards is not injected.
    """
    if not span.is_recording():
        return None
    span.set_attribute(attributes.POINT, point)
    context = runtime.context()
    if context is None:
        return None
    injection = context.at(point)
    if injection is None:
        return None
    if context.arm == "control":
        span.set_attribute(attributes.WOULD_FIRE, injection.kind)
        return None
    span.set_attribute(attributes.FIRED, injection.kind)
    span.add_event(
        attributes.EVENT,
        {attributes.FIRED: injection.kind, attributes.EXPERIMENT: context.experiment},
    )
    return injection


def gave_up(error: BaseException) -> None:
    """The caller cancelled a delayed call. OpenTelemetry does not call that an error; it is one."""
    span = trace.get_current_span()
    span.set_status(trace.StatusCode.ERROR, "cancelled by its caller")
    span.set_attribute("error.type", type(error).__qualname__)


def swallow() -> None:
    """Log an exception of ours and go on; called from an ``except`` block."""
    _log.debug("fit failed inside itself; the request goes on untouched", exc_info=True)
