"""Devices while they take part: harm may come with the next request, the first being answered well.

A device takes part for a *stay*: so many seconds from its first request that counts, the same in
both arms. It failed where that request failed, or any other that it began in this time, of any
class and whether anything was injected into that or not: a cart, a session, a token is lost by the
first, and missed by the second. Devices of control are looked at in the same way and for as long,
and devices near in time are compared; so what fails by itself is as frequent in both arms, and
stays are as exchangeable as first requests are.

The same two tests are made of stays as of first requests, side by side, and share the chance of a
false *harmful*, half for each: either makes it harmful, and *tolerated* takes both. A stay that
is not over may still become a failed one, so *harmful* by stays is only said when the stays of all
who were let in are over; *when to stop* goes by what is known so far.

A device that never comes again within its stay counts with its first request alone: what its next
one would have met nobody knows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from ldfi.experiments.domain.judging.ordered_outcomes import Counted, Ordered
from ldfi.experiments.domain.judging.sequential_tests import Verdict

MOST: Final = 10_000
"""Devices with failed requests that are remembered, whether they take part or not."""


@dataclass(slots=True)
class Stays:
    """``first``: what devices count with, their first requests. ``own``: the same, where a device
    counts as failed if it did while it took part. ``seconds``: how long a stay is; 0: nobody looks
    at later requests, and there is one test."""

    first: Ordered
    own: Ordered
    seconds: float = 0.0
    _failed: dict[str, list[int]] = field(default_factory=dict)
    """Device → when its failed requests began, whoever was first to report."""

    def take(self, device: str, counted: Counted, *, again: bool = False) -> bool:
        """Take the request with which a device counts, as :meth:`Ordered.take` does."""
        self.own.take(device, counted, again=again)
        self._look(device)
        return self.first.take(device, counted, again=again)

    def release(self, now: float) -> list[tuple[str, bool]]:
        """Count the devices that were put off for long enough, as :meth:`Ordered.release` does."""
        for device, _ in self.own.release(now):
            self._look(device)
        return self.first.release(now)

    def fail(self, device: str, start: int) -> None:
        """Take in that a request of this device failed, which began then (nanoseconds)."""
        if self.seconds and (device in self._failed or len(self._failed) < MOST):
            self._failed.setdefault(device, []).append(start)
            self._look(device)

    def doubt(self, trace_id: str) -> None:
        """Have a treated request that went well prove nothing for *tolerated*."""
        self.first.unproved.add(trace_id)
        self.own.unproved.add(trace_id)

    def lost(self, device: str) -> bool:
        """Return whether a later request of a device that counts has failed within its stay."""
        counted, ends = self.own.of(device), self.seconds * 1e9
        return counted is not None and any(
            0 < start - counted[0] <= ends for start in self._failed.get(device, ())
        )

    def failed_later(self) -> frozenset[str]:
        """Return the traces counted for devices of which a later request has failed."""
        lost = (self.own.of(device) for device in self._failed if self.lost(device))
        return frozenset(counted[1] for counted in lost if counted is not None)

    def follows(self, device: str) -> bool:
        """Return whether a device was treated and takes part: its requests are no bystander's."""
        counted = self.own.of(device)
        return self.seconds > 0 and counted is not None and counted[2]

    def verdict(self) -> Verdict | None:
        """Return the verdict so far, if there is one."""
        first = self.first.verdict()
        return _both(first, self.own.verdict()) if self.seconds else first

    def final(self, failing: Collection[str] = ()) -> Verdict:
        """Return the last verdict. ``failing``: traces, as it were had these requests failed."""
        tests = (self.first, self.own) if self.seconds else (self.first,)
        said = [each.final(failing) if failing else each.tests.final() for each in tests]
        return _both(said[0], said[-1]) or "inconclusive"

    def only(self, chosen: Sequence[bool]) -> Stays:
        """Return what both tests know by these of the counted alone."""
        return Stays(self.first.only(chosen), self.own.only(chosen), self.seconds)

    @property
    def calm(self) -> bool:
        """Return whether treated devices fail no more often than those of control, by either
        test."""
        return self.first.tests.log_worse <= 0 and self.own.tests.log_worse <= 0

    @property
    def worse(self) -> float:
        """The evidence of harm (a natural logarithm): of the test of first requests where that says
        so, else the larger; half of it where two share the chance of a false *harmful*."""
        first = self.first.tests.log_worse
        if not self.seconds:
            return first
        alone = self.first.verdict() == "harmful"
        return (first if alone else max(first, self.own.tests.log_worse)) - math.log(2)

    @property
    def not_worse(self) -> float:
        """The evidence of *not worse by δ* (a natural logarithm): the smaller of both."""
        first = self.first.tests.log_not_worse
        return min(first, self.own.tests.log_not_worse) if self.seconds else first

    def _look(self, device: str) -> None:
        if self.lost(device):
            self.own.fail(device)


def _both(first: Verdict | None, own: Verdict | None) -> Verdict | None:
    """Give one verdict of two: harmful by either, tolerated by both."""
    if "harmful" in {first, own}:
        return "harmful"
    return first if first == own else None
