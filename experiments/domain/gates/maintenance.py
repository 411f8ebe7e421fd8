"""Maintenance windows: while something is being upgraded, its redundancy is gone; leave it alone.

A window has an owner, a reason and an end. It ends by itself, so that a forgotten one does not
switch experiments off for good; whoever needs longer opens another one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ldfi.errors import InvalidMaintenance
from ldfi.experiments.domain.judging.bystanders import Bystanders
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.experiments.domain.traffic.patterns import matching, names_of
from ldfi.experiments.domain.traffic.vital_signs import Sign

EVERYTHING = "everything"


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A window from ``opened_at`` to ``until`` (or ``closed_at``, if earlier), in Unix seconds.

    ``down``: patterns of points, services, systems or fault domains (see
    :mod:`ldfi.experiments.domain.traffic.patterns`); empty pauses everything.
    Raises :class:`InvalidMaintenance`.
    """

    id: str
    owner: str
    reason: str
    down: tuple[str, ...]
    opened_at: float
    until: float
    closed_at: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("owner", self.owner), ("reason", self.reason)):
            if not value.strip():
                raise InvalidMaintenance(f"a maintenance window needs its {name}, not {value!r}")
        if not self.opened_at < self.until < float("inf"):
            raise InvalidMaintenance(
                f"a maintenance window ends after it opens: {self.until} is not an end for one "
                f"opened at {self.opened_at} (Unix seconds)"
            )
        if not all(pattern.strip() for pattern in self.down):
            raise InvalidMaintenance(
                f"{self.down!r} holds an empty pattern; name what is down, or nothing for all"
            )

    @property
    def seconds(self) -> float:
        """Return how long it was to stay open."""
        return self.until - self.opened_at

    def active(self, now: float) -> bool:
        """Return whether it is open."""
        end = self.until if self.closed_at is None else min(self.until, self.closed_at)
        return self.opened_at <= now < end

    def touches(self, points: Iterable[str], callees: Mapping[str, str]) -> str | None:
        """Find the name that is down and that one of the points goes by; None where none does.

        ``callees``: point → the service, system or domain that answers there. Says nothing of time:
        see :meth:`active`.
        """
        if not self.down:
            return EVERYTHING
        return matching(self.down, (name for point in points for name in names_of(point, callees)))


# A step that was let through, watched: do those suffer who call what it takes down?
#
# The same test watches them that watches bystanders of experiments: each outcome of a class is
# weighed by how much likelier it is if failures have become more frequent
# (:mod:`ldfi.experiments.domain.judging.bystanders`). It is stricter the more requests are to be
# expected before the window ends, so that one step in a hundred at most is stopped by chance.

WORSE: Final = 0.05
"""By how much more requests must fail than before to count as harm, as a share of all."""
CHANCE: Final = 0.01
"""How often a step may be said to hurt that does not."""
FEWEST: Final = 1_000
"""Requests that are expected at least."""


@dataclass(slots=True)
class Step:
    """What a maintenance window takes down. ``classes``: those that it touches, by name."""

    window: Maintenance
    classes: dict[str, Bystanders] = field(default_factory=dict)
    _touched: dict[str, tuple[int, bool]] = field(default_factory=dict)
    """Class → whether it is touched, as of which change of its topology."""

    def pass_by(self, observation: Observation, known: KnownClass, now: float) -> None:
        """Take a request that was not injected into, before its class does."""
        if not self._touches(known):
            return
        watched = self.classes.get(known.name)
        if watched is None:
            watched = self.classes[known.name] = self._begun(known, now)
        outcome = observation.outcome
        watched.add(known.name, outcome.device, success=outcome.success, reached=True)

    def suffers(self) -> list[str]:
        """Name each class that is hurt, and say how."""
        return [f"{name}: {each.hurt}" for name, each in self.classes.items() if each.hurt]

    def beside(self, sign: Sign) -> bool:
        """Return whether a sign is of something else than what the window names."""
        callees = dict.fromkeys(sign.points, sign.name)
        return self.window.touches(sign.points, callees) is None

    def _touches(self, known: KnownClass) -> bool:
        topology = known.traffic.topology
        learned = self._touched.get(known.name)
        if learned is None or learned[0] != topology.changes:
            touched = self.window.touches(topology.paths, topology.callees) is not None
            learned = self._touched[known.name] = (topology.changes, touched)
        return learned[1]

    def _begun(self, known: KnownClass, now: float) -> Bystanders:
        rate = known.traffic.per_second(now) or 0.0
        expected = max(FEWEST, rate * (self.window.until - now))
        systems = frozenset(self.window.down or (known.name,))
        watched = Bystanders(systems, WORSE, enough=math.log(expected / CHANCE))
        watched.note(known.name, known.traffic.baseline.worst(now))
        return watched
