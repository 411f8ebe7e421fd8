"""Outcomes in the order in which their requests began, whoever was first to report.

A failure may be quicker to report than a success, or slower, and only outcomes that are
exchangeable may be fed to the tests. What comes out of order is put in its place, and the tests are
fed anew, from as they were shortly before it. For the same reason a device counts with its first
request, and not with the first that it reports: a later one is put off until nothing that began
earlier can come any more, or the first has come.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass, field
from typing import Final

from ldfi.experiments.domain.judging.sequential_tests import Tests, Verdict

Counted = tuple[int, str, bool, bool]
"""When a request began, its trace (so that no tie is broken by arm or outcome), whether it was
treated, whether it failed."""

EVERY: Final = 16
"""Outcomes after which the tests are kept as they are, to be gone back to."""
FEW: Final = 0.05
"""Share of devices that may be in a hurry: it is hardly they who decide."""
KEPT: Final = 64
"""How many of these are kept, the newest. What comes later than that is rare, and costs more."""


@dataclass(slots=True)
class Ordered:
    """``fresh``: tests that know nothing yet. ``patience``: seconds that a report may take.

    ``failures``: of the treated (True) and of control.
    """

    fresh: Tests
    patience: float = 0.0
    failures: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    unproved: set[str] = field(default_factory=set)
    """Traces of treated requests that count for *tolerated* only where they failed."""
    _tests: Tests = field(init=False)
    _counted: list[Counted] = field(default_factory=list)
    _fed: int = 0
    """How many of them the tests know, from the first on."""
    _kept: list[tuple[int, Tests]] = field(default_factory=list)
    """The tests as they were when they knew so many."""
    _of: dict[str, Counted] = field(default_factory=dict)
    """What each device counts with."""
    _hasty: set[str] = field(default_factory=set)
    """Devices that asked again within that patience."""
    _tolerated_since: float | None = None
    _owed: dict[str, tuple[Counted, float | None]] = field(default_factory=dict)
    """Device of whose first request nothing is known yet → the earliest of the others, and since
    when that is known."""

    def __post_init__(self) -> None:
        self._tests = self.fresh.copy()

    @property
    def tests(self) -> Tests:
        """The tests, which know all that was counted, in order."""
        while self._fed < len(self._counted):
            self._feed(self._tests, self._counted[self._fed])
            self._fed += 1
            if self._fed % EVERY == 0:
                self._kept.append((self._fed, self._tests.copy()))
                del self._kept[:-KEPT]
        return self._tests

    @property
    def owed(self) -> Set[str]:
        """Devices that were heard of, and not of their first request."""
        return self._owed.keys()

    def release(self, now: float) -> list[tuple[str, bool]]:
        """Count the outcomes that nothing earlier can precede any more. Returns the devices, and
        whether they are treated."""
        released = []
        for device, (counted, known) in list(self._owed.items()):
            since = now if known is None else known
            self._owed[device] = counted, since
            if now >= since + self.patience:
                self.take(device, counted)
                released.append((device, counted[2]))
        return released

    def take(self, device: str, counted: Counted, *, again: bool = False) -> bool:
        """Take an outcome to its place, unless the device counts with one that began earlier; say
        whether the device counts. ``again``: its first request was another one."""
        owed, since = self._owed.get(device, (counted, None))
        if again and device not in self._of:
            self._owed[device] = _counting(owed, counted), since
            return False
        self._owed.pop(device, None)
        self._put(device, counted)
        return True

    def of(self, device: str) -> Counted | None:
        """Return the outcome that a device counts with; None if it does not count yet."""
        return self._of.get(device)

    def fail(self, device: str) -> None:
        """Have a device that counts count as failed."""
        start, trace_id, treated, failed = before = self._of[device]
        if failed:
            return
        place = bisect(self._counted, before) - 1
        self._of[device] = self._counted[place] = start, trace_id, treated, True
        self.failures[treated] += 1
        self._go_back(place)

    def _put(self, device: str, counted: Counted) -> None:
        before = self._of.get(device)
        if before is not None:
            if before[1] != counted[1] and abs(counted[0] - before[0]) < self.patience * 1e9:
                self._hasty.add(device)
            counted = _counting(before, counted)
            if counted == before:
                return
            place = bisect(self._counted, before) - 1
            del self._counted[place]
            self.failures[before[2]] -= before[3]
            self._go_back(place)
        self._of[device] = counted
        place = bisect(self._counted, counted)
        self._counted.insert(place, counted)
        self.failures[counted[2]] += counted[3]
        self._go_back(place)

    @property
    def patient(self) -> bool:
        """Return whether devices wait for an answer before they ask again. Where more than a few do
        not, the first request of one that has reported may be under way."""
        return len(self._hasty) <= FEW * len(self._of)

    def fared(self, devices: Collection[str]) -> tuple[int, int]:
        """Count those of these devices that count, and those of them that did not fail."""
        found = [self._of[each] for each in devices if each in self._of]
        return len(found), sum(not failed for _, _, _, failed in found)

    def among(self, devices: Collection[str]) -> list[bool]:
        """Return for each that was counted, in order, whether it is of one of these devices."""
        theirs = {self._of[each] for each in devices if each in self._of}
        return [each in theirs for each in self._counted]

    def only(self, chosen: Iterable[bool]) -> Ordered:
        """Return what the tests know by these of the counted alone."""
        other = Ordered(self.fresh, self.patience, unproved=self.unproved)
        pairs = zip(self._counted, chosen, strict=True)
        other._counted = [counted for counted, chose in pairs if chose]
        return other

    def traces(self) -> list[str]:
        """List the traces of all that was counted, in the order in which the requests began."""
        return [trace_id for _, trace_id, _, _ in self._counted]

    def final(self, failing: Collection[str]) -> Verdict:
        """Return the last verdict as it were had the requests of these traces failed."""
        tests = self.fresh.copy()
        for start, trace_id, treated, failed in self._counted:
            self._feed(tests, (start, trace_id, treated, failed or trace_id in failing))
        return tests.final()

    def _feed(self, tests: Tests, counted: Counted) -> None:
        _, trace_id, treated, failed = counted
        tests.add(treated=treated, failed=failed, proved=trace_id not in self.unproved)

    def verdict(self) -> Verdict | None:
        """Return the verdict of all that was counted."""
        return self.tests.verdict()

    @property
    def calm(self) -> bool:
        """Return whether it looks tolerated, and is only waited for those that have not
        reported."""
        return self._tolerated_since is not None

    def enough(
        self, now: float, verdict: Verdict | None, *, everybody: bool, patience: float
    ) -> bool:
        """Return whether there is evidence enough to stop. ``verdict``: of all that is known so
        far.

        So much harm, among those who have reported, is. *Tolerated* has to last until everybody has
        reported who had begun when it was said first, or has had ``patience`` seconds to.
        """
        if verdict != "tolerated":
            self._tolerated_since = None
            return verdict is not None
        self._tolerated_since = now if self._tolerated_since is None else self._tolerated_since
        return everybody or now >= self._tolerated_since + patience

    def doubt(self) -> None:
        """Restart the time for which *tolerated* has to last."""
        self._tolerated_since = None

    def _go_back(self, place: int) -> None:
        """Reset the tests to what was counted before ``place``."""
        if place >= self._fed:
            return
        while self._kept and self._kept[-1][0] > place:
            self._kept.pop()
        self._fed, known = self._kept[-1] if self._kept else (0, self.fresh)
        self._tests = known.copy()


def _counting(one: Counted, other: Counted) -> Counted:
    """Return the outcome that counts of two of a device: that of the request that began earlier,
    and of one request the worse."""
    return max(one, other) if one[:2] == other[:2] else min(one, other)
