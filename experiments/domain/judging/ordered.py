"""Outcomes in the order in which their requests began, whoever was first to report.

A failure may be quicker to report than a success, or slower, and only outcomes that are
exchangeable may be fed to the tests. What comes out of order is put in its place, and the tests are
fed anew, from as they were shortly before it.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, field
from typing import Final

from ldfi.experiments.domain.judging.verdict import Tests, Verdict

Counted = tuple[int, str, bool, bool]
"""When a request began, its trace (so that no tie is broken by arm or outcome), whether it was
treated, whether it failed."""

EVERY: Final = 16
"""Outcomes after which the tests are kept as they are, to be gone back to."""
KEPT: Final = 64
"""How many of these are kept, the newest. What comes later than that is rare, and costs more."""


@dataclass(slots=True)
class Ordered:
    """``fresh``: tests that know nothing yet."""

    fresh: Tests
    _tests: Tests = field(init=False)
    _counted: list[Counted] = field(default_factory=list)
    _fed: int = 0
    """How many of them the tests know, from the first on."""
    _kept: list[tuple[int, Tests]] = field(default_factory=list)
    """The tests as they were when they knew so many."""
    _tolerated_since: float | None = None

    def __post_init__(self) -> None:
        self._tests = self.fresh.copy()

    @property
    def tests(self) -> Tests:
        """The tests, which know all that was counted, in order."""
        while self._fed < len(self._counted):
            _, _, treated, failed = self._counted[self._fed]
            self._tests.add(treated=treated, failed=failed)
            self._fed += 1
            if self._fed % EVERY == 0:
                self._kept.append((self._fed, self._tests.copy()))
                del self._kept[:-KEPT]
        return self._tests

    def take(self, counted: Counted) -> None:
        """Take an outcome to its place."""
        place = bisect(self._counted, counted)
        self._counted.insert(place, counted)
        if place < self._fed:
            self._go_back(place)

    def verdict(self) -> Verdict | None:
        """Give the verdict of all that was counted."""
        return self.tests.verdict()

    @property
    def calm(self) -> bool:
        """Whether it looks tolerated, and is only waited for those that have not reported."""
        return self._tolerated_since is not None

    def enough(self, now: float, *, everybody: bool, patience: float) -> bool:
        """Say whether there is evidence enough to stop.

        So much harm, among those who have reported, is. *Tolerated* has to last until everybody has
        reported who had begun when it was said first, or has had ``patience`` seconds to.
        """
        verdict = self.verdict()
        if verdict != "tolerated":
            self._tolerated_since = None
            return verdict is not None
        self._tolerated_since = now if self._tolerated_since is None else self._tolerated_since
        return everybody or now >= self._tolerated_since + patience

    def _go_back(self, place: int) -> None:
        """Have the tests know no more than what was counted before ``place``."""
        while self._kept and self._kept[-1][0] > place:
            self._kept.pop()
        self._fed, known = self._kept[-1] if self._kept else (0, self.fresh)
        self._tests = known.copy()
