"""The registry of points: who can make which calls fail, as injectors say it and as they prove it.

Three cases, by the caller of a point:

- *A report is known.* Its points are those that one of its patterns names, with the kinds that it
  names, where their calls are made by a library that it has hold of; and those at which something
  has fired, or would have. All others have no injector. Traffic tells which libraries call a point
  (:mod:`ldfi.lineage.attributes`). Where it does not, or where the report is of kinds only, as
  older injectors write them, the patterns alone count.
- *None is known*: an older injector, or none at all. Nothing is concluded: whoever arms a fault
  there finds out, and where it never fires the run sets it aside
  (:mod:`ldfi.experiments.domain.campaign.experiment_tally`).
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
from typing import Any, Final, TypeVar

from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.fit.protocol.points import Point
from ldfi.fit.protocol.reach import LIBRARY, InjectorReport, PointPattern

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

MOST_LIBRARIES: Final = 16
"""Libraries that are remembered of one point."""

NO_CONTEXT: Final = (
    "nothing until the context is passed on to what makes this call, which runs in a trace of its"
    " own"
)
"""What has to be installed for a call that has no context."""

AFTER_ANSWER: Final = (
    "nothing: a fault ends with its request, and this call begins when that is answered or goes on"
    " beside it. Have the request wait for it, or leave it out on purpose: protected_points"
)
"""What has to be installed for a call that begins after the answer."""

_Key = TypeVar("_Key")

EVERY_KIND: Final = frozenset({"*"})
"""In the place of words of kinds: every kind that such a point can have."""


@dataclass(slots=True)
class _Caller:
    """``reaches``: (who says so, pattern) → when last. ``proved``: point → when last.
    ``libraries``: point → which call it, and when each was seen last.
    ``kept``: when it was put on record last; None where what is there is not what is known."""

    reaches: OrderedDict[tuple[str, str], float] = field(default_factory=OrderedDict)
    proved: OrderedDict[str, float] = field(default_factory=OrderedDict)
    libraries: OrderedDict[str, dict[str, float]] = field(default_factory=OrderedDict)
    kept: float | None = None

    def reports(self) -> dict[str, list[PointPattern]]:
        """List the patterns of each injector."""
        told: dict[str, list[PointPattern]] = {}
        for injector, pattern in self.reaches:
            told.setdefault(injector, []).append(PointPattern.parse(pattern))
        return told

    def words(self, point: str) -> frozenset[str]:
        """Return which kinds, by their words, are possible at a point."""
        called_by = self.callers_of(point)
        named = [
            each
            for patterns in self.reports().values()
            if _has_hold(patterns, called_by)
            for each in _naming(patterns, point)
        ]
        if not named and point in self.proved:
            return EVERY_KIND
        return frozenset().union(
            *(EVERY_KIND if each.kinds is None else each.kinds for each in named)
        )

    def callers_of(self, point: str) -> frozenset[str]:
        """Name the libraries that call a point; none where some of its calls do not say."""
        known = self.libraries.get(point, {})
        return frozenset() if "" in known else frozenset(known)


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
            said = (report.injector, str(reach))
            new = self._note(caller.reaches, said, now, MOST_PATTERNS)
            self._noted(caller, now, new=new)

    def prove(self, faults: Iterable[str], now: float) -> None:
        """Take in that these (``kind@point``) fired, or would have."""
        for point in {fault.partition("@")[2] for fault in faults}:
            caller = self._caller(point.partition(">")[0])
            self._noted(caller, now, new=self._note(caller.proved, point, now, MOST_PROVED))

    def meet(self, libraries: Mapping[str, frozenset[str]], now: float) -> None:
        """Take in by which client libraries points were called in a request."""
        for point, names in libraries.items():
            caller = self._callers.get(point.partition(">")[0])
            known = caller.libraries.get(point, {}) if caller is not None else {}
            fresh = names - known.keys()
            if fresh or any(now - known[name] >= STALE for name in names):
                self._met(point, names, now, new=bool(fresh))

    def _met(self, point: str, names: frozenset[str], now: float, *, new: bool) -> None:
        caller = self._caller(point.partition(">")[0])
        seen = {**caller.libraries.get(point, {}), **dict.fromkeys(names, now)}
        latest = sorted(seen, key=lambda name: (-seen[name], name))[:MOST_LIBRARIES]
        kept = {name: seen[name] for name in sorted(latest)}
        self._note(caller.libraries, point, kept, MOST_PROVED)
        self._noted(caller, now, new=new)

    def expire(self, now: float) -> None:
        """Forget injectors that have not reported for long."""
        for name, caller in list(self._callers.items()):
            lapsed = [said for said, at in caller.reaches.items() if at < now - HEARD]
            faded = [point for point, at in caller.proved.items() if at < now - PROVED]
            for key in lapsed:
                del caller.reaches[key]
            for point in faded:
                del caller.proved[point]
            unseen = _forget_unseen(caller, now - PROVED)
            if lapsed or faded or unseen:
                self._noted(caller, now, new=True)
            if not caller.reaches and not caller.proved and not caller.libraries:
                self._forget(name)

    def words(self, point: str) -> frozenset[str] | None:
        """Return which kinds, by their words, are possible at a point: :data:`EVERY_KIND`, some, or
        none at all where it has no injector; None where nobody knows."""
        if point not in self._words:
            caller = self._callers.get(point.partition(">")[0])
            known = caller is not None and caller.reaches
            if len(self._words) >= MOST_CALLERS:
                self._words.clear()
            self._words[point] = caller.words(point) if caller and known else None
        return self._words[point]

    def limits(self, points: Iterable[str]) -> Iterator[tuple[str, frozenset[str], str]]:
        """List the points at which not every kind is possible, with the words of those that are,
        and why none is, where that is known."""
        for point in sorted(points):
            words = self.words(point)
            if words is not None and not words & EVERY_KIND:
                yield point, words, "" if words else self.why_not(point)

    def without(self, points: Iterable[str]) -> dict[str, str]:
        """Return those of these points that have no injector, with what to install."""
        return {
            each: to_install(each, self.why_not(each))
            for each in sorted(points)
            if self.words(each) == frozenset()
        }

    def why_not(self, point: str) -> str:
        """Return why a point that has no injector has none, as far as more is known than that."""
        caller = self._callers.get(point.partition(">")[0])
        if caller is None:
            return ""
        strangers = caller.callers_of(point)
        if not strangers or not any(_naming(each, point) for each in caller.reports().values()):
            return ""
        are = "is" if len(strangers) == 1 else "are"
        return (
            f"{' and '.join(sorted(strangers))} {are} instrumented by OpenTelemetry and unknown to "
            f"fit in {point.partition('>')[0]}"
        )

    def by_kind_only(self) -> dict[str, list[str]]:
        """List by caller the injectors that do not say which libraries they have hold of: older
        ones, of which a point counts as reached that they may have no hold of."""
        told = {name: caller.reports() for name, caller in sorted(self._callers.items())}
        found = {
            name: [each for each in sorted(said) if not _libraries(said[each])]
            for name, said in told.items()
        }
        return {name: injectors for name, injectors in found.items() if injectors}

    def reports(self) -> dict[str, dict[str, list[str]]]:
        """List by caller who has reported, and the patterns of each."""
        told: dict[str, dict[str, list[str]]] = {}
        for name, caller in sorted(self._callers.items()):
            for injector, pattern in sorted(caller.reaches):
                told.setdefault(name, {}).setdefault(injector, []).append(pattern)
        return told

    def unkept(self) -> dict[str, dict[str, Any] | None]:
        """Return what to put on record, by caller; None: delete it."""
        return dict.fromkeys(self._gone) | {
            name: caller_to_json(caller)
            for name, caller in self._callers.items()
            if caller.kept is None
        }

    def kept(self, names: Iterable[str], now: float) -> None:
        """Note that what :meth:`unkept` returned for these is on record."""
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
                caller.reaches[injector, str(PointPattern.parse(pattern))] = at
            caller.proved.update(data["proved"])
            caller.libraries.update(
                (point, dict(seen)) for point, seen in data.get("libraries", {}).items()
            )
        return known

    def _caller(self, name: str) -> _Caller:
        if name not in self._callers:
            self._callers[name] = _Caller()
            self._gone.discard(name)
            if len(self._callers) > MOST_CALLERS:
                self._forget(next(iter(self._callers)))
        self._callers.move_to_end(name)
        return self._callers[name]

    def _note(self, known: OrderedDict[_Key, Any], key: _Key, value: Any, most: int) -> bool:
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
    """Return one caller's reports as JSON."""
    seen = [at for each in caller.libraries.values() for at in each.values()]
    return {
        "at": max([*caller.reaches.values(), *caller.proved.values(), *seen], default=0.0),
        "reaches": [[pattern, injector, at] for (injector, pattern), at in caller.reaches.items()],
        "proved": dict(caller.proved),
        "libraries": {point: dict(each) for point, each in caller.libraries.items()},
    }


def _libraries(patterns: Iterable[PointPattern]) -> list[str]:
    return [each.library for each in patterns if each.library]


def _has_hold(patterns: Iterable[PointPattern], called_by: frozenset[str]) -> bool:
    """Return whether an injector has hold of one of these libraries, as far as both are known."""
    held = _libraries(patterns)
    return not held or not called_by or matching(held, called_by) is not None


def _naming(patterns: Iterable[PointPattern], point: str) -> list[PointPattern]:
    """List the patterns that name a point."""
    rest = point.partition(">")[2]
    return [
        each
        for each in patterns
        if not each.rest.startswith(LIBRARY) and matching([each.rest], [rest]) is not None
    ]


def _forget_unseen(caller: _Caller, before: float) -> bool:
    """Forget libraries that were not seen since then; whether there were any."""
    kept = {
        point: {name: at for name, at in seen.items() if at >= before}
        for point, seen in caller.libraries.items()
    }
    forgot = any(len(kept[point]) < len(seen) for point, seen in caller.libraries.items())
    caller.libraries = OrderedDict((point, seen) for point, seen in kept.items() if seen)
    return forgot


def lacking(fault: str, words: frozenset[str]) -> bool:
    """Return whether a fault (``kind@point``) is none of these kinds."""
    word = fault.partition("@")[0].partition(":")[0]
    return not words & {*EVERY_KIND, word}


def to_install(point: str, why: str = "") -> str:
    """Return what to install so that a call can be made to fail; ``why``: what is missing, if
    known."""
    return f"{_injector_of(point)}: {why}" if why else _injector_of(point)


def _injector_of(point: str) -> str:
    called = Point.parse(point)
    if called.kind in {"http", "rpc"}:
        peer = called.peer or "its callee"
        return f"fit in {called.caller} (Python, Go, Node), or ldfi-proxy between it and {peer}"
    if called.kind in {"db", "message"}:
        return f"fit in {called.caller}, for a client library that fit knows"
    return f"fit in {called.caller}, and @fit.point around the call (Python)"
