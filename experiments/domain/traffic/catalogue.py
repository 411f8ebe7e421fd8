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
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ldfi.experiments.domain.traffic.entry_point import (
    CLEARLY,
    Entrance,
    described,
    explained,
    further,
    too_narrow,
)
from ldfi.experiments.domain.traffic.known_class import (
    ClassChange,
    KnownClass,
    LearnedClass,
    Look,
    tell_apart,
)
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.fit.protocol.features import Features
from ldfi.lineage.class_assignment import ClassAssignment
from ldfi.lineage.classes import (
    Entry,
    RequestClass,
    discover,
    entry_features,
    entry_of,
    features_of,
)
from ldfi.lineage.drift import JUDGED, SETTLED
from ldfi.lineage.lineage import Lineage

__all__ = [
    "DAY",
    "EXPIRY",
    "SWEEP",
    "Catalogue",
    "ClassChange",
    "KnownClass",
    "LearnedClass",
    "Look",
]

DAY = 86_400.0
EXPIRY = 7 * DAY
"""Seconds without a request after which a class is forgotten."""

SWEEP = 3_600.0
"""Seconds between two looks for classes to forget."""

YOUNG = 10
"""One part in so many of the room is for entries that have no class yet: whoever asks for one path
after another displaces no more classes than that."""

LARGEST = 8
"""How many times larger a sample may be than usual: where a class scatters of which each sample has
too few requests to see why."""


Place = tuple[int, int]
"""Where something stands in a stream: partition and offset."""


class Catalogue:
    """Request classes as learned from the traffic so far.

    ``sample``: requests of one entry that make a sample; at least 200, or nothing could ever be
    said to have gone. ``max_classes``: classes known at most, and entries looked at.
    ``min_sample``: requests at which an entry is looked at for the first time. ``dropped`` counts
    requests that could not be used: ``too_many_classes``, ``no_request`` (a call in a trace
    of its own, of a service that serves requests), ``no_class`` (its entry's known classes
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
        self._entries: dict[Entry, Entrance] = {}
        self._young: dict[Entry, None] = {}
        """Entries without a class, the one longest without a request first."""
        self._serving: set[str] = set()
        """Services that were seen to serve requests."""
        self._by_calls: set[Entry] = set()
        """Entries that only calls in traces of their own have made."""
        self._changes: list[ClassChange] = []
        self._placing = ClassAssignment()
        self._counted: dict[int, int] = {}
        self._next_sweep = -math.inf

    @property
    def classes(self) -> Mapping[str, KnownClass]:
        """Every known class by its name. A view: it changes with what is learned."""
        return MappingProxyType(self._classes)

    def observe(
        self, observation: Observation, now: float, at: Place | None = None, *, near: bool = False
    ) -> None:
        """Take in a request that nobody injected anything into. ``now``: Unix seconds.

        ``at``: partition and offset where it stands in a stream, if it comes from one. A class
        leaves out what it has counted already, as after a restart that reads some of it again.
        ``near``: an experiment may have had a hand in it.
        """
        if now >= self._next_sweep:
            self.expire(now)
        lineage = self._placed(observation)
        where = entry_of(lineage.service, lineage.features)
        counted = at is not None and not self._comes_to(where, lineage.features, at)
        if counted or self._sets_aside(lineage):
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
        known = entry.class_of(lineage.features)
        if known is None and (woken := entry.wake(lineage)) is not None:
            known = self._create(entry, woken[0], now, woken[1])
        if known is not None:
            known.observe(observation, now, near=near)
            if at is not None:
                known.counted[at[0]] = at[1] + 1
        else:
            entry.topology.learn(lineage)
            self.dropped.update(() if entry.first else ("no_class",))
        if entry.first and entry.requests >= entry.due and self._merged(where, entry):
            return
        self._review(entry, now)
        self._young.pop(where, None)
        if entry.classes:
            entry.began.clear()
        else:
            self._young[where] = None

    def class_of(self, features: Features, service: str) -> KnownClass | None:
        """Find the class of a request that enters this service; None where none is known."""
        features = self._placing.features(service, features)
        entry = self._entries.get(entry_of(service, features))
        return None if entry is None else entry.class_of(features)

    @property
    def unsettled(self) -> bool:
        """Return whether there are changes that nobody has asked for yet."""
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
        """Return what has changed since this was last asked, in the order in which it did."""
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

    def _sets_aside(self, lineage: Lineage) -> bool:
        """Set a call in a trace of its own aside, where its service serves requests: it is none
        that an edge sees arrive, and perhaps a call of one of these."""
        where = entry_of(lineage.service, lineage.features)
        self._serving.update(lineage.callees.values())
        if not lineage.loose:
            self._serving.add(lineage.service)
            self._by_calls.discard(where)
            return False
        if lineage.service not in self._serving:
            if where not in self._entries:
                self._by_calls.add(where)
            return False
        for known in self._classes.values():
            if known.service == lineage.service:
                known.traffic.set_aside("loose", lineage.loose)
        self.dropped["no_request"] += 1
        if where in self._by_calls:  # it was taken for a request before any was seen there
            self._by_calls.discard(where)
            entry = self._entries.pop(where, None)
            self._young.pop(where, None)
            if entry is not None:
                for known in list(entry.classes):
                    self._remove(entry, known)
        return True

    def _comes_to(self, where: Entry, features: Features, at: tuple[int, int]) -> bool:
        """Note how far a stream has come; whether what stands there has not been counted yet."""
        partition, offset = at
        self._counted[partition] = max(offset + 1, self._counted.get(partition, 0))
        entry = self._entries.get(where)
        known = None if entry is None else entry.class_of(features)
        return known is None or offset >= known.counted.get(partition, 0)

    def _restore(self, known: KnownClass) -> None:
        features = features_of(known.predicate)
        where = entry_of(known.service, features)
        self._placing.declare(known.service, features)
        entry = self._entries.get(where)
        if entry is None:
            entry = self._opened(where, known.last_seen)
            entry.first = False
        entry.last_seen = max(entry.last_seen, known.last_seen)
        entry.topology.merge(known.traffic.topology)
        known.traffic.topology = entry.topology
        entry.classes.append(known)
        self._classes[known.name] = known
        tell_apart(known, self._classes.values())

    def _placed(self, observation: Observation) -> Lineage:
        """Return the lineage of a request the template that its path has here."""
        lineage = observation.lineage
        if self._placing.learn(lineage.service, lineage.features, _taught(observation)):
            self._merge(lineage.service)
        return self._renamed(lineage)

    def _renamed(self, lineage: Lineage) -> Lineage:
        features = self._placing.features(lineage.service, lineage.features)
        return lineage if features is lineage.features else replace(lineage, features=features)

    def _merged(self, where: Entry, entry: Entrance) -> bool:
        """Look whether an entry has another one's template, before a class is made of it."""
        if self._placing.look(where[0] or "", entry_features(where)):
            self._merge(where[0] or "")
        return self._entries.get(where) is not entry

    def _merge(self, service: str) -> None:
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
                into.merge(entry, self._renamed)
                if not into.classes:
                    self._young[target] = None

    def _entry(self, where: Entry, now: float) -> Entrance | None:
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
        return self._opened(where, now)

    def _opened(self, where: Entry, now: float) -> Entrance:
        entry = self._entries[where] = Entrance.opened_at(now, self._min_sample, self._sample)
        return entry

    def _displace(self, now: float, kept: Entrance | None = None) -> None:
        """Forget the classes of the entry that is travelled least."""
        where = _least_travelled(self._entries, now, kept)
        if where is not None:
            entry = self._entries.pop(where)
            for known in list(entry.classes):
                self._remove(entry, known)
            self.dropped["displaced"] += 1

    def _review(self, entry: Entrance, now: float) -> None:
        """Look at a sample, if it is time."""
        requests = entry.requests
        aged = now - entry.opened >= DAY and requests >= JUDGED
        if requests >= entry.size or aged:
            self._close(entry, now)
        elif entry.first and requests >= entry.due:
            entry.due = 2 * requests
            self._divide(entry, discover(entry.shapes), now)

    def _close(self, entry: Entrance, now: float) -> None:
        """Conclude a sample: divide the entry anew, if need be, and see what has changed."""
        shapes = list(entry.shapes)
        found, before = discover(shapes), described(entry.classes, shapes)
        if (
            entry.first
            or too_narrow(entry.classes, shapes)
            or explained(found, shapes) > explained(before, shapes) + CLEARLY
        ):
            self._divide(entry, found, now)
        for each in entry.classes:
            for whole in described([each], shapes):
                change = each.held_against(whole, entry.opened, now)
                if change is not None:
                    self._changes.append(change)
            each.note(now)
        entry.first = False
        few, divided = further(entry.classes, shapes)
        for known, parts in divided:
            self._remove(entry, known)
            for part in parts:
                self._create(entry, part, now)
        if few and entry.size < LARGEST * self._sample:
            entry.size *= 2
        entry.begin(now, self._min_sample)

    def _divide(self, entry: Entrance, found: Sequence[RequestClass], now: float) -> None:
        """Let these be the classes of an entry. Those that it has already are kept."""
        known = {each.predicate: each for each in entry.classes}
        wanted = {each.predicate for each in found}
        for gone in [each for each in entry.classes if each.predicate not in wanted]:
            self._remove(entry, gone)
        for each in found:
            if each.predicate in known:
                known[each.predicate].look(each)
            else:
                self._create(entry, each, now)
        entry.asleep.clear()

    def _create(
        self, entry: Entrance, found: RequestClass, now: float, version: int = 1
    ) -> KnownClass | None:
        """Add a class that was not known; None where there is no room for another one."""
        if len(self._classes) >= self._max_classes:
            self._displace(now, kept=entry)
        if len(self._classes) >= self._max_classes:
            return None
        known = KnownClass.of(
            found, _free_name(found, self._classes), entry.topology, entry.opened, version, now
        )
        known.counted.update(self._counted)
        entry.classes.append(known)
        self._classes[known.name] = known
        tell_apart(known, self._classes.values())
        self._changes.append(ClassChange("created", known))
        return known

    def _remove(self, entry: Entrance, known: KnownClass) -> None:
        entry.classes.remove(known)
        del self._classes[known.name]
        if not entry.classes:
            for each in self._classes.values():
                each.take_over(known)
        self._changes.append(ClassChange("expired", known))


def _least_travelled(
    entries: Mapping[Entry, Entrance], now: float, kept: Entrance | None
) -> Entry | None:
    """Find the entry whose classes are travelled least; None where no other one has any."""
    grown = [(w, e) for w, e in entries.items() if e.classes and e is not kept]
    used = {where: sum(known.travelled(now) for known in entry.classes) for where, entry in grown}
    return min(used, key=used.__getitem__, default=None)


def _taught(observation: Observation) -> frozenset[str] | None:
    """Return what a good, unperturbed request relied on; None of any other."""
    lineage, outcome = observation.lineage, observation.outcome
    good = outcome.success and not outcome.degraded
    undisturbed = not lineage.fired and lineage.failed <= lineage.support
    return lineage.support if good and undisturbed else None


def _free_name(found: RequestClass, taken: Mapping[str, KnownClass]) -> str:
    plain = (found.name, f"{found.name} at {found.service}")
    numbered = (f"{plain[1]} ({number})" for number in itertools.count(2))
    return next(name for name in itertools.chain(plain, numbered) if name not in taken)
