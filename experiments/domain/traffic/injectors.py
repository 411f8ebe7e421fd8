"""The registry of points: who can make which calls fail, as injectors say it and as they prove it.

Three cases, by the caller of a point:

- *A report is known.* Its points are those that one of its patterns names, with the kinds that it
  names, and those at which something has fired, or would have. All others have no injector.
- *None is known*: an older injector, or none at all. Nothing is concluded: whoever arms a fault
  there finds out, and where it never fires the run sets it aside
  (:mod:`ldfi.experiments.domain.campaign.trials`).
- *The last report is old.* Injectors repeat theirs every few minutes; a pattern that was not heard
  of for a day is forgotten, so that a caller without any is one of which nothing is known.

What stands beside each other adds up: a service's own injector and a proxy's, the processes of one
service, an old version and a new one. Reports are not signed. One that is forged can hide points,
or show some at which nothing will fire, which costs an experiment; it makes nothing fail.

Pure, and the time is passed in: Unix seconds. Bounded: what was heard of longest ago goes first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.fit.points import Point
from ldfi.fit.reach import InjectorReport, PointPattern

HEARD: Final = 86_400.0
"""Seconds without a report after which a pattern is forgotten."""

PROVED: Final = 30 * 86_400.0
"""Seconds for which it counts that something has fired: campaigns may be a week apart."""

STALE: Final = 3_600.0
"""How much older what is on record may be than what is known, where only the time differs."""

MOST_CALLERS: Final = 2_000
MOST_PATTERNS: Final = 256
MOST_PROVED: Final = 1_000
"""Callers, and of one caller patterns and points, that are remembered."""

NO_CONTEXT: Final = (
    "nothing until the context is passed on to what makes this call, which runs in a trace of its"
    " own"
)
"""What has to be installed for a call that has no context."""

EVERY_KIND: Final = frozenset({"*"})
"""In the place of words of kinds: every kind that such a point can have."""


@dataclass(slots=True)
class _Caller:
    """``reaches``: pattern → who says so, and when last. ``proved``: point → when last.
    ``kept``: when it was put on record last; None where what is there is not what is known."""

    reaches: OrderedDict[str, tuple[str, float]] = field(default_factory=OrderedDict)
    proved: OrderedDict[str, float] = field(default_factory=OrderedDict)
    kept: float | None = None

    def words(self, point: str) -> frozenset[str]:
        """Say which kinds, by their words, are possible at a point."""
        rest = point.partition(">")[2]
        words: frozenset[str] = frozenset()
        named = False
        for each in map(PointPattern.parse, self.reaches):
            if matching([each.rest], [rest]) is not None:
                named = True
                words |= EVERY_KIND if each.kinds is None else each.kinds
        return words if named or point not in self.proved else EVERY_KIND


@dataclass(slots=True)
class Injectors:
    """``changes``: rises whenever something else is possible somewhere."""

    changes: int = 0
    _callers: OrderedDict[str, _Caller] = field(default_factory=OrderedDict)
    _gone: set[str] = field(default_factory=set)
    _words: dict[str, frozenset[str] | None] = field(default_factory=dict)
    """What was worked out since the last change."""

    def hear(self, report: InjectorReport, now: float) -> None:
        """Take a report in."""
        for reach in report.reaches:
            caller = self._caller(reach.caller)
            new = self._note(caller.reaches, str(reach), (report.injector, now), MOST_PATTERNS)
            self._noted(caller, now, new=new)

    def prove(self, faults: Iterable[str], now: float) -> None:
        """Take in that these (``kind@point``) fired, or would have."""
        for point in {fault.partition("@")[2] for fault in faults}:
            caller = self._caller(point.partition(">")[0])
            self._noted(caller, now, new=self._note(caller.proved, point, now, MOST_PROVED))

    def expire(self, now: float) -> None:
        """Forget what was not heard of for long."""
        for name, caller in list(self._callers.items()):
            lapsed = [k for k, (_, at) in caller.reaches.items() if at < now - HEARD]
            faded = [point for point, at in caller.proved.items() if at < now - PROVED]
            for key in lapsed:
                del caller.reaches[key]
            for point in faded:
                del caller.proved[point]
            if lapsed or faded:
                self._noted(caller, now, new=True)
            if not caller.reaches and not caller.proved:
                self._forget(name)

    def words(self, point: str) -> frozenset[str] | None:
        """Say which kinds, by their words, are possible at a point: :data:`EVERY_KIND`, some, or
        none at all where it has no injector; None where nobody knows."""
        if point not in self._words:
            caller = self._callers.get(point.partition(">")[0])
            known = caller is not None and caller.reaches
            if len(self._words) >= MOST_CALLERS:
                self._words.clear()
            self._words[point] = caller.words(point) if caller and known else None
        return self._words[point]

    def limits(self, points: Iterable[str]) -> Iterator[tuple[str, frozenset[str]]]:
        """List the points at which not every kind is possible, with the words of those that are."""
        for point in sorted(points):
            words = self.words(point)
            if words is not None and not words & EVERY_KIND:
                yield point, words

    def without(self, points: Iterable[str]) -> dict[str, str]:
        """List those of these points that have no injector, with what to install."""
        return {
            each: to_install(each) for each in sorted(points) if self.words(each) == frozenset()
        }

    def reports(self) -> dict[str, dict[str, list[str]]]:
        """List by caller who has reported, and the patterns of each."""
        told: dict[str, dict[str, list[str]]] = {}
        for name, caller in sorted(self._callers.items()):
            for pattern, (injector, _) in sorted(caller.reaches.items()):
                told.setdefault(name, {}).setdefault(injector, []).append(pattern)
        return told

    def unkept(self) -> dict[str, dict[str, Any] | None]:
        """List what is to be put on record, by caller; None: nothing any more."""
        return dict.fromkeys(self._gone) | {
            name: caller_to_json(caller)
            for name, caller in self._callers.items()
            if caller.kept is None
        }

    def kept(self, names: Iterable[str], now: float) -> None:
        """Note that what :meth:`unkept` listed of these is on record."""
        for name in names:
            self._gone.discard(name)
            if name in self._callers:
                self._callers[name].kept = now

    @classmethod
    def from_json(cls, documents: Mapping[str, Mapping[str, Any]]) -> Injectors:
        """Read by caller what :meth:`unkept` listed. Raises KeyError, TypeError or ValueError."""
        known = cls()
        for name, data in documents.items():
            caller = known._callers[name] = _Caller(kept=data["at"])
            for pattern, injector, at in data["reaches"]:
                caller.reaches[str(PointPattern.parse(pattern))] = (injector, at)
            caller.proved.update(data["proved"])
        return known

    def _caller(self, name: str) -> _Caller:
        if name not in self._callers:
            self._callers[name] = _Caller()
            self._gone.discard(name)
            if len(self._callers) > MOST_CALLERS:
                self._forget(next(iter(self._callers)))
        self._callers.move_to_end(name)
        return self._callers[name]

    def _note(self, known: OrderedDict[str, Any], key: str, value: Any, most: int) -> bool:
        new = key not in known
        known[key] = value
        known.move_to_end(key)
        if len(known) > most:
            known.popitem(last=False)
        return new

    def _noted(self, caller: _Caller, now: float, *, new: bool) -> None:
        if new:
            self.changes += 1
            self._words.clear()
        if new or (caller.kept is not None and now - caller.kept >= STALE):
            caller.kept = None

    def _forget(self, name: str) -> None:
        del self._callers[name]
        self._gone.add(name)
        self.changes += 1
        self._words.clear()


def caller_to_json(caller: _Caller) -> dict[str, Any]:
    """Write what is known of one caller."""
    heard = [at for _, at in caller.reaches.values()]
    return {
        "at": max([*heard, *caller.proved.values()], default=0.0),
        "reaches": [[pattern, *told] for pattern, told in caller.reaches.items()],
        "proved": dict(caller.proved),
    }


def lacking(fault: str, words: frozenset[str]) -> bool:
    """Tell whether a fault (``kind@point``) is none of these kinds."""
    word = fault.partition("@")[0].partition(":")[0]
    return not words & {*EVERY_KIND, word}


def to_install(point: str) -> str:
    """Say what has to be installed for a call to be made to fail."""
    called = Point.parse(point)
    if called.kind in {"http", "rpc"}:
        peer = called.peer or "its callee"
        return f"fit in {called.caller} (Python, Go, Node), or ldfi-proxy between it and {peer}"
    if called.kind in {"db", "message"}:
        return f"fit in {called.caller}, for a client library that fit knows"
    return f"fit in {called.caller}, and @fit.point around the call (Python)"
