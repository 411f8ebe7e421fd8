"""The failure equation: what the runs so far say about every set of faults.

A good run says: whatever is disjoint from its support is safe. So a set of faults can only be
harmful if it hits the support of every good run (lineage-driven fault injection: Alvaro, Rosen,
Hellerstein, SIGMOD 2015). A bad run says: whatever contains the faults that fired fails.

*Variety is not redundancy.* Two runs in which the same points failed may differ because one of them
found a cache warm; neither had an alternative. So good runs are grouped by what failed in them, and
a group's clause is the union of its supports, less what failed. A clause can therefore only widen.

Both statements assume that more faults never help. Where that is known to be wrong
(``monotone=False``: the outcome is the absence of something, and a fault may be what keeps it
away), a good run binds only the supersets of what failed in it, which makes far more experiments
necessary. :meth:`Equation.violations` holds what was seen
to contradict that; a failure that was seen outranks a safety that was inferred.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from ldfi.solver.bits import mask_of, members, without_supersets
from ldfi.solver.language import Language
from ldfi.solver.order import Fault, Faults
from ldfi.solver.runs import Origin, Run


@dataclass(slots=True)
class GoodRun:
    """A distinct shape of good run.

    ``support`` None: the run was good, but what it relied on is not known. Origin ``caution``: what
    a clause holds besides what its runs relied on; where there is no such run, it says nothing.
    """

    failed: Faults
    support: Faults | None
    origin: Origin
    count: int = 0


@dataclass(slots=True)
class BadRun:
    """A distinct set of faults that fired in failed runs."""

    fired: Faults


@dataclass(frozen=True, slots=True)
class Violation:
    """Two runs that cannot both be if more faults never help."""

    kind: Literal["superset of a failing set survived", "known-safe set failed"]
    faults: Faults


class Equation:
    """All evidence of one request class, and the clauses it amounts to."""

    def __init__(
        self, language: Language, down: Iterable[Fault], *, deterministic: bool, monotone: bool
    ) -> None:
        self.language = language
        self.deterministic = deterministic
        self.monotone = monotone
        self.down = language.expand(frozenset(down))
        self.good: dict[tuple[Faults, Faults | None, Origin], GoodRun] = {}
        self.bad: dict[Faults, BadRun] = {}
        self.clauses: list[int] = []
        self.conditions: list[int] = []
        """Per clause what failed in its runs; without monotonicity it binds only supersets."""
        self.hits: dict[int, int] = {}
        """Per point fault, the mask of the clauses (by position) that contain it."""
        self.satisfied = 0
        """The clauses hit by what is down."""
        self.failing: list[int] = []
        self.closed: set[int] = set()
        """Where more faults may help: expansions seen to be survived in runs whose support is not
        known, which prove themselves alone. Else such a run is a clause."""
        self.version = 0
        self._position: dict[tuple[int, int], int] = {}
        self._cautions: dict[tuple[int, int], int] = {}
        """What is to join clauses that do not exist yet."""
        self._unbounded: dict[int, int] = {}
        """Clauses (by position) of runs whose support is not known, and what failed in these."""
        self._down = frozenset(down)
        self._translated = language.version
        self._points = 0
        """How many names were known when those clauses were written."""

    def copy(self, language: Language) -> Equation:
        """Return a copy that shares nothing with this one, its language included."""
        other = Equation(
            language, self._down, deterministic=self.deterministic, monotone=self.monotone
        )
        other.good = {key: replace(run) for key, run in self.good.items()}
        other.bad = dict(self.bad)
        other.clauses, other.conditions = list(self.clauses), list(self.conditions)
        other.hits, other.satisfied = dict(self.hits), self.satisfied
        other.failing, other.closed = list(self.failing), set(self.closed)
        other._position, other._unbounded = dict(self._position), dict(self._unbounded)
        other._cautions, other._translated = dict(self._cautions), self._translated
        other.version, other._points = self.version, self._points
        return other

    def add_good(self, failed: Faults, support: Faults | None, origin: Origin) -> None:
        """Learn from a good run in which ``failed`` failed, by nature or by injection."""
        if (failed, support, origin) not in self.good:
            run = self.good[failed, support, origin] = GoodRun(failed, support, origin)
            self.refresh()
            self._add_clause(run)
        self.good[failed, support, origin].count += 1

    def add_bad(self, fired: Faults) -> None:
        """Learn from a bad run in which ``fired`` fired."""
        if fired not in self.bad:
            self.bad[fired] = BadRun(fired)
            self.refresh()
            self._block(self.language.expand(fired))

    def learn(self, run: Run) -> None:
        """Learn from a run whatever follows from it."""
        if not run.teaches:
            return
        if run.good:
            self.add_good(run.failed, run.support, run.origin)
        else:
            self.add_bad(run.failed)

    def clause_of(self, run: Run) -> int | None:
        """Return the position of the clause that this run is part of; None if there is none."""
        if not run.teaches or not run.good:
            return None
        if run.support is None:
            failed = self.language.expand(run.failed) | self.down
            return next((at for at, each in self._unbounded.items() if each == failed), None)
        return self._position.get(self._key(GoodRun(run.failed, run.support, run.origin)))

    def is_safe(self, expansion: int) -> bool:
        """Return whether some good run proves that these point faults are survived."""
        touched = expansion | self.down
        alone = expansion & ~self.down
        return alone in self.closed or self.missed(touched) != 0

    def missed(self, touched: int) -> int:
        """Return the clauses (by position) that bind these point faults and are not hit by them."""
        hit = self.satisfied
        for point in members(touched):
            hit |= self.hits.get(point, 0)
        missed = (1 << len(self.clauses)) - 1 & ~hit
        if self.monotone or not missed:
            return missed
        return mask_of(
            position for position in members(missed) if not self.conditions[position] & ~touched
        )

    def survivals(self, expansion: int) -> set[Faults]:
        """Return the failures of each good run that proves these point faults to be survived."""
        alone, missed = expansion & ~self.down, self.missed(expansion | self.down)
        keys = {key for key, position in self._position.items() if missed >> position & 1}
        shown = set()
        for run in self.good.values():
            if run.support is not None:
                safe = bool(keys) and self._key(run) in keys
            else:
                closed = self.language.expand(run.failed) & ~self.down
                safe = alone == closed or (self.monotone and not alone & ~closed)
            if safe:
                shown.add(run.failed)
        return shown

    def is_failing(self, expansion: int) -> bool:
        """Return whether these point faults contain a set that was seen to fail."""
        touched = expansion | self.down
        return any(known & touched == known for known in self.failing)

    def is_open(self, expansion: int) -> bool:
        """Return whether it is unknown if these point faults are survived."""
        return not self.is_failing(expansion) and not self.is_safe(expansion)

    def natural_clauses(self) -> list[int]:
        """Return the clauses that unperturbed requests alone make."""
        clauses: dict[tuple[int, int], int] = {}
        shown = set()
        for run in self.good.values():
            if run.support is not None and run.origin != "injected":
                key = self._key(run)
                support = self.language.expand(run.support) & ~key[0]
                clauses[key] = clauses.get(key, 0) | support
                if run.origin == "observed":
                    shown.add(key)
        return [clause for key, clause in clauses.items() if key in shown]

    def doubtful(self) -> list[Faults]:
        """Return sets that were seen to fail although a good run proves them safe."""
        return [fired for fired in self.bad if self.is_safe(self.language.expand(fired))]

    def interacting(self) -> int:
        """Return the faults of doubtful sets: something else keeps them from hurting."""
        mask = 0
        for fired in self.doubtful():
            mask |= self.language.variables(fired) | self.language.expand(fired)
        return mask

    def violations(self) -> list[Violation]:
        """Return violations of "more faults never help": one for each doubtful set."""
        found = []
        for doubtful in self.doubtful():
            fired = self.language.expand(doubtful)
            over = [
                good.failed
                for good in self.good.values()
                if good.origin != "caution"
                and not fired & ~(self.language.expand(good.failed) | self.down)
            ]
            if over and self.monotone:
                found.append(Violation("superset of a failing set survived", over[0]))
            else:
                found.append(Violation("known-safe set failed", doubtful))
        return found

    @property
    def state(self) -> tuple[int, ...]:
        """Return a value that changes whenever something is learned or restricted."""
        return self.version, *self.language.state

    def refresh(self) -> None:
        """Rebuild all clauses if domains or implications have changed."""
        if self._translated == self.language.version:
            self._learn_points()
            return
        self._translated = self.language.version
        self.down = self.language.expand(self._down)
        self.clauses, self.conditions, self.hits, self._position = [], [], {}, {}
        self.satisfied, self._unbounded = 0, {}
        self.closed = set()
        self._cautions = {}
        for run in self.good.values():
            self._add_clause(run)
        self.failing = []
        for fired in self.bad:
            self._block(self.language.expand(fired))
        self.version += 1

    def _learn_points(self) -> None:
        """Add new faults to the clauses of runs whose support is not known."""
        known, self._points = self._points, len(self.language.names)
        news = (1 << self._points) - (1 << known)
        if news and self._unbounded:
            self.version += 1
            for position, failed in self._unbounded.items():
                self._widen(position, news & ~failed)

    def _key(self, run: GoodRun) -> tuple[int, int]:
        failed = self.language.expand(run.failed)
        support = self.language.expand(run.support or ()) if self.deterministic else 0
        return failed, support & ~failed

    def _add_clause(self, run: GoodRun) -> None:
        failed = self.language.expand(run.failed)
        self.version += 1
        if run.support is None:
            self._close(failed | self.down)
            return
        key, holds = self._key(run), self.language.expand(run.support) & ~failed
        position = self._position.get(key)
        if position is None and run.origin == "caution":
            self._cautions[key] = self._cautions.get(key, 0) | holds
            return
        if position is None:
            position = self._position[key] = self._new_clause(failed)
            holds |= self._cautions.pop(key, 0)
        self._widen(position, holds)

    def _close(self, failed: int) -> None:
        """Learn from a good run whose support is not known: only what failed in it is closed.

        It may have relied on everything else. Where more faults never help, that is a clause like
        any other, which widens with every fault that becomes known.
        """
        if not self.monotone:
            self.closed.add(failed & ~self.down)
        elif failed not in self._unbounded.values():
            self._learn_points()
            position = self._new_clause(failed)
            self._unbounded[position] = failed
            self._widen(position, (1 << self._points) - 1 & ~failed)

    def _new_clause(self, failed: int) -> int:
        self.clauses.append(0)
        self.conditions.append(failed)
        return len(self.clauses) - 1

    def _widen(self, position: int, points: int) -> None:
        news = points & ~self.clauses[position]
        self.clauses[position] |= news
        for point in members(news):
            self.hits[point] = self.hits.get(point, 0) | 1 << position
        if self.clauses[position] & self.down:
            self.satisfied |= 1 << position

    def _block(self, expansion: int) -> None:
        self.version += 1
        self.failing = without_supersets([*self.failing, expansion])
