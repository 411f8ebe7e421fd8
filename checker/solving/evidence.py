"""What the runs of a certificate show: clauses, sets survived as a whole, and failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ldfi.checker.solving.effort import Effort
from ldfi.checker.solving.language import Vocabulary, members


@dataclass(slots=True)
class ShownSafe:
    """Whatever does not touch ``points`` is survived. ``failed``: what failed in its runs."""

    position: int
    failed: int
    points: int
    natural: bool = False
    """Whether one of its runs was observed."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A run as it is taken in: its number, what failed in it, and what it relied on if known."""

    number: int
    run: dict[str, Any]
    failed: Sequence[str]
    points: int
    support: int | None

    @property
    def injected(self) -> frozenset[str]:
        """Return the faults that were injected in it; empty if none were."""
        return frozenset(self.run.get("injected", ()))


def firm_only(data: dict[str, Any]) -> bool:
    """Return whether the firm runs say less, or something else, than all of them."""
    return any(
        run.get("firm", True) is not True or run.get("among", "both") != "both"
        for run in data["evidence"]
    )


class World:
    """What all runs show, or the firm ones by themselves.

    ``clauses``: one for each set of points that failed together: the union of what those runs
    relied on, less what failed, and of the cautions about them. ``clause_of``: by the number of a
    run. ``survived``: point faults of a good run of which nobody knows what it relied on, by
    number. ``bad``: the failed runs, by number.
    """

    def __init__(
        self, language: Vocabulary, data: dict[str, Any], effort: Effort, *, firm: bool
    ) -> None:
        self.language, self.effort, self.firm = language, effort, firm
        self.monotone: bool = data["axioms"]["monotone"]
        self.deterministic: bool = data["axioms"]["deterministic"]
        self.clauses: list[ShownSafe] = []
        self.clause_of: dict[int, ShownSafe] = {}
        self.survived: dict[int, int] = {}
        self.bad: dict[int, Reading] = {}
        self.readings: list[Reading] = []
        self._groups: dict[object, ShownSafe] = {}
        self._hits: dict[int, int] = {}
        """Per point fault the clauses, by position, that it touches."""
        self._failed: set[int] = set()
        self._cautions: dict[object, int] = {}
        for run in data["evidence"]:
            if run["origin"] == "caution":
                self._heed(run)
        for run in data["evidence"]:
            if run["origin"] != "caution":
                self._read(run)

    def _heed(self, run: dict[str, Any]) -> None:
        if run["among"] in ("both", "firm" if self.firm else "all"):
            failed = self.language.expand(run["failed"])
            points = self.language.expand(run["support"]) & ~failed
            key = self._key(failed, points)
            self._cautions[key] = self._cautions.get(key, 0) | points

    def _read(self, run: dict[str, Any]) -> None:
        failed = run["failed"]
        if self.firm:
            firm = run.get("firm", True)
            if firm is False:
                return
            failed = failed if firm is True else firm
        support = None if run["support"] is None else self.language.expand(run["support"])
        reading = Reading(run["number"], run, failed, self.language.expand(failed), support)
        self.readings.append(reading)

    def _key(self, failed: int, points: int) -> object:
        return (failed, points) if self.deterministic else failed

    def learned(self) -> Iterator[Reading]:
        """Take in one run after the other, and say which one is next before it is."""
        for reading in self.readings:
            yield reading
            self._learn(reading)

    def learn_all(self) -> None:
        """Take in whatever was not yet."""
        for _ in self.learned():
            pass

    def _learn(self, reading: Reading) -> None:
        run, good = reading.run, reading.run.get("good", True)
        self.effort.spend(1)
        if good and reading.support is not None:
            self._add(reading, reading.support & ~reading.points)
        elif good is not None and (reading.failed or not run["injected"]):
            if good:
                self.survived[reading.number] = reading.points & ~self.language.down
            else:
                self.bad[reading.number] = reading
                self._failed.add(reading.points)

    def _add(self, reading: Reading, points: int) -> None:
        key = self._key(reading.points, points)
        clause = self._groups.get(key)
        if clause is None:
            position = len(self.clauses)
            clause = self._groups[key] = ShownSafe(position, reading.points, 0)
            self.clauses.append(clause)
            points |= self._cautions.get(key, 0)
        news = points & ~clause.points
        self.effort.spend(news.bit_count())
        for point in members(news):
            self._hits[point] = self._hits.get(point, 0) | 1 << clause.position
        clause.points |= points
        clause.natural = clause.natural or reading.run["origin"] == "observed"
        self.clause_of[reading.number] = clause

    def binds(self, clause: ShownSafe, touched: int) -> bool:
        """Return whether a clause proves that these, with what is down, are survived."""
        return not clause.points & touched and (self.monotone or not clause.failed & ~touched)

    def covers(self, survived: int, touched: int) -> bool:
        """Return whether a set survived as a whole says so of these."""
        alone = touched & ~self.language.down
        return alone == survived or (self.monotone and not alone & ~survived)

    def shows(self, number: int, touched: int) -> bool:
        """Return whether this run shows that these are survived."""
        self.effort.spend(1)
        if number in self.clause_of:
            return self.binds(self.clause_of[number], touched)
        return number in self.survived and self.covers(self.survived[number], touched)

    def safe(self, touched: int) -> bool:
        """Return whether any run taken in so far shows that these are survived."""
        self.effort.spend(1 + touched.bit_count() + len(self.survived))
        if any(self.covers(each, touched) for each in self.survived.values()):
            return True
        hit = 0
        for point in members(touched):
            hit |= self._hits.get(point, 0)
        missed = (1 << len(self.clauses)) - 1 & ~hit
        if self.monotone or not missed:
            return missed != 0
        self.effort.spend(missed.bit_count())
        return any(self.binds(self.clauses[each], touched) for each in members(missed))

    def fails(self, touched: int) -> bool:
        """Return whether any run taken in so far failed of these, or of less."""
        self.effort.spend(1 + len(self._failed))
        return any(not each & ~touched for each in self._failed)
