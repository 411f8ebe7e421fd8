"""Allowances: how many devices this edge has treated, and for which it may still do so.

The control plane gives an edge a part of what an experiment may treat in all, or lets it ask for
each device (:mod:`ldfi.fit.allowance_requests`). A device is counted *before* its stamped request
goes on, under a lock, and never twice; so the number here is never smaller than the number of
devices that were treated, whatever crashes when.

An experiment whose allowance is used up enrols nobody any more without asking, in *either* arm: to
close one arm alone would compare devices of different moments. Whoever is enrolled stays enrolled.

Allowances are given bit by bit, as it becomes known how those before have fared, and to the edges
that have somebody to treat: an edge that cannot ask, and had to turn a device away, says so.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.rules import Rule

MAX_DEVICES: Final = 200_000
"""Enrolled devices that one process remembers, over all experiments: about 20 MB. When that many
are, nobody else is enrolled before an experiment ends."""

MAX_REPORT: Final = 4_000
"""Characters of a report; it travels in a URL."""

REFUSED_SECONDS: Final = 0.2
"""For how long no device of an experiment is asked for after one was refused."""


class Numbers:
    """Numbers of asks, from 1, and up to which of them all have come to an end."""

    def __init__(self) -> None:
        self._last = 0
        self._open: set[int] = set()

    def begin(self) -> int:
        """Take the next number."""
        self._last += 1
        self._open.add(self._last)
        return self._last

    def end(self, number: int) -> None:
        """Note that an ask has its answer, or will never be waited for again."""
        self._open.discard(number)

    @property
    def last(self) -> int:
        """The number taken last."""
        return self._last

    @property
    def settled(self) -> int:
        """The number up to which every ask has come to an end."""
        return min(self._open, default=self._last + 1) - 1


class Enrolled(NamedTuple):
    """How many distinct devices of one experiment are enrolled here, by arm; ``wants``: whether one
    was turned away that would have been treated."""

    treatment: int
    control: int = 0
    wants: bool = False


@dataclass(slots=True)
class _Enrolment:
    """The devices of one experiment, by mark."""

    members: int | None
    armed: bool = True
    reported: int = 0
    wants: bool = False
    told: bool = False
    """Whether the control plane knows that it wants more."""
    frozen: bool = False
    """Whether a report was written after it had left the lease."""
    devices: dict[Arm, set[int]] = field(
        default_factory=lambda: {"treatment": set(), "control": set()}
    )

    @property
    def used(self) -> int:
        return len(self.devices["treatment"])

    @property
    def closed(self) -> bool:
        return self.members is not None and self.used >= self.members

    @property
    def size(self) -> int:
        return self.used + len(self.devices["control"])

    @property
    def enrolled(self) -> Enrolled:
        return Enrolled(self.used, self.size - self.used, self.wants)

    @property
    def urgent(self) -> bool:
        if not self.armed:
            return True
        if self.closed and self.members and self.used != self.reported:
            return True
        return self.wants and not self.told

    def allow(self, members: int | None) -> None:
        if members != self.members:
            self.members, self.wants, self.told = members, False, False


class Allowances:
    """What one edge may treat, and has treated. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._enrolments: dict[str, _Enrolment] = {}
        self._remembered = 0

    def renew(self, rules: Iterable[Rule]) -> None:
        """Take over the rules of a new lease. Those that have left are frozen until reported."""
        members = {rule.experiment: rule.members for rule in rules}
        with self._lock:
            for experiment, enrolment in list(self._enrolments.items()):
                enrolment.armed = experiment in members
                if not enrolment.armed and not enrolment.size:
                    self._forget(experiment)
            for experiment, limit in members.items():
                self._enrolments.setdefault(experiment, _Enrolment(limit)).allow(limit)

    def knows(self, experiment: str, arm: Arm, mark: int) -> bool:
        """Return whether a device has been admitted already."""
        enrolment = self._enrolments.get(experiment)
        return enrolment is not None and mark in enrolment.devices[arm]

    def closed(self, experiment: str) -> bool:
        """Return whether nobody new may be enrolled here without asking, in either arm."""
        enrolment = self._enrolments.get(experiment)
        return enrolment is None or enrolment.closed

    def admit(self, experiment: str, arm: Arm, mark: int, *, granted: bool = False) -> bool:
        """Return whether a device may be stamped; it is counted when it is admitted for the first
        time. ``granted``: it was asked for."""
        with self._lock:
            enrolment = self._enrolments.get(experiment)
            if enrolment is None or not enrolment.armed:
                return False
            devices = enrolment.devices[arm]
            if mark in devices:
                return True
            closed = enrolment.closed and not granted
            if closed or self._remembered >= MAX_DEVICES:
                enrolment.wants |= closed and arm == "treatment"
                return False
            devices.add(mark)
            self._remembered += 1
            return True

    def report(self) -> dict[str, Enrolled]:
        """Count the distinct devices enrolled, by experiment; urgent ones first, as many as a URL
        holds."""
        with self._lock:
            pressing = sorted(self._enrolments.items(), key=lambda item: not item[1].urgent)
            report: dict[str, Enrolled] = {}
            room = MAX_REPORT
            for experiment, enrolment in pressing:
                enrolment.frozen = not enrolment.armed
                if enrolment.size or enrolment.wants:
                    room -= len("".join(written({experiment: enrolment.enrolled}).values())) + 3
                    if room < 0:
                        break
                    report[experiment] = enrolment.enrolled
            return report

    def settle(self, report: Mapping[str, Enrolled]) -> None:
        """Forget what had left the lease before a report that the control plane now has."""
        with self._lock:
            for experiment, enrolled in report.items():
                enrolment = self._enrolments.get(experiment)
                if enrolment is None:
                    continue
                enrolment.reported = enrolled.treatment
                enrolment.told = enrolled.wants
                if enrolment.frozen and not enrolment.armed:
                    self._forget(experiment)

    @property
    def busy(self) -> bool:
        """Return whether there is a lease to keep, or something to tell: somebody is enrolled, or
        may be without asking."""
        with self._lock:
            return any(
                each.size or each.wants or (each.armed and each.members != 0)
                for each in self._enrolments.values()
            )

    @property
    def urgent(self) -> bool:
        """Return whether there is something the control plane should hear at once."""
        with self._lock:
            return any(enrolment.urgent for enrolment in self._enrolments.values())

    def _forget(self, experiment: str) -> None:
        self._remembered -= self._enrolments.pop(experiment).size


def written(report: Mapping[str, Enrolled]) -> dict[str, str]:
    """Write a report as parameters of a URL. ``used`` alone is what edges once sent."""
    counts = report.items()
    return {
        "used": ",".join(f"{name}:{each.treatment}" for name, each in counts if each.treatment),
        "control": ",".join(f"{name}:{each.control}" for name, each in counts if each.control),
        "wants": ",".join(name for name, each in counts if each.wants),
    }
