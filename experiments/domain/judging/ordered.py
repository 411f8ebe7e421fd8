"""Outcomes in the order in which their requests began, whoever was first to report.

A failure may be quicker to report than a success, or slower, and only outcomes that are
exchangeable may be fed to the tests. What comes out of order is put in its place, and the tests are
fed anew.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field

from ldfi.experiments.domain.judging.verdict import Tests, Verdict

Counted = tuple[int, str, bool, bool]
"""When a request began, its trace (so that no tie is broken by arm or outcome), whether it was
treated, whether it failed."""


@dataclass(slots=True)
class Ordered:
    """``fresh`` makes tests that know nothing yet."""

    fresh: Callable[[], Tests]
    tests: Tests = field(init=False)
    _counted: list[Counted] = field(default_factory=list)
    _current: bool = True
    """Whether the tests know all that was counted, in order."""
    _tolerated_since: float | None = None

    def __post_init__(self) -> None:
        self.tests = self.fresh()

    def take(self, counted: Counted) -> None:
        """Take an outcome to its place."""
        if self._current and (not self._counted or self._counted[-1] < counted):
            self.tests.add(treated=counted[2], failed=counted[3])
        else:
            self._current = False
        insort(self._counted, counted)

    def verdict(self) -> Verdict | None:
        """Give the verdict of all that was counted."""
        if not self._current:
            self.tests, self._current = self.fresh(), True
            for _, _, treated, failed in self._counted:
                self.tests.add(treated=treated, failed=failed)
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
