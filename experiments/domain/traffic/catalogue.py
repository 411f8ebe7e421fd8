"""The catalogue: request classes, as learned from the traffic so far.

Every unperturbed request counts into the current sample of its *entry* (service, method, path).

- **The first sample** is looked at when it has some twenty requests, and whenever it has doubled:
  :func:`ldfi.lineage.classes.discover` finds the classes in it, from scratch, so that a beginning
  that misleads is forgotten, and the cost is spread over the requests.
- **Every later sample** is looked at when it is full, or a day old, and held against what is known
  (:mod:`ldfi.lineage.drift`). A class whose lineage changed gets a new version, and its evidence
  starts again with that sample; whatever was certified for the old version has to be looked at
  again. An entry is divided differently only where that explains clearly more than its known
  classes do.

A class without traffic expires. One that is part of an entry whose other parts live is kept in
mind: should its requests come back, it does, in a new version.

Pure, and the time is passed in: Unix seconds.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.interned import Interned
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.experiments.domain.traffic.placing import Placing
from ldfi.experiments.domain.traffic.topology import Topology
from ldfi.fit.features import Features
from ldfi.fit.predicate import Condition, Predicate
from ldfi.lineage.classes import (
    CONSISTENT,
    Entry,
    RequestClass,
    describe,
    discover,
    entry_features,
    entry_of,
    features_of,
    left_out,
    refined,
    why_unfit,
)
from ldfi.lineage.drift import JUDGED, SETTLED, Reliance, Watch
from ldfi.lineage.lineage import Lineage
from ldfi.lineage.shapes import Shape, Shapes

DAY = 86_400.0
EXPIRY = 7 * DAY
"""Seconds without a request after which a class is forgotten."""

SWEEP = 3_600.0
"""Seconds between two looks for classes to forget."""

RECENT = 600.0
"""Seconds over which the rate of a class is averaged."""

SPEAKS = 20
"""Good requests of a sample from which on it has a say in how consistent a class is."""

YOUNG = 10
"""One part in so many of the room is for entries that have no class yet: whoever asks for one path
after another displaces no more classes than that."""

LARGEST = 8
"""How many times larger a sample may be than usual: where a class scatters of which each sample has
too few requests to see why."""

MUCH = 0.2
"""By how much more of a class's requests its parts must explain for it to be divided further."""

LOOKS = 100
"""Complete samples of which is remembered how a class stood in them."""

CLEARLY = 0.05
"""By how much more of its requests a new division of an entry must explain to be taken."""


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

    @property
    def name(self) -> str:
        """Unique in the service."""
        return self.request_class.name

    @property
    def predicate(self) -> Predicate:
        """Which requests belong to it."""
        return self.request_class.predicate

    @property
    def rule(self) -> Predicate:
        """Which requests an edge shall take for its: it knows no other classes that it could hold
        them against."""
        return Predicate.of([*self.predicate.conditions, *self.apart])

    @property
    def service(self) -> str:
        """Where its requests enter."""
        return self.request_class.service

    @property
    def unfit(self) -> str:
        """Why it may not be explored, however inconsistent a class may be; empty where it may."""
        return self.unfit_for(0.0) or ""

    def unfit_for(self, min_consistency: float = CONSISTENT) -> str | None:
        """Why it may not be explored where this consistency is the least allowed; None: it may."""
        return why_unfit(self.predicate, self.sample, self.consistency, min_consistency) or None

    def rate(self, now: float) -> float:
        """Count requests per minute, over about the last ten."""
        seen = self._weight * math.exp(min(0.0, self.last_seen - now) / RECENT)
        return 60 * seen / max(60.0, _remembered(now - self.first_seen))

    def travelled(self, now: float) -> float:
        """Say how much it is used, to be held against others: good requests there were, and those
        of an hour at the present rate."""
        return self.traffic.good + 60 * self.rate(now)

    def observe(self, observation: Observation, now: float) -> None:
        """Take in one request of the class."""
        self.traffic.observe(observation, now)
        self._weight = 1 + self._weight * math.exp(min(0.0, self.last_seen - now) / RECENT)
        self.last_seen = max(now, self.last_seen)

    def leave_to(self, other: KnownClass) -> None:
        """Leave out what another class of the same service is about."""
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

    def _note(self, now: float) -> None:
        self.looks.append(Look(now, self.version, self.consistency, self.hit_rate, self.sample))

    def _look(self, found: RequestClass) -> None:
        """Take over what a sample says of the class."""
        if found.sample >= min(self.sample, SPEAKS):
            self.consistency, self.hit_rate = found.consistency, found.hit_rate
            self.sample = found.sample

    def _held_against(self, found: RequestClass, since: float, now: float) -> ClassChange | None:
        """Take over what a whole sample says, and whether the lineage has changed."""
        self._look(found)
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


@dataclass(slots=True, eq=False)
class _Entry:
    """Where requests enter: the current sample, and the classes known.

    The topology is that of the whole entry, and its classes share it: what one of them shows of
    where points stand makes the others' conclusions from it only more careful.
    """

    opened: float
    due: int
    """Requests in the sample at which it is looked at."""
    shapes: Shapes
    size: int
    """Requests that make a sample of this entry."""
    requests: int = 0
    topology: Topology = field(default_factory=Topology)
    classes: list[KnownClass] = field(default_factory=list)
    asleep: list[tuple[Predicate, int]] = field(default_factory=list)
    """Classes that have expired while others of this entry live: predicate and version."""
    first: bool = True
    """No sample of this entry was ever completed."""
    last_seen: float = 0.0
    began: dict[int, int] = field(default_factory=dict)
    """While it has no class: partitions of a stream → the offset of its first request there."""

    def begin(self, now: float, due: int) -> None:
        """Begin another sample."""
        self.opened, self.due = now, due
        self.shapes, self.requests = Shapes(self.size, spans=False), 0


class Catalogue:
    """Request classes as learned from the traffic so far.

    ``sample``: requests of one entry that make a sample; at least 200, or nothing could ever be
    said to have gone. ``max_classes``: classes known at most, and entries looked at.
    ``min_sample``: requests at which an entry is looked at for the first time. ``dropped`` counts
    requests that could not be used: ``too_many_classes``, ``no_class`` (its entry's known classes
    do not hold it, until the next sample is complete), ``forgotten`` (their entry gave way to
    another before it had enough of them); and entries that were ``displaced``, with classes.
    """

    def __init__(self, *, sample: int = 500, max_classes: int = 2_000, min_sample: int = 20):
        if sample < SETTLED or not 1 <= min_sample <= sample or max_classes < 1:
            raise ValueError(
                f"sample={sample}, min_sample={min_sample}, max_classes={max_classes}: wanted"
                f" sample >= {SETTLED}, 1 <= min_sample <= sample, max_classes >= 1"
            )
        self.dropped: Counter[str] = Counter()
        self._sample = sample
        self._min_sample = min_sample
        self._max_classes = max_classes
        self._classes: dict[str, KnownClass] = {}
        self._entries: dict[Entry, _Entry] = {}
        self._young: dict[Entry, None] = {}
        """Entries without a class, the one longest without a request first."""
        self._changes: list[ClassChange] = []
        self._placing = Placing()
        self._counted: dict[int, int] = {}
        self._next_sweep = -math.inf

    @property
    def classes(self) -> Mapping[str, KnownClass]:
        """Every known class by its name. A view: it changes with what is learned."""
        return MappingProxyType(self._classes)

    def observe(
        self, observation: Observation, now: float, at: tuple[int, int] | None = None
    ) -> None:
        """Take in a request that nobody injected anything into. ``now``: Unix seconds.

        ``at``: partition and offset where it stands in a stream, if it comes from one. A class
        leaves out what it has counted already, as after a restart that reads some of it again.
        """
        if now >= self._next_sweep:
            self.expire(now)
        lineage = self._placed(observation)
        where = entry_of(lineage.service, lineage.features)
        if at is not None and not self._comes_to(where, lineage.features, at):
            return
        entry = self._entry(where, now)
        if entry is None:
            self.dropped["too_many_classes"] += 1
            return
        if at is not None and not entry.classes:
            entry.began.setdefault(*at)
        entry.requests += 1
        entry.last_seen = now
        if not observation.outcome.degraded:
            entry.shapes.add(lineage, observation.outcome.success)
        known = _holding(entry.classes, lineage.features)
        if known is None and entry.asleep:
            known = self._woken(entry, lineage, now)
        if known is not None:
            known.observe(observation, now)
            if at is not None:
                known.counted[at[0]] = at[1] + 1
        else:
            entry.topology.learn(lineage)
            self.dropped.update(() if entry.first else ("no_class",))
        if entry.first and entry.requests >= entry.due and self._folded(where, entry):
            return
        self._review(entry, now)
        if not entry.classes:
            self._young.pop(where, None)
            self._young[where] = None
        else:
            self._young.pop(where, None)
            entry.began.clear()

    def class_of(self, features: Features, service: str) -> KnownClass | None:
        """Find the class of a request that enters this service; None where none is known."""
        features = self._placing.features(service, features)
        entry = self._entries.get(entry_of(service, features))
        return None if entry is None else _holding(entry.classes, features)

    @property
    def unsettled(self) -> bool:
        """Whether there are changes that nobody has asked for yet."""
        return bool(self._changes)

    def uncounted(self) -> dict[int, int]:
        """Partitions of a stream → the first offset of a request that no class has counted, since
        there is none yet where it belongs. A sample begun is not kept: it is read again."""
        first: dict[int, int] = {}
        for where in self._young:
            for partition, offset in self._entries[where].began.items():
                first[partition] = min(offset, first.get(partition, offset))
        return first

    def changes(self) -> list[ClassChange]:
        """Say what has changed since this was last asked, in the order in which it did."""
        changes, self._changes = self._changes, []
        return changes

    def expire(self, now: float) -> None:
        """Forget classes without traffic. Also done by itself, while there is any traffic."""
        self._next_sweep = now + SWEEP
        for where, entry in list(self._entries.items()):
            gone = [each for each in entry.classes if now - each.last_seen >= EXPIRY]
            for known in gone:
                self._remove(entry, known)
                entry.asleep.append((known.predicate, known.version))
            if gone:  # or the sample would bring back what has just been forgotten
                entry.begin(now, self._min_sample)
                entry.first = False
            if not entry.classes and now - entry.last_seen >= EXPIRY:
                del self._entries[where]
                self._young.pop(where, None)

    def to_json(self) -> list[dict[str, Any]]:
        """Every class, as :meth:`KnownClass.to_json` writes it. Samples begun are not kept."""
        return [known.to_json() for known in self._classes.values()]

    @classmethod
    def from_json(
        cls,
        classes: Iterable[Mapping[str, Any]],
        *,
        sample: int = 500,
        max_classes: int = 2_000,
        min_sample: int = 20,
    ) -> Catalogue:
        """Read a catalogue of classes that :meth:`KnownClass.to_json` wrote, in whatever order.

        They are no news to :meth:`changes`. Raises KeyError, TypeError or IndexError for anything
        that was not written so.
        """
        catalogue = cls(sample=sample, max_classes=max_classes, min_sample=min_sample)
        for data in classes:
            catalogue._restore(KnownClass.from_json(data))
        return catalogue

    def _comes_to(self, where: Entry, features: Features, at: tuple[int, int]) -> bool:
        """Note how far a stream has come; whether what stands there has not been counted yet."""
        partition, offset = at
        self._counted[partition] = max(offset + 1, self._counted.get(partition, 0))
        entry = self._entries.get(where)
        known = None if entry is None else _holding(entry.classes, features)
        return known is None or offset >= known.counted.get(partition, 0)

    def _restore(self, known: KnownClass) -> None:
        features = features_of(known.predicate)
        where = entry_of(known.service, features)
        self._placing.declare(known.service, features)
        entry = self._entries.get(where)
        if entry is None:
            entry = self._entries[where] = _opened(known.last_seen, self._min_sample, self._sample)
            entry.first = False
        entry.last_seen = max(entry.last_seen, known.last_seen)
        entry.topology.merge(known.traffic.topology)
        known.traffic.topology = entry.topology
        entry.classes.append(known)
        self._classes[known.name] = known
        _tell_apart(known, self._classes.values())

    def _placed(self, observation: Observation) -> Lineage:
        """Give the lineage of a request the template that its path has here."""
        lineage = observation.lineage
        if self._placing.learn(lineage.service, lineage.features, _taught(observation)):
            self._fold(lineage.service)
        features = self._placing.features(lineage.service, lineage.features)
        return lineage if features is lineage.features else replace(lineage, features=features)

    def _folded(self, where: Entry, entry: _Entry) -> bool:
        """Look whether an entry has another one's template, before a class is made of it."""
        if self._placing.look(where[0] or "", entry_features(where)):
            self._fold(where[0] or "")
        return self._entries.get(where) is not entry

    def _fold(self, service: str) -> None:
        """Bring what entered by paths together that turn out to have one template."""
        for where, entry in list(self._entries.items()):
            target = entry_of(service, self._placing.features(service, entry_features(where)))
            if where[0] != service or target == where:
                continue
            for known in list(entry.classes):
                self._remove(entry, known)
            del self._entries[where]
            self._young.pop(where, None)
            into = self._entry(target, entry.last_seen)
            if into is not None:
                _merge(into, entry, self._placing)
                if not into.classes:
                    self._young[target] = None

    def _entry(self, where: Entry, now: float) -> _Entry | None:
        """Find the entry; None where there is no room for another one."""
        entry = self._entries.get(where)
        if entry is not None:
            return entry
        if len(self._entries) >= self._max_classes:
            if len(self._young) < max(1, self._max_classes // YOUNG):
                self._displace(now)
            else:
                oldest = next(iter(self._young))
                del self._young[oldest]
                self.dropped["forgotten"] += self._entries.pop(oldest).requests
        entry = self._entries[where] = _opened(now, self._min_sample, self._sample)
        return entry

    def _displace(self, now: float, besides: _Entry | None = None) -> None:
        """Forget the classes of the entry that is travelled least."""
        where = _least_travelled(self._entries, now, besides)
        if where is not None:
            entry = self._entries.pop(where)
            for known in list(entry.classes):
                self._remove(entry, known)
            self.dropped["displaced"] += 1

    def _review(self, entry: _Entry, now: float) -> None:
        """Look at a sample, if it is time."""
        requests = entry.requests
        aged = now - entry.opened >= DAY and requests >= JUDGED
        if requests >= entry.size or aged:
            self._close(entry, now)
        elif entry.first and requests >= entry.due:
            entry.due = 2 * requests
            self._divide(entry, discover(entry.shapes), now)

    def _close(self, entry: _Entry, now: float) -> None:
        """Conclude a sample: divide the entry anew, if need be, and see what has changed."""
        shapes = list(entry.shapes)
        found, before = discover(shapes), _described(entry.classes, shapes)
        if (
            entry.first
            or _too_narrow(entry.classes, shapes)
            or _explained(found, shapes) > _explained(before, shapes) + CLEARLY
        ):
            self._divide(entry, found, now)
        for each in entry.classes:
            for described in _described([each], shapes):
                change = each._held_against(described, entry.opened, now)
                if change is not None:
                    self._changes.append(change)
            each._note(now)
        entry.first = False
        few, divided = _further(entry, shapes)
        for known, parts in divided:
            self._remove(entry, known)
            for part in parts:
                self._create(entry, part, now)
        if few and entry.size < LARGEST * self._sample:
            entry.size *= 2
        entry.begin(now, self._min_sample)

    def _divide(self, entry: _Entry, found: Sequence[RequestClass], now: float) -> None:
        """Let these be the classes of an entry. Those that it has already are kept."""
        known = {each.predicate: each for each in entry.classes}
        wanted = {each.predicate for each in found}
        for gone in [each for each in entry.classes if each.predicate not in wanted]:
            self._remove(entry, gone)
        for each in found:
            if each.predicate in known:
                known[each.predicate]._look(each)
            else:
                self._create(entry, each, now)
        entry.asleep.clear()

    def _create(
        self, entry: _Entry, found: RequestClass, now: float, version: int = 1
    ) -> KnownClass | None:
        """Add a class that was not known; None where there is no room for another one."""
        if len(self._classes) >= self._max_classes:
            self._displace(now, besides=entry)
        if len(self._classes) >= self._max_classes:
            return None
        known = _known(found, _free_name(found, self._classes), entry, version, now)
        known.counted.update(self._counted)
        entry.classes.append(known)
        self._classes[known.name] = known
        _tell_apart(known, self._classes.values())
        self._changes.append(ClassChange("created", known))
        return known

    def _woken(self, entry: _Entry, lineage: Lineage, now: float) -> KnownClass | None:
        """Bring back the class of a request that had expired: its evidence begins anew."""
        for predicate, version in entry.asleep:
            if predicate.holds(lineage.features):
                entry.asleep.remove((predicate, version))
                nothing = RequestClass(lineage.service, predicate, (), frozenset(), 0.0, 0, 1.0)
                return self._create(entry, nothing, now, version + 1)
        return None

    def _remove(self, entry: _Entry, known: KnownClass) -> None:
        entry.classes.remove(known)
        del self._classes[known.name]
        if not entry.classes:
            for each in self._classes.values():
                each.take_over(known)
        self._changes.append(ClassChange("expired", known))


def _least_travelled(
    entries: Mapping[Entry, _Entry], now: float, besides: _Entry | None
) -> Entry | None:
    """Find the entry whose classes are travelled least; None where no other one has any."""
    grown = [(w, e) for w, e in entries.items() if e.classes and e is not besides]
    used = {where: sum(known.travelled(now) for known in entry.classes) for where, entry in grown}
    return min(used, key=used.__getitem__, default=None)


def _opened(now: float, due: int, size: int) -> _Entry:
    return _Entry(now, due, Shapes(size, spans=False), size, last_seen=now)


def _taught(observation: Observation) -> frozenset[str] | None:
    """Give what a good, unperturbed request relied on; None of any other."""
    lineage, outcome = observation.lineage, observation.outcome
    good = outcome.success and not outcome.degraded
    undisturbed = not lineage.fired and lineage.failed <= lineage.support
    return lineage.support if good and undisturbed else None


def _known(found: RequestClass, name: str, entry: _Entry, version: int, now: float) -> KnownClass:
    """Make a class of what a sample of its entry says of it."""
    seconds = now - entry.opened
    return KnownClass(
        request_class=LearnedClass(found.predicate, found.service, name),
        traffic=Traffic.of(found.shapes, entry.topology, entry.opened, now),
        version=version,
        consistency=found.consistency,
        hit_rate=found.hit_rate,
        sample=found.sample,
        first_seen=entry.opened,
        last_seen=now,
        _weight=found.traces * (_remembered(seconds) / seconds if seconds > 0 else 1.0),
    )


def _free_name(found: RequestClass, taken: Mapping[str, KnownClass]) -> str:
    plain = (found.name, f"{found.name} at {found.service}")
    numbered = (f"{plain[1]} ({number})" for number in itertools.count(2))
    return next(name for name in itertools.chain(plain, numbered) if name not in taken)


def _merge(into: _Entry, entry: _Entry, placing: Placing) -> None:
    """Take over what was seen at an entry that is none of its own."""

    def placed(run: Lineage) -> Lineage:
        return replace(run, features=placing.features(run.service, run.features))

    into.shapes.merge(entry.shapes.renamed(placed))
    into.requests += entry.requests
    into.opened = min(into.opened, entry.opened)
    into.topology.merge(entry.topology)
    into.last_seen = max(into.last_seen, entry.last_seen)
    for partition, offset in entry.began.items():
        into.began[partition] = min(offset, into.began.get(partition, offset))


def _tell_apart(fresh: KnownClass, classes: Iterable[KnownClass]) -> None:
    """See which classes would take in each other's requests at an edge."""
    for known in classes:
        if known is not fresh and known.service == fresh.service:
            known.leave_to(fresh)
            fresh.leave_to(known)


def _further(
    entry: _Entry, shapes: Sequence[Shape]
) -> tuple[bool, list[tuple[KnownClass, list[RequestClass]]]]:
    """Find classes that scatter and can be divided further, with their parts; and tell whether some
    scatter of which there were too few requests."""
    few, divided = False, []
    for known in entry.classes:
        for whole in _described([known], shapes):
            if whole.consistency >= CONSISTENT or not whole.sample:
                continue
            few = few or (len(entry.classes) > 1 and whole.sample < SETTLED)
            parts = refined(whole) if whole.sample >= JUDGED else []
            if parts and _explained(parts, whole.shapes) > whole.consistency + MUCH:
                divided.append((known, parts))
    return few, divided


def _holding(classes: Iterable[KnownClass], features: Features) -> KnownClass | None:
    for known in classes:
        if known.request_class.predicate.holds(features):
            return known
    return None


def _too_narrow(classes: Iterable[KnownClass], shapes: Iterable[Shape]) -> bool:
    """Tell whether requests fit the template of a class whose predicate an edge takes word by
    word."""
    wide = any("route" in shape.features for shape in shapes)
    return wide and any(c.feature == "path" for each in classes for c in each.predicate.conditions)


def _described(classes: Iterable[KnownClass], shapes: Sequence[Shape]) -> list[RequestClass]:
    """Sum up what a sample says of classes known, those without a request in it left out."""
    return [
        describe(known.predicate, matching)
        for known in classes
        if (matching := [shape for shape in shapes if known.predicate.holds(shape.features)])
    ]


def _explained(found: Iterable[RequestClass], shapes: Iterable[Shape]) -> float:
    """Share of good, unperturbed requests that rely on just what their class is expected to."""
    total = sum(shape.count for shape in shapes if shape.teaches)
    return sum(each.consistency * each.sample for each in found) / total if total else 1.0


def _remembered(seconds: float) -> float:
    """Give the seconds that a weight stands for which has been kept for so long."""
    return -RECENT * math.expm1(-max(0.0, seconds) / RECENT)
