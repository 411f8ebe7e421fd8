"""Whether requests still reach what is injected into, so that silence is not taken for health.

Only requests that reach the point are compared. When the first failures open a circuit breaker,
those that come after do not reach it any more: they count in neither arm, however they end, and
what is left to compare are the few that came before. So *tolerated* is refused where fewer requests
reach the point in the later part of an experiment than in its first part, or than before it.

A device counts once in each part, with its first request and with its last one, whatever came of
them. Which shares differ is told by Fisher's exact test.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ldfi.experiments.domain.judging.comparison import differ
from ldfi.fit.protocol.context import Arm

LEVEL: Final = 0.01
"""How seldom equal shares may be taken for different ones: there are four comparisons, of which
only those count in which fewer requests reach the point than did."""


class Share(NamedTuple):
    """``reached`` of ``total`` requests."""

    reached: int
    total: int

    def __str__(self) -> str:
        return f"{self.reached} of {self.total}"

    def fewer_than(self, other: Share) -> bool:
        """Return whether this is clearly a smaller share than the other."""
        return self.reached * other.total < other.reached * self.total and differ(
            self.reached, self.total, other.reached, other.total, LEVEL
        )


class _Request(NamedTuple):
    start: int
    trace_id: str
    reached: bool


@dataclass(slots=True)
class Reachability:
    """``before``: of the class's requests when the experiment was armed; None: nobody knows."""

    before: Share | None = None
    _first: dict[Arm, dict[str, _Request]] = field(
        default_factory=lambda: {"treatment": {}, "control": {}}
    )
    _last: dict[Arm, dict[str, _Request]] = field(
        default_factory=lambda: {"treatment": {}, "control": {}}
    )

    _heard: dict[Arm, dict[str, set[int]]] = field(
        default_factory=lambda: {"treatment": {}, "control": {}}
    )
    """When the first request of each device began, where it was heard of: at each edge one."""

    def add(
        self,
        arm: Arm,
        device: str,
        start: int,
        trace_id: str,
        *,
        reached: bool,
        again: bool = False,
    ) -> None:
        """Take in one request. ``start``: nanoseconds since the epoch. ``again``: the device had
        sent another one before."""
        request = _Request(start, trace_id, reached)
        if not again:
            self._heard[arm].setdefault(device, set()).add(start)
        first, last = self._first[arm], self._last[arm]
        first[device] = min(request, first.get(device, request))
        last[device] = max(request, last.get(device, request))

    def heard(self, arm: Arm, until: float = math.inf) -> set[str]:
        """Return the devices of whose first request was heard, and that it began by then (Unix
        seconds). Who crashed with it, and reports a later one, was silent."""
        return {each for each, starts in self._heard[arm].items() if min(starts) <= until * 1e9}

    def counted_again(self, arm: Arm, until: float = math.inf) -> int:
        """Count how often edges have let in a device that another one had let in already: each of
        them counts it, and says nothing of who it is."""
        found = (sum(at <= until * 1e9 for at in starts) for starts in self._heard[arm].values())
        return sum(max(0, each - 1) for each in found)

    def parts(self, arm: Arm) -> tuple[Share, Share]:
        """Return how many requests reached the point in the first part, and in the later one."""
        first, last = self._first[arm].values(), self._last[arm].values()
        requests = sorted({*first, *last})
        if not requests:
            return Share(0, 0), Share(0, 0)
        middle = requests[len(requests) // 2]
        return (
            _share(each for each in first if each < middle),
            _share(each for each in last if each >= middle),
        )

    def fallen(self) -> str | None:
        """Say in which arm requests have stopped reaching the point; None where in neither."""
        return next(self._falls(), None)

    def _falls(self) -> Iterator[str]:
        for arm, name in _ARMS:
            early, late = self.parts(arm)
            for then, share in (("before the experiment", self.before), ("at first", early)):
                if share is not None and late.fewer_than(share):
                    yield (
                        f"{name} requests stopped reaching the point: {late} did in the later part "
                        f"of the experiment, {share} {then}"
                    )


_ARMS: Final[tuple[tuple[Arm, str], ...]] = (("treatment", "treated"), ("control", "control"))


def _share(requests: Iterable[_Request]) -> Share:
    told = [each.reached for each in requests]
    return Share(sum(told), len(told))
