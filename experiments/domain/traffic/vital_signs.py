"""Vital signs: what the traces of the last minute say of everything that requests reach.

Traffic tells for ever what requests rely on; this tells how it is now: who fails by nature, who
answers later than usual, who answered at all. Of each kind of request only some are looked at in a
second, so that a minute costs the same however many there are. Nothing of it is kept: it is soon
known anew.

**Failing.** The calls that failed with no failed call inside, so that a service is not taken for
down because its database is. The newest calls speak: those of :data:`FRESH` seconds, or the newest
:data:`NEWEST` where there were fewer. So a node that is back counts as down until most of them
succeed, or so many in a row.

**Late.** A call takes long when it takes longer than usual by a factor of two and by four robust
standard deviations (the median of deviations from the median, of logarithms), both of which a few
slow calls do not move. A point is late where more calls take long than usually do, and than chance
explains, and no other late one inside is the reason. What is usual is learned slowly, over an hour,
and never from the last minute.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Final, Literal, NamedTuple

from ldfi.fit.protocol.kinds import words_with
from ldfi.fit.protocol.points import Point
from ldfi.lineage.lineage import Lineage
from ldfi.lineage.tree import Call, Tree

RECENT: Final = 60.0
"""How old, in seconds, may be what says how things are now."""
FRESH: Final = 5.0
NEWEST: Final = 20
SHARE: Final = 0.2
"""Of the newest calls, the share that must fail, or take long beyond what is usual."""
LEAST: Final = 3
"""So many must, at least; or all, where there were not as many."""
REFUSED: Final = 2
"""So many in a row that nobody answered: where nobody listens it takes less to say so."""
_NOBODY: Final = frozenset(
    {
        *words_with("nobody"),
        *("exception:ConnectionRefusedError", "exception:ECONNREFUSED"),
        *("exception:ConnectException", "exception:ConnectError"),
    }
)
"""Kinds of failure that are a connection refused, or what stands for it."""
LOOKED_AT: Final = 10
"""Requests of one kind that are looked at in a second."""
KEPT: Final = 600
"""Requests that are remembered of one point: those of a minute."""
MOST: Final = 5_000
"""Points, kinds and shapes that are remembered; when there are more, all are forgotten."""

FACTOR: Final = math.log(2)
SIGMAS: Final = 4.0
DEVIATIONS: Final = SIGMAS * 1.4826
"""So many standard deviations, told by the median deviation, as of a normal distribution."""
SETTLED: Final = 20
"""Durations from which on it is known what is usual."""
USUAL: Final = 240
USUAL_SECONDS: Final = 15.0
"""So many durations are what is usual, one taken every so often: those of an hour."""


class _Seen(NamedTuple):
    """What one request showed of a point. ``at``: when its last span was heard of; ``refused``:
    calls that nobody was there to answer; ``seconds``: how long its slowest good call took."""

    at: float
    made: int
    failed: int
    refused: int
    seconds: float | None
    trace_id: str


class _Calls(NamedTuple):
    """Calls of a point that were waited for, those that failed by themselves, those of them that
    nobody was there to answer."""

    made: int
    failed: int
    refused: int


@dataclass(frozen=True, slots=True)
class Sign:
    """Something ails, and the evidence: of ``calls`` of late to these points ``ailing`` failed, or
    took long. ``name``: the service or system; the point itself where others of it are well.
    ``latest``: Unix seconds, of the newest of them, in trace ``trace_id``. ``seconds``, ``usual``:
    how long a call that is late takes, and did before (medians)."""

    name: str
    state: Literal["failing", "late"]
    points: tuple[str, ...]
    calls: int
    ailing: int
    latest: float
    trace_id: str
    seconds: float | None = None
    usual: float | None = None

    @property
    def words(self) -> str:
        """Say it to people."""
        tail = f"{self.ailing} of the newest {self.calls} calls, the last in trace {self.trace_id}"
        if self.seconds is None or self.usual is None:
            return f"{self.name} fails now: {tail}"
        took = f"{1000 * self.seconds:.3g} ms instead of {1000 * self.usual:.3g}"
        return f"{self.name} answers late now: {took} in {tail}"


@dataclass(frozen=True, slots=True)
class Signs:
    """All of them at one moment. ``answered``: points, services and systems of which a call went
    well within the last minute."""

    failing: tuple[Sign, ...] = ()
    late: tuple[Sign, ...] = ()
    answered: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Pulse:
    """What is remembered of one point. ``above``: the points inside which it was called."""

    system: str
    above: set[str] = field(default_factory=set)
    answered_at: float = -math.inf
    seen: deque[_Seen] = field(default_factory=lambda: deque(maxlen=KEPT))
    usual: deque[float] = field(default_factory=lambda: deque(maxlen=USUAL))
    usual_at: float = -math.inf
    young: deque[tuple[float, float]] = field(default_factory=deque)
    """Durations, one a second at most, that are not old enough to be what is usual."""

    def take(self, seen: _Seen) -> None:
        self.seen.append(seen)
        if seen.failed < seen.made:
            self.answered_at = seen.at
        if seen.seconds is not None and not (self.young and seen.at < self.young[-1][0] + 1):
            self.young.append((seen.at, _log(seen.seconds)))
        while self.young and self.young[0][0] < seen.at - RECENT:
            self._age(*self.young.popleft())

    def copy(self) -> _Pulse:
        """Return a copy of the current state, without what is not usual yet."""
        above, seen, usual = self.above.copy(), self.seen.copy(), self.usual.copy()
        return _Pulse(self.system, above, self.answered_at, seen, usual, self.usual_at)

    def newest(self, now: float, beside: Iterable[_Seen]) -> list[_Seen]:
        """Return the calls of the last seconds, or so many within the last minute. ``beside``:
        calls that are not known for good."""
        recent = [each for each in (*self.seen, *beside) if each.at >= now - RECENT]
        recent.sort(key=lambda each: each.at)
        fresh = sum(each.at >= now - FRESH for each in recent)
        return recent[-max(fresh, NEWEST) :]

    def failing(self, newest: list[_Seen]) -> list[_Seen]:
        """Return which of the newest failed, if they are enough to say that the point does."""
        bad = [each for each in newest if each.failed]
        if len(newest) >= NEWEST and not any(each.failed for each in newest[-NEWEST:]):
            return []
        made, failed = sum(each.made for each in newest), sum(each.failed for each in newest)
        gone = all(each.failed == each.made for each in newest[-LEAST:])
        gone = gone or all(each.refused == each.made for each in newest[-REFUSED:])
        return bad if gone or (failed >= LEAST and failed >= SHARE * made) else []

    def late(self, newest: list[_Seen]) -> list[_Seen]:
        """Return which of the newest took long, if they are enough to say that the point does."""
        if len(self.usual) < SETTLED:
            return []
        middle = median(self.usual)
        spread = DEVIATIONS * median(abs(each - middle) for each in self.usual)
        limit = middle + max(FACTOR, spread)
        timed = [each for each in newest if each.seconds is not None]
        slow = [each for each in timed if _log(each.seconds) > limit]
        usually = (sum(each > limit for each in self.usual) + 1) / (len(self.usual) + 2)  # Laplace
        doubt = len(timed) * (1 + len(timed) / len(self.usual))
        chance = SIGMAS * math.sqrt(usually * (1 - usually) * doubt)
        most = usually * len(timed) + max(SHARE * len(timed), chance)
        return slow if len(slow) >= max(LEAST, most) else []

    def _age(self, at: float, took: float) -> None:
        """Add older calls to what is usual: at first every one, later few."""
        if len(self.usual) < SETTLED or at >= self.usual_at + USUAL_SECONDS:
            self.usual.append(took)
            self.usual_at = at


class Vitals:
    """Learns from every request that nobody injected into, its class known or not."""

    def __init__(self) -> None:
        self._pulses: dict[str, _Pulse] = {}
        self._looked: dict[tuple[str, str, bool], tuple[int, int]] = {}
        self._shapes: dict[int, tuple[Mapping[str, str], Mapping[str, _Calls]]] = {}
        """By the identity of their ``callees``, which lineages of one shape share."""

    def observe(self, lineage: Lineage, now: float) -> None:
        """Learn from one request. Injected ones only prove that points are there."""
        treated = bool(lineage.experiment) and lineage.arm != "control"
        if not self._looks(lineage, treated, now):
            return
        counts = self._counts(lineage)
        if treated:
            for point in lineage.support:
                self._pulses[point].answered_at = now
            return
        for point, seen in _shown(lineage, counts, now):
            self._pulses[point].take(seen)

    def copy(self) -> Vitals:
        """Copy it as it stands, for whoever asks for signs in a thread while more comes in."""
        copied = Vitals()
        copied._pulses = {point: pulse.copy() for point, pulse in self._pulses.items()}
        return copied

    def signs(self, now: float, pending: Iterable[Lineage] = ()) -> Signs:
        """Return the current signs (``now``: Unix seconds). ``pending``: requests whose traces
        are not whole yet."""
        beside = defaultdict[str, list[_Seen]](list)
        for lineage in pending:
            if not (lineage.experiment or lineage.fired):
                heard = lineage.trace.heard
                counts = self._learned(lineage.tree, lineage.callees)
                for point, seen in _shown(lineage, counts, now if heard is None else heard):
                    beside[point].append(seen)
        newest = {p: pulse.newest(now, beside[p]) for p, pulse in self._pulses.items()}
        failing = self._ailing(newest, _Pulse.failing)
        late = self._ailing(newest, _Pulse.late)
        worse = failing.keys() | late.keys()
        explained = set().union(*(self._pulses[point].above for point in worse))
        late = {p: bad for p, bad in late.items() if p not in failing and p not in explained}
        answered = {p for p, each in self._pulses.items() if each.answered_at >= now - RECENT}
        return Signs(
            tuple(self._named("failing", failing, newest)),
            tuple(self._named("late", late, newest)),
            frozenset(answered | {self._pulses[point].system for point in answered}),
        )

    def _looks(self, lineage: Lineage, treated: bool, now: float) -> bool:
        """Return whether to read this request: only so many of a kind are read each second."""
        kind, second = (lineage.service, lineage.route, treated), int(now)
        before, looked = self._looked.get(kind, (second, 0))
        looked = looked + 1 if before == second else 1
        if len(self._looked) > MOST:
            self._looked.clear()
        self._looked[kind] = (second, looked)
        return looked <= LOOKED_AT

    def _counts(self, lineage: Lineage) -> Mapping[str, _Calls]:
        """Count the calls of each point that were waited for."""
        known = self._shapes.get(id(lineage.callees))
        if known is not None:
            return known[1]
        if len(self._shapes) > MOST or len(self._pulses) > MOST:
            self._shapes.clear()
            self._pulses.clear()
        counts = self._learned(lineage.tree, lineage.callees)
        self._shapes[id(lineage.callees)] = lineage.callees, counts
        return counts

    def _learned(self, tree: Tree, callees: Mapping[str, str]) -> dict[str, _Calls]:
        made, failed, refused = Counter[str](), Counter[str](), Counter[str]()
        pending = [(call, frozenset[str]()) for call in tree.calls if not call.detached]
        while pending:
            call, above = pending.pop()
            pulse = self._pulses.setdefault(call.point, _Pulse(""))
            told = callees.get(call.point, "")
            pulse.system = told or pulse.system or Point.parse(call.point).peer or call.point
            pulse.above |= above - {call.point}
            made[call.point] += 1
            failed[call.point] += _by_itself(call)
            refused[call.point] += call.failure in _NOBODY and _by_itself(call)
            inner = above | {call.point}
            pending.extend((each, inner) for each in call.calls if not each.detached)
        return {p: _Calls(count, failed[p], refused[p]) for p, count in made.items()}

    def _ailing(
        self,
        newest: Mapping[str, list[_Seen]],
        judge: Callable[[_Pulse, list[_Seen]], list[_Seen]],
    ) -> dict[str, list[_Seen]]:
        judged = {point: judge(self._pulses[point], seen) for point, seen in newest.items()}
        return {point: bad for point, bad in judged.items() if bad}

    def _named(
        self,
        state: Literal["failing", "late"],
        ailing: Mapping[str, list[_Seen]],
        newest: Mapping[str, list[_Seen]],
    ) -> Iterable[Sign]:
        """Return the system if all its points called of late ail, else the points."""
        systems = defaultdict(list)
        for point in ailing:
            systems[self._pulses[point].system].append(point)
        for system, points in sorted(systems.items()):
            latest = max(newest[point][-1].at for point in points)
            well = any(
                pulse.system == system
                and point not in ailing
                and newest[point]
                and newest[point][-1].at >= latest - FRESH
                for point, pulse in self._pulses.items()
            )
            for group in [[point] for point in sorted(points)] if well else [sorted(points)]:
                yield self._sign(group[0] if well else system, state, group, ailing, newest)

    def _sign(
        self,
        name: str,
        state: Literal["failing", "late"],
        points: list[str],
        ailing: Mapping[str, list[_Seen]],
        newest: Mapping[str, list[_Seen]],
    ) -> Sign:
        bad = sorted((e for p in points for e in ailing[p]), key=lambda each: each.at)
        late = state == "late"
        usual = [each for point in points for each in self._pulses[point].usual]
        return Sign(
            name,
            state,
            tuple(points),
            calls=sum(each.made for point in points for each in newest[point]),
            ailing=len(bad) if late else sum(each.failed for each in bad),
            latest=bad[-1].at,
            trace_id=bad[-1].trace_id,
            seconds=median(each.seconds or 0.0 for each in bad) if late else None,
            usual=math.exp(median(usual)) if late else None,
        )


def _shown(
    lineage: Lineage, counts: Mapping[str, _Calls], at: float
) -> Iterator[tuple[str, _Seen]]:
    """Return what a request shows of each point that it called."""
    took: dict[str, float] = {}
    for span in lineage.trace.spans:
        what = span.operation
        if what.point is not None and not what.failed:
            took[what.point] = max(took.get(what.point, 0.0), (span.end - span.start) / 1e9)
    for point, calls in counts.items():
        seconds = took.get(point) if calls.failed < calls.made else None
        yield point, _Seen(at, *calls, seconds, lineage.trace_id)


def _by_itself(call: Call) -> bool:
    return call.failed and not any(each.failed and not each.detached for each in call.calls)


def _log(seconds: float | None) -> float:
    return math.log(max(seconds or 0.0, 1e-9))
