"""The edge: decides once per request which experiment it is in, and stamps it.

This is the decision alone; :mod:`ldfi.fit.asgi` and :mod:`ldfi.fit.wsgi` are its rims. What comes
in is the ``baggage`` header as the client sent it, what comes out is the header that goes on:

1. A failure context from outside is taken out, those that an edge has stamped before included. Only
   one that an engineer has signed for this very device (:mod:`ldfi.fit.protocol.scenario`) stays,
   and takes precedence.
2. A request of an armed class, from a device in one of the experiment's arms, is stamped, as long
   as the allowance lasts.

Whatever fails in here, the request goes on, unstamped; and if it could not be read what a client
sent, that is left out.

Where the allowance is used up that this process has, the service is asked for one more device. The
decision is a generator for that: it yields what it wants to know, and whoever drives it (a thread
that may wait, an event loop that may not) sends the answer.
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from typing import Final, NamedTuple

from ldfi.fit import arriving_request, baggage, runtime
from ldfi.fit.allowance_requests import Question
from ldfi.fit.clock import steady
from ldfi.fit.device import Devices, Values
from ldfi.fit.poll import RulesPoll
from ldfi.fit.protocol.allocation import mark_of
from ldfi.fit.protocol.context import Arm, encode
from ldfi.fit.protocol.features import Features
from ldfi.fit.protocol.rules import Lease, Rule, chosen
from ldfi.fit.protocol.scenario import admits
from ldfi.fit.runtime import Runtime

# Halting an edge by itself, without anybody's network: no request is stamped while it holds.
#
# Either of two says so: the variable ``FIT_HALT`` is ``1`` when the process starts, or the file
# that ``FIT_HALT_FILE`` names is there. The file is looked for a few times a second at most, and
# only while rules are armed.

HALT_VARIABLE: Final = "FIT_HALT"
HALT_FILE: Final = "FIT_HALT_FILE"
HALT_LOOK_SECONDS: Final = 0.25


class LocalHalt:
    """``environ``: where both variables are."""

    def __init__(
        self, environ: Mapping[str, str] = os.environ, clock: Callable[[], float] = steady
    ) -> None:
        self._file = environ.get(HALT_FILE, "")
        self._always = environ.get(HALT_VARIABLE) == "1"
        self._clock = clock
        self._halted = False
        self._next = -1.0

    def holds(self) -> bool:
        """Return whether this edge is halted, as of a moment ago. Raises nothing."""
        if self._always or not self._file:
            return self._always
        now = self._clock()
        if now >= self._next:
            self._next = now + HALT_LOOK_SECONDS
            self._halted = os.path.lexists(self._file)
        return self._halted


_REMEMBERED = 1000

Decision = Generator[Question, bool, str]
"""A decision under way: it yields what it asks the service, takes the answer, and returns the
``baggage`` header with which a request goes on."""


class _Place(NamedTuple):
    """Where a device falls."""

    rule: Rule
    arm: Arm
    mark: int
    device: str


class Edge:
    """Decides by the rules that ``poll`` holds; without it, contexts are only taken out."""

    def __init__(self, poll: RulesPoll | None) -> None:
        self._poll = poll
        self._devices: Devices | None = None
        with suppress(Exception):  # then nobody is known
            self._devices = Devices.from_environment()
        self._halt = LocalHalt()
        self._signed: tuple[Lease | None, dict[tuple[str, Arm, int, str], str]] = (None, {})
        self._draws = itertools.count()

    def device_of(self, values: Values, peer: Callable[[], str]) -> str:
        """Find which device a request comes from (:mod:`ldfi.fit.device`)."""
        return self._devices.of(values, peer) if self._devices is not None else ""

    def wanted(self) -> frozenset[str]:
        """Name the features that the rules of now ask for."""
        return self._poll.lease().wanted if self._poll is not None else frozenset()

    def asks_for_bodies(self, device: str) -> bool:
        """Return whether the class of a request of this device may depend on what its body says."""
        poll = self._poll
        if poll is None or not device:
            return False
        lease = poll.lease()
        return lease.reads_bodies and bool(lease.claims(mark_of(device)))

    def baggage_onward(
        self, inbound: str, device: str = "", features: Callable[[], Features] | None = None
    ) -> str:
        """Write the ``baggage`` header with which a request goes on; empty for none. It may wait
        for the service, for 20 ms at most.

        ``features`` is called only for devices that an experiment claims; None where the request
        is of a kind that is never stamped. Raises nothing.
        """
        decision = self.decide(inbound, device, features)
        try:
            question = next(decision)
            while True:
                question = decision.send(self.ask(question))
        except StopIteration as decided:
            header: str = decided.value
            return header

    def decide(
        self, inbound: str, device: str = "", features: Callable[[], Features] | None = None
    ) -> Decision:
        """Decide on a request as :meth:`baggage_onward` does, which asks by itself."""
        header, ours = _screened(inbound, device)
        if ours or features is None:
            return header
        try:
            return (yield from self._stamped(header, device, features))
        except Exception:
            runtime.swallow()
            return header

    @property
    def threads(self) -> Executor | None:
        """Return where an event loop has questions asked."""
        return self._poll.threads if self._poll is not None else None

    def ask(self, question: Question) -> bool:
        """Ask the service, and wait for its answer. Raises nothing."""
        return self._poll is not None and self._poll.ask(question)

    def _stamped(self, header: str, device: str, features: Callable[[], Features]) -> Decision:
        active, poll = runtime.active(), self._poll
        if active is None or poll is None:
            return header
        poll.start()
        lease = poll.lease()
        if not lease.rules or not device or self._halt.holds():
            return header
        mark = mark_of(device)
        claims = lease.claims(mark)
        claimed = chosen(claims, features()) if claims else None
        if claimed is None:
            return header
        rule, arm = claimed
        place = _Place(rule, arm, mark, device)
        known = poll.allowances.knows(rule.experiment, arm, mark)
        if known or not (poll.asks.answered and poll.allowances.closed(rule.experiment)):
            return self._enrolled(header, active, poll, lease, place)
        with poll.asking(rule.experiment, arm, lease.version) as question:
            if question is None or not (yield question):
                return header
            return self._enrolled(header, active, poll, poll.lease(), place, granted=True)

    def _enrolled(
        self,
        header: str,
        active: Runtime,
        poll: RulesPoll,
        lease: Lease,
        place: _Place,
        *,
        granted: bool = False,
    ) -> str:
        """Stamp a request, and count its device, if it may be."""
        if lease.ends <= steady():
            return header
        rule, arm, mark, device = place
        stamped = baggage.with_entry(header, self._stamp(active, lease, rule, arm, device))
        if len(stamped) > baggage.MAX_LENGTH:
            return header
        again = poll.allowances.knows(rule.experiment, arm, mark)
        if not poll.allowances.admit(rule.experiment, arm, mark, granted=granted):
            return header
        if again:
            arriving_request.note_again()
        return stamped

    def _stamp(self, active: Runtime, lease: Lease, rule: Rule, arm: Arm, device: str) -> str:
        """Sign a context once per experiment, arm and lease; once per request only where lengths
        are drawn.

        A context expires by the wall clock, for it is read on other machines. What is left of the
        lease is measured by the steady one, so that no jump of the wall clock prolongs it. It
        holds for longer than the lease where the rule asks for that.
        """
        of_lease, signed = self._signed
        if of_lease is not lease or len(signed) >= _REMEMBERED:
            signed = {}
            self._signed = (lease, signed)
        expires = math.ceil(time.time() + max(lease.ends - steady(), rule.patience))
        if rule.draws:
            draw_key = f"{rule.salt}\n{device}\n{next(self._draws)}"
            return _signed(active, rule, arm, expires, draw_key)
        key = (rule.experiment, arm, expires, active.keys.signing_id)
        known = signed.get(key)
        if known is None:
            known = signed[key] = _signed(active, rule, arm, expires)
        return known


def _signed(active: Runtime, rule: Rule, arm: Arm, expires: int, draw_key: str = "") -> str:
    return encode(
        active.keys,
        rule.experiment,
        arm,
        expires,
        rule.faults,
        delay_ms=rule.delay_ms,
        draw_key=draw_key,
    )


def _screened(inbound: str, device: str) -> tuple[str, bool]:
    """Remove from the header what is foreign; tell whether a scenario of this very device is
    left."""
    try:
        values = baggage.values(inbound) if inbound else []
        if not values:
            return inbound, False
        cleaned = baggage.without(inbound)
    except Exception:
        runtime.swallow()
        return "", False
    try:
        active = runtime.active()
        ours = active and next(
            (each for each in values if admits(active.verify(each), device)), None
        )
        return (baggage.with_entry(cleaned, ours), True) if ours else (cleaned, False)
    except Exception:
        runtime.swallow()
        return cleaned, False
