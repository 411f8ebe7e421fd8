"""A request class as the service knows it: its evidence, how well it holds together, its changes.

Pure, and the time is passed in: Unix seconds.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.interned_names import Interned
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.experiments.domain.traffic.topology import Topology
from ldfi.fit.protocol.predicate import Condition, Predicate
from ldfi.lineage.classes import CONSISTENT, RequestClass, left_out, why_unfit
from ldfi.lineage.drift import Reliance, Watch
from ldfi.lineage.varieties import Variety, varieties

RECENT = 600.0
"""Seconds over which the rate of a class is averaged."""

SPEAKS = 20
"""Good requests of a sample from which on it has a say in how consistent a class is."""

LOOKS = 100
"""Complete samples of which is remembered how a class stood in them."""


@dataclass(frozen=True, slots=True)
class LearnedClass:
    """What a class is to an edge, and what it is called. ``name`` is unique in the service."""

    predicate: Predicate
    service: str
    """Where its requests enter."""
    name: str


class Look(NamedTuple):
    """How a class stood when a sample of its requests was complete. ``at``: Unix seconds."""

    at: float
    version: int
    consistency: float
    hit_rate: float
    sample: int


@dataclass(slots=True, eq=False)
class KnownClass:
    """A request class, its evidence, and how well it holds together."""

    request_class: LearnedClass
    traffic: Traffic
    version: int
    """Goes up when its lineage changes; ``traffic`` is then another object."""
    consistency: float
    """Share of the good, unperturbed requests of the last sample with exactly the expected
    support."""
    hit_rate: float
    """Share of the expected points that a request reached, on average."""
    sample: int
    """Good, unperturbed requests from which ``consistency`` was taken."""
    first_seen: float
    last_seen: float
    """Unix seconds."""
    counted: dict[int, int] = field(default_factory=dict)
    """Where requests come from a stream: its partitions → the offset up to which those of this
    class are in ``traffic``. Kept with it, so that none is counted twice after a restart."""
    apart: tuple[Condition, ...] = ()
    """What other classes are about that its predicate would take in: a path that fits its
    template and behaves differently. Not kept: it follows from the classes there are."""
    looks: deque[Look] = field(default_factory=lambda: deque(maxlen=LOOKS))
    """How it stood at each complete sample, the newest last: for people."""
    _watch: Watch = field(default_factory=Watch)
    _weight: float = 0.0
    """Requests seen, each counting less the longer ago it was."""

    @classmethod
    def of(
        cls,
        found: RequestClass,
        name: str,
        topology: Topology,
        since: float,
        version: int,
        now: float,
    ) -> KnownClass:
        """Return a class made from a sample of its entry point that began at ``since``."""
        seconds = now - since
        return cls(
            request_class=LearnedClass(found.predicate, found.service, name),
            traffic=Traffic.of(found.shapes, topology, since, now),
            version=version,
            consistency=found.consistency,
            hit_rate=found.hit_rate,
            sample=found.sample,
            first_seen=since,
            last_seen=now,
            _weight=found.traces * (_remembered(seconds) / seconds if seconds > 0 else 1.0),
        )

    @property
    def name(self) -> str:
        """Unique in the service."""
        return self.request_class.name

    @property
    def predicate(self) -> Predicate:
        """Return which requests belong to it."""
        return self.request_class.predicate

    @property
    def rule(self) -> Predicate:
        """Return which requests an edge shall take for its: it knows no other classes that it could
        hold them against."""
        return Predicate.of([*self.predicate.conditions, *self.apart])

    @property
    def service(self) -> str:
        """Return where its requests enter."""
        return self.request_class.service

    @property
    def unfit(self) -> str:
        """Why it may not be explored, however inconsistent a class may be; empty where it may."""
        return self.unfit_for(0.0) or ""

    def unfit_for(self, min_consistency: float = CONSISTENT) -> str | None:
        """Why it may not be explored, where with this consistency it may in any case; None: it
        may."""
        supports = self.traffic.supports() if self.consistency < min_consistency else {}
        said = why_unfit(self.predicate, self.sample, self.consistency, supports, min_consistency)
        return said or None

    def varieties(self) -> tuple[Variety, ...]:
        """Tell the ways in which its requests go, where it may not be explored because nothing
        known on arrival tells them apart."""
        if self.unfit_for() is None or self.consistency >= CONSISTENT:
            return ()
        return varieties(self.traffic.supports())

    def rate(self, now: float) -> float:
        """Count requests per minute, over about the last ten."""
        seen = self._weight * math.exp(min(0.0, self.last_seen - now) / RECENT)
        return 60 * seen / max(60.0, _remembered(now - self.first_seen))

    def travelled(self, now: float) -> float:
        """Return how much it is used, to be held against others: good requests there were, and
        those of an hour at the present rate."""
        return self.traffic.good + 60 * self.rate(now)

    def observe(self, observation: Observation, now: float, *, near: bool = False) -> None:
        """Take in one request of the class. ``near``: see :meth:`Traffic.observe`."""
        self.traffic.observe(observation, now, near=near)
        self._weight = 1 + self._weight * math.exp(min(0.0, self.last_seen - now) / RECENT)
        self.last_seen = max(now, self.last_seen)

    def leave_to(self, other: KnownClass) -> None:
        """Exclude the requests of another class of the same service."""
        theirs = left_out(self.predicate, other.predicate)
        if theirs is not None and theirs not in self.apart:
            self.apart = (*self.apart, theirs)

    def take_over(self, gone: KnownClass) -> None:
        """Leave nothing out any more for a class that is gone."""
        theirs = left_out(self.predicate, gone.predicate) if self.apart else None
        self.apart = tuple(each for each in self.apart if each != theirs)

    def to_json(self) -> dict[str, Any]:
        """Everything worth keeping: one row of a database."""
        points = Interned()
        known, fresh = (
            [each.requests, [[points.place(p), n] for p, n in sorted(each.points.items())]]
            for each in (self._watch.known, self._watch.fresh)
        )
        return {
            "name": self.name,
            "service": self.service,
            "predicate": self.predicate.to_json(),
            "version": self.version,
            "consistency": self.consistency,
            "hit_rate": self.hit_rate,
            "sample": self.sample,
            "first_seen": self.first_seen,
            "last_seen": self.last_seen,
            "weight": self._weight,
            "counted": sorted(self.counted.items()),
            "looks": list(self.looks),
            "watch": {"known": known, "fresh": fresh, "points": points.names},
            "traffic": self.traffic.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> KnownClass:
        """Read what :meth:`to_json` wrote. Raises KeyError, TypeError or IndexError otherwise."""
        predicate = Predicate.from_json(data["predicate"])
        points = data["watch"]["points"]
        known, fresh = (
            Reliance(requests, {points[place]: n for place, n in counts})
            for requests, counts in (data["watch"]["known"], data["watch"]["fresh"])
        )
        return cls(
            request_class=LearnedClass(predicate, data["service"], data["name"]),
            traffic=Traffic.from_json(data["traffic"]),
            version=data["version"],
            consistency=data["consistency"],
            hit_rate=data["hit_rate"],
            sample=data["sample"],
            first_seen=data["first_seen"],
            last_seen=data["last_seen"],
            counted=dict(data.get("counted", ())),
            looks=deque((Look(*each) for each in data.get("looks", ())), maxlen=LOOKS),
            _watch=Watch(known, fresh),
            _weight=data["weight"],
        )

    def note(self, now: float) -> None:
        """Remember, for people, how it stands now that a sample is complete."""
        self.looks.append(Look(now, self.version, self.consistency, self.hit_rate, self.sample))

    def look(self, found: RequestClass) -> None:
        """Update the class from a sample."""
        if found.sample >= min(self.sample, SPEAKS):
            self.consistency, self.hit_rate = found.consistency, found.hit_rate
            self.sample = found.sample

    def held_against(self, found: RequestClass, since: float, now: float) -> ClassChange | None:
        """Update the class from a whole sample; return whether its lineage has changed."""
        self.look(found)
        drift = self._watch.take(Reliance.of(found.shapes))
        if not drift:
            return None
        self.version += 1
        self.consistency, self.hit_rate = found.consistency, found.hit_rate
        self.sample = found.sample
        self.traffic = Traffic.of(found.shapes, self.traffic.topology, since, now)
        return ClassChange("changed", self, drift.appeared, drift.vanished)


@dataclass(frozen=True, slots=True)
class ClassChange:
    """What became of a class. ``appeared``, ``vanished``: points, of one that changed."""

    kind: Literal["created", "changed", "expired"]
    known: KnownClass
    appeared: frozenset[str] = frozenset()
    vanished: frozenset[str] = frozenset()


def tell_apart(fresh: KnownClass, classes: Iterable[KnownClass]) -> None:
    """See which classes would take in each other's requests at an edge."""
    for known in classes:
        if known is not fresh and known.service == fresh.service:
            known.leave_to(fresh)
            fresh.leave_to(known)


def _remembered(seconds: float) -> float:
    """Return the seconds that a weight stands for which has been kept for so long."""
    return -RECENT * math.expm1(-max(0.0, seconds) / RECENT)
