"""Whether the fault of an experiment kills the processes that it hits.

It is a suspicion of its own, whatever devices saw: a caller may have a fallback for a service that
is gone, and still one request has taken a process from everybody. One death is enough, and nothing
is tried again to make sure: the next try would cost the next process.

Processes die of other things as well: they are replaced by a new version, by an autoscaler, by
trouble of their own. So a death counts where all of this holds

- a treated request had told that a fault is about to fire in that instance, and of nothing after
  (:mod:`ldfi.lineage.killed_process`): who was to carry nothing, or has told of the request to its
  end, died of something else;
- the instance was not heard of later: what was lost is a batch, then, and no process;
- more instances died under treated requests than under control's alone, in which nothing fires.

While a mark has come and its trace is not whole yet, nobody knows: the experiment waits for it, and
lets nobody else in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ldfi.fit.protocol.mark import Mark
from ldfi.lineage.killed_process import Death

KILLED: Final = "killed the process"

AWAITED_SECONDS: Final = 90.0
"""So long is waited for the trace of a mark: longer than any trace takes."""

LATER: Final = 1_000_000_000
"""Nanoseconds after its last mark from which on an instance was alive: what was under way beside
the treated request may have told of itself a moment later."""


@dataclass(slots=True)
class Instances:
    """What the processes that an experiment reaches have told of themselves.

    ``_awaited``: traces of which a mark has come, and since when. ``_heard``: when each instance
    was about to carry something, last (nanoseconds of its clock).
    """

    _awaited: dict[str, float] = field(default_factory=dict)
    _heard: dict[str, int] = field(default_factory=dict)
    _told: dict[str, tuple[Death, ...]] = field(default_factory=dict)
    """By trace. One that has grown since tells anew."""

    def mark(self, trace_id: str, mark: Mark, at: int, now: float) -> None:
        """Take in a mark, as it comes. ``at``: nanoseconds of its process; ``now``: our seconds."""
        self._heard[mark.instance] = max(at, self._heard.get(mark.instance, 0))
        if trace_id not in self._told:
            self._awaited.setdefault(trace_id, now)

    def settle(self, trace_id: str, deaths: Iterable[Death]) -> None:
        """Take the marks and deaths of a trace that is whole, or given up."""
        self._awaited.pop(trace_id, None)
        self._told[trace_id] = tuple(deaths)

    def awaited(self, now: float) -> bool:
        """Return whether the trace of a mark is still to come."""
        return any(now - since < AWAITED_SECONDS for since in self._awaited.values())

    def killed(self) -> dict[str, frozenset[str]]:
        """Return the services whose processes were killed, each with the points at which the fault
        was about to fire; empty where nothing speaks for that."""
        told = (each for deaths in self._told.values() for each in deaths)
        gone = [each for each in told if not self._lives(each)]
        treated = [each for each in gone if each.mark.arm == "treatment"]
        under = {each.mark.instance for each in treated}
        beside = {each.mark.instance for each in gone} - under
        if len(under) <= len(beside):
            return {}
        return {
            service: frozenset(each.mark.point for each in treated if each.service == service)
            for service in sorted({each.service for each in treated})
        }

    def points(self) -> frozenset[str]:
        """Return the points at which processes were killed."""
        return frozenset[str]().union(*self.killed().values())

    def _lives(self, death: Death) -> bool:
        return self._heard.get(death.mark.instance, 0) > death.at + LATER


def in_words(killed: Mapping[str, frozenset[str]]) -> str | None:
    """Say it to people; None where nothing was killed."""
    if not killed:
        return None
    return f"{KILLED}: {', '.join(killed)} told of nothing after the fault was about to fire"
