"""What a class's unperturbed traffic has shown: its evidence for free, and its steady state.

Two unperturbed requests of one class may differ because one of them hit a cache. That is variety,
not redundancy: the second request had no alternative. So good requests are grouped by the set of
points that failed in them, by nature, and how, and a group's frequent supports count as one
(design, section 4, rules 3, 4 and 8).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ldfi.experiments.domain.traffic.baseline import Baseline
from ldfi.experiments.domain.traffic.class_suspects import Suspected
from ldfi.experiments.domain.traffic.device_returns import Returns
from ldfi.experiments.domain.traffic.interned_names import Interned, faults_at, names_at
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.experiments.domain.traffic.report_share import Reporting
from ldfi.experiments.domain.traffic.request_frequency import Frequency
from ldfi.experiments.domain.traffic.topology import Topology
from ldfi.fit.protocol.points import Point
from ldfi.lineage.blame import FailureRecord
from ldfi.lineage.classes import CONSISTENT
from ldfi.lineage.evidence import in_order
from ldfi.lineage.lineage import Lineage
from ldfi.lineage.shapes import Shape
from ldfi.lineage.unseen_calls import NOTHING, Unseen

Faults = frozenset[str]

FREQUENT = 0.01
"""Share of a group's requests above which a support counts as frequent."""

NATURAL_EVIDENCE = 20
"""Requests with the same natural failure that it takes to speak for all requests of the class: with
fewer, a path taken by some (a cache miss, say) may by chance not be among them."""

BY_CHANCE = 0.001
"""Probability up to which it is no chance that none of some requests called a point."""

STEADY_OUTCOMES = 200
"""Newest outcomes that make up the steady state."""

Aside = Literal["detached", "unseen", "late", "parentless", "loose"]
WHY_ASIDE: Final[dict[Aside, str]] = {
    "detached": "no request waits for it",
    "unseen": "what became of its messages was not seen",
    "late": "ended after its trace was judged",
    "parentless": "its spans name no parents",
    "loose": "runs in a trace of its own: perhaps a call of these requests without their context",
}
"""Why something that happens in requests of a class is not looked at."""

STEADY_SECONDS = 600.0
"""How old they may be: what went well last night says nothing of now."""

RATE_OUTCOMES, RATE_SECONDS = 10, 60.0
"""Outcomes, over so many seconds, that it takes to say how many come; or else a full house."""

RULES = 3
"""Which rules made a record. Under the first ones every failure was taken for an error, under the
second an answer 503 for one."""

MOST = 1_000
"""Different groups, and different supports of one, that are kept. Traffic without structure must
not exhaust memory, and could teach nothing."""


@dataclass(slots=True)
class _Group:
    """Good requests in which the same points failed: relied-on faults → count and exemplar."""

    counts: Counter[Faults] = field(default_factory=Counter)
    exemplars: dict[Faults, str] = field(default_factory=dict)
    _rest: Faults = frozenset()

    def add(self, relied_on: Faults, trace_id: str, count: int) -> None:
        if relied_on not in self.counts and len(self.counts) >= MOST:
            relied_on = self._merged(relied_on)
        self.counts[relied_on] += count
        self.exemplars.setdefault(relied_on, trace_id)

    def copy(self) -> _Group:
        return _Group(self.counts.copy(), dict(self.exemplars), self._rest)

    def _merged(self, relied_on: Faults) -> Faults:
        """Return the union that stands for all supports beyond the limit, this one included.

        A clause that is too large costs experiments; one that is too small hides hypotheses.
        """
        before, self._rest = self._rest, self._rest | relied_on
        if before in self.exemplars and before != self._rest:
            self.counts[self._rest] += self.counts.pop(before)
            self.exemplars.setdefault(self._rest, self.exemplars.pop(before))
        return self._rest


@dataclass(frozen=True, slots=True)
class Survived:
    """Faults that nature tried: so many good requests went without these points."""

    failed: Faults
    requests: int
    trace_id: str

    @property
    def proves(self) -> bool:
        """Return whether there were enough of them to count as evidence."""
        return self.requests >= NATURAL_EVIDENCE


@dataclass(frozen=True, slots=True)
class Steady:
    """Bystanders of late: how many outcomes are known, and the share of them that is good; 1 where
    there are none."""

    outcomes: int
    rate: float


@dataclass(slots=True)
class Traffic:
    """Evidence from requests of one class that nobody injected anything into."""

    good: int = 0
    topology: Topology = field(default_factory=Topology)
    suspected: Suspected = field(default_factory=Suspected)
    """Whom requests blame that failed by themselves."""
    _groups: dict[Faults, _Group] = field(default_factory=dict)
    _undisturbed: Counter[tuple[Faults, Faults]] = field(default_factory=Counter)
    _down: Faults | None = None
    """What was lost in every good request so far: that is down already."""
    _places: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Point → the places that it had in the order of calls, in sum, and how many those are."""
    _aside: Counter[tuple[Aside, str]] = field(default_factory=Counter)
    baseline: Baseline = field(default_factory=Baseline, compare=False)
    """How badly it fares by itself, for a while."""
    returns: Returns = field(default_factory=Returns, compare=False)
    """How soon devices come again. Not kept: it is soon known anew."""
    _newest: deque[Faults] = field(
        default_factory=lambda: deque(maxlen=STEADY_OUTCOMES), compare=False
    )
    """What the newest requests called. Not kept: it is soon known anew."""
    _recent: deque[tuple[float, bool]] = field(
        default_factory=lambda: deque(maxlen=STEADY_OUTCOMES)
    )
    """When an outcome came to be known (Unix seconds), and whether it was good."""
    reporting: Reporting = field(default_factory=Reporting, compare=False)
    """On how many of its requests devices report. Not kept either."""
    frequency: Frequency = field(default_factory=Frequency, compare=False)
    """How often its devices ask. Nor is that."""
    unseen: Unseen = field(default=NOTHING, compare=False)
    """What cannot be seen of its requests, as of the last look."""
    taken_in: Faults = frozenset()
    """Points whose calls run in traces of their own, and a person has said that they are of these
    requests."""

    @classmethod
    def of(cls, shapes: Iterable[Shape], topology: Topology, since: float, until: float) -> Traffic:
        """Make the traffic that went in these shapes, through a topology learned already.

        When each request came is not known any more: they are spread over ``since`` to ``until``,
        in Unix seconds.
        """
        traffic = cls(topology=topology)
        total = failed = 0
        for shape in shapes:
            total += shape.count
            if shape.outcome == "failed":
                failed += shape.count
            else:
                traffic._learn(shape.lineage, shape.count)
        newest = min(total, STEADY_OUTCOMES)
        apart = (until - since) / total if total else 0.0
        spread = _spread(newest, failed / total if total else 0)
        traffic._recent.extend(
            (until - apart * (newest - number), good) for number, good in enumerate(spread, start=1)
        )
        return traffic

    def observe(self, observation: Observation, now: float, *, near: bool = False) -> None:
        """Learn from one request of the class. Degraded ones prove no point dispensable.
        ``near``: an experiment may have affected it."""
        outcome = observation.outcome
        self.returns.add(outcome.device, observation.lineage.start)
        self._recent.append((now, outcome.success))
        self._newest.append(observation.lineage.called)
        self.frequency.add(outcome.device, now)
        if not near:
            self.baseline.add(outcome.device, now, success=outcome.success)
        self.topology.learn(observation.lineage)
        if observation.outcome.success and not observation.outcome.degraded:
            self._learn(observation.lineage, 1)
        elif not observation.outcome.success and self.good >= NATURAL_EVIDENCE:
            self.suspected.learn(observation.lineage, self.usual_support, self.record)

    def copy(self) -> Traffic:
        """Return a copy to read in a thread while more requests come in."""
        return Traffic(
            self.good,
            self.topology.copy(),
            self.suspected.copy(),
            {failed: group.copy() for failed, group in self._groups.items()},
            self._undisturbed.copy(),
            self._down,
            dict(self._places),
            self._aside.copy(),
            self.baseline.copy(),
            self.returns,
            self._newest.copy(),
            self._recent.copy(),
            self.reporting.copy(),
            self.frequency,
            self.unseen,
            self.taken_in,
        )

    def frequent(self) -> Iterator[tuple[Faults, Faults, str]]:
        """List frequent supports: (faults relied on, natural failures, exemplar trace) of each."""
        for failed, group in self._groups.items():
            total = group.counts.total()
            if failed and total < NATURAL_EVIDENCE:
                continue
            for relied_on, count in group.counts.items():
                if failed or count >= FREQUENT * total:
                    yield relied_on, failed, group.exemplars[relied_on]
            if failed:
                called = _called(frozenset().union(*group.counts))
                by_chance = self.unmet(called, total)
                if by_chance:
                    yield by_chance, failed, next(iter(group.exemplars.values()))

    def unmet(
        self, called: Faults, requests: int, called_when_failed: Faults = frozenset()
    ) -> Faults:
        """Return faults at points that these good requests may have avoided by chance, since
        only some requests call them: nothing is proved of these.

        ``called``: the points that they did call. ``called_when_failed``: those
        that only failed requests called, which is no chance.
        """
        total = self.good
        seldom = {
            point
            for point, count in self.reached().items()
            if point not in called
            and FREQUENT * total <= count
            and (point in called_when_failed or (1 - count / total) ** requests > BY_CHANCE)
        }
        return frozenset(fault for fault in self._base() if fault.partition("@")[2] in seldom)

    def _base(self) -> Faults:
        """List the faults on whose absence requests rely in which nothing failed."""
        group = self._groups.get(self._down or frozenset())
        counts = group.counts if group else Counter[Faults]()
        enough = FREQUENT * counts.total()
        return frozenset().union(*(each for each, count in counts.items() if count >= enough))

    def reached(self) -> Counter[str]:
        """Point → good requests that called it and waited."""
        reached: Counter[str] = Counter()
        for group in self._groups.values():
            for relied_on, count in group.counts.items():
                for fault in relied_on:
                    kind, _, point = fault.partition("@")
                    if kind == "delay":  # whoever called a point relied on its not hanging
                        reached[point] += count
        return reached

    def survived(self) -> list[Survived]:
        """Return what failed by itself in good requests, the commonest first."""
        survived = [
            Survived(failed, group.counts.total(), next(iter(group.exemplars.values())))
            for failed, group in self._groups.items()
            if failed
        ]
        return sorted(survived, key=lambda each: (-each.requests, sorted(each.failed)))

    def supports(self) -> Counter[frozenset[str]]:
        """Every support of a request in which nothing failed → how many had just that."""
        counts: Counter[frozenset[str]] = Counter()
        for (support, _), count in self._undisturbed.items():
            counts[support] += count
        return counts

    def usual_support(self) -> frozenset[str]:
        """Every point that a request in which nothing failed may rely on."""
        return frozenset().union(*(support for support, _ in self._usual()))

    def record(self) -> FailureRecord:
        """Return the failures for blame: those that good requests survived, and those seen alone
        in failed ones."""
        survived: Counter[str] = Counter()
        for failed, group in self._groups.items():
            survived.update(dict.fromkeys(failed, group.counts.total()))
        alone = {min(p): n for p, n in self.suspected.counts.items() if len(p) == 1}
        return FailureRecord(survived, alone, self._always(), self.good)

    def _always(self) -> list[str]:
        called: Counter[str] = Counter()
        for (_, points), count in self._undisturbed.items():
            called.update(dict.fromkeys(points, count))
        enough = CONSISTENT * self._undisturbed.total()
        always = [point for point in self._places if called[point] >= enough]
        return sorted(always, key=lambda p: (self._places[p][0] / self._places[p][1], p))

    def usually_called(self) -> frozenset[str]:
        """Every point that such a request may call at all."""
        return frozenset().union(*(called for _, called in self._usual()))

    def not_looked_at(self) -> dict[str, str]:
        """Return parts of these requests that are not part of their outcome, and why."""
        waited = self.reached()
        return {
            name: WHY_ASIDE[why]
            for (why, name), count in sorted(self._aside.items())
            if not (why == "detached" and name in waited)
            and not (why == "unseen" and count < FREQUENT * self.good)
        }

    def after_answer(self) -> Faults:
        """Return the points that requests reach only where nobody waits for them any more: in work
        that begins when they are answered, or that outlasts them.

        Calls that began after their trace was judged are among them.
        """
        waited = self.reached().keys()
        return frozenset(
            name
            for (why, name), count in self._aside.items()
            if (why == "detached" or (why == "late" and Point.parse(name).caller != "unknown"))
            and count >= FREQUENT * self.good
            and name not in waited
        )

    def set_aside(self, why: Aside, names: Iterable[str], count: int = 1) -> None:
        """Count parts of requests that were not read."""
        for name in names:
            if (why, name) in self._aside or len(self._aside) < MOST:
                self._aside[why, name] += count

    def success_rate(self) -> float:
        """Share of good outcomes among the newest; 1 before there are any."""
        good = [success for _, success in self._recent]
        return sum(good) / len(good) if good else 1.0

    def steady(self, now: float, within: float = STEADY_SECONDS) -> Steady:
        """Count the newest outcomes that are not too old to say how things are."""
        good = [success for at, success in self._recent if at > now - within]
        return Steady(len(good), sum(good) / len(good) if good else 1.0)

    def per_second(self, now: float) -> float | None:
        """Return outcomes a second of late; None if there were too few.

        Of a class that is silent nothing is known: perhaps it is we who were away.
        """
        times = [at for at, _ in self._recent if at > now - STEADY_SECONDS]
        seconds = now - times[0] if times else 0.0
        busy = len(times) == STEADY_OUTCOMES and seconds > 0
        if not busy and (len(times) < RATE_OUTCOMES or seconds < RATE_SECONDS):
            return None
        return len(times) / seconds

    def to_json(self) -> dict[str, Any]:
        """Everything, in numbers: places in the list of ``points``."""
        points = Interned()
        groups = [
            [
                points.faults(failed),
                [[points.faults(s), n, group.exemplars[s]] for s, n in group.counts.items()],
            ]
            for failed, group in self._groups.items()
        ]
        undisturbed = [
            [points.places(support), points.places(called), count]
            for (support, called), count in self._undisturbed.items()
        ]
        return {
            "rules": RULES,
            "good": self.good,
            "recent": "".join("01"[success] for _, success in self._recent),
            "recent_at": [at for at, _ in self._recent],
            "groups": groups,
            "undisturbed": undisturbed,
            "places": [[points.place(p), *sums] for p, sums in self._places.items()],
            "aside": [[*each, count] for each, count in self._aside.items()],
            "topology": self.topology.to_json(points),
            "suspected": self.suspected.to_json(points),
            **({"unseen": self.unseen.to_json()} if self.unseen.gaps else {}),
            **({"taken_in": sorted(self.taken_in)} if self.taken_in else {}),
            "points": points.names,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Traffic:
        """Read what :meth:`to_json` wrote. Raises KeyError, TypeError or IndexError otherwise.

        What nature had tried is left out where the record does not say how calls failed: traffic
        will show it again.
        """
        points = list(data["points"])
        traffic = cls(
            data["good"],
            Topology.from_json(data["topology"], points),
            Suspected.from_json(data.get("suspected", ()), points),
            unseen=Unseen.from_json(data.get("unseen")),
            taken_in=frozenset(data.get("taken_in", ())),
        )
        times = data.get("recent_at") or [0.0] * len(data["recent"])  # once nobody noted when
        traffic._recent.extend(
            (at, good == "1") for at, good in zip(times, data["recent"], strict=True)
        )
        for failed, supports in data["groups"]:
            if failed and data.get("rules") != RULES:
                continue
            group = traffic._groups[faults_at(points, failed)] = _Group()
            for faults, count, trace_id in supports:
                relied_on = faults_at(points, faults)
                group.counts[relied_on] = count
                group.exemplars[relied_on] = trace_id
        if data["groups"]:
            traffic._down = frozenset.intersection(
                *(faults_at(points, failed) for failed, _ in data["groups"])
            )
        for support, called, count in data["undisturbed"]:
            traffic._undisturbed[names_at(points, support), names_at(points, called)] = count
        for place, total, times in data.get("places", ()):
            traffic._places[points[place]] = total, times
        for why, name, count in data.get("aside", ()):
            traffic._aside[why, name] = count
        return traffic

    def _learn(self, lineage: Lineage, count: int) -> None:
        """Good requests: what they relied on, and what failed in them."""
        self.good += count
        self.set_aside("detached", lineage.detached, count)
        self.set_aside("unseen", lineage.unseen, count)
        self.set_aside("parentless", lineage.parentless, count)
        failed = lineage.lost
        group = self._groups.get(failed)
        if group is None and len(self._groups) < MOST:
            group = self._groups[failed] = _Group()
            self.suspected.look_again()
        if group is not None:
            group.add(lineage.relied_on, lineage.trace_id, count)
        shape = (lineage.support, lineage.called)
        down = failed if self._down is None else self._down & failed
        if down != self._down:
            self._undisturbed.clear()
            self._down = down
        if failed == down and (shape in self._undisturbed or len(self._undisturbed) < MOST):
            if shape not in self._undisturbed:
                self._note_order(lineage)
            self._undisturbed[shape] += count

    def _note_order(self, lineage: Lineage) -> None:
        for place, point in enumerate(in_order(lineage.tree) if lineage.trace.spans else ()):
            places, times = self._places.get(point, (0, 0))
            self._places[point] = places + place, times + 1

    def _usual(self) -> list[tuple[Faults, Faults]]:
        total = self._undisturbed.total()
        return [shape for shape, count in self._undisturbed.items() if count >= FREQUENT * total]


def _called(relied_on: Faults) -> Faults:
    """Return the points that requests called, as delays: every caller relied on its call not
    hanging."""
    return frozenset(p for kind, _, p in (f.partition("@") for f in relied_on) if kind == "delay")


def _spread(outcomes: int, failing: float) -> Iterator[bool]:
    """Return so many outcomes with a share of failures spread evenly."""
    for i in range(outcomes):
        yield int((i + 1) * failing + 0.5) == int(i * failing + 0.5)


def good_of_late(traffic: Traffic, outcomes: int) -> bool:
    """Return whether so many of the newest outcomes are all good."""
    newest = list(traffic._recent)[-outcomes:]
    return len(newest) == outcomes and all(success for _, success in newest)


def calling(traffic: Traffic, points: Faults) -> tuple[int, int]:
    """Of the newest requests, how many called one of these points, and of how many."""
    reached = sum(not points.isdisjoint(called) for called in traffic._newest)
    return reached, len(traffic._newest)
