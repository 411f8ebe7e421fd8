"""Allowances: how many devices this edge has treated, and for which it may still do so.

The control plane gives every edge a part of what an experiment may treat in all. A device is
counted *before* its stamped request goes on, under a lock, and never twice; so the number here is
never smaller than the number of devices that were treated, whatever crashes when.

An experiment whose allowance is used up enrols nobody any more, in *either* arm: to close one arm
alone would compare devices of different moments. Whoever is enrolled stays enrolled.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ldfi.fit.context import Arm
from ldfi.fit.rules import Rule

MAX_DEVICES: Final = 200_000
"""Enrolled devices that one process remembers, over all experiments: about 20 MB. When that many
are, nobody else is enrolled before an experiment ends."""

MAX_REPORT: Final = 4_000
"""Characters of a report; it travels in a URL."""


@dataclass(slots=True)
class _Enrolment:
    """The devices of one experiment, by mark."""

    members: int | None
    armed: bool = True
    reported: int = 0
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
    def urgent(self) -> bool:
        return not self.armed or (self.closed and self.used != self.reported)


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
                if not enrolment.armed and not enrolment.used:
                    self._forget(experiment)
            for experiment, limit in members.items():
                self._enrolments.setdefault(experiment, _Enrolment(limit)).members = limit

    def admit(self, experiment: str, arm: Arm, mark: int) -> bool:
        """Tell whether a device may be stamped; it is counted when it is admitted for the first
        time."""
        with self._lock:
            enrolment = self._enrolments.get(experiment)
            if enrolment is None or not enrolment.armed or enrolment.members == 0:
                return False
            devices = enrolment.devices[arm]
            if mark in devices:
                return True
            if enrolment.closed or self._remembered >= MAX_DEVICES:
                return False
            devices.add(mark)
            self._remembered += 1
            return True

    def report(self) -> dict[str, int]:
        """Count the distinct devices treated, by experiment; urgent ones first, as many as a URL
        holds."""
        with self._lock:
            pressing = sorted(self._enrolments.items(), key=lambda item: not item[1].urgent)
            report: dict[str, int] = {}
            room = MAX_REPORT
            for experiment, enrolment in pressing:
                if enrolment.used:
                    room -= len(f"{experiment}:{enrolment.used},")
                    if room < 0:
                        break
                    report[experiment] = enrolment.used
            return report

    def settle(self, report: Mapping[str, int]) -> None:
        """Forget what had left the lease before a report that the control plane now has."""
        with self._lock:
            for experiment, used in report.items():
                enrolment = self._enrolments.get(experiment)
                if enrolment is None:
                    continue
                enrolment.reported = used
                if not enrolment.armed:
                    self._forget(experiment)

    @property
    def urgent(self) -> bool:
        """Whether there is something the control plane should hear at once."""
        with self._lock:
            return any(enrolment.urgent for enrolment in self._enrolments.values())

    def _forget(self, experiment: str) -> None:
        self._remembered -= self._enrolments.pop(experiment).size
