"""What a campaign would cost, before it starts: questions, devices, devices hurt, its end. Pure.

The devices are promised: the service lets no campaign use more. All else is an estimate, and says
of what it is made; where there is nothing to make one of, it says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ldfi.analysis.phrases import said_shortly
from ldfi.analysis.words import listed
from ldfi.dashboards.work.open_hours import over
from ldfi.experiments.domain.gates.maintenance import EVERYTHING, Maintenance
from ldfi.experiments.domain.settings import DEFAULTS, Settings
from ldfi.experiments.scheduler.forecast import Forecast
from ldfi.fit.protocol.kinds import late

ASKED: Final = 6
"""Questions that are spelt out."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a kind of request that it would explore. ``questions``: hypotheses that are
    open within the bounds that a campaign has by default; ``all``: whether these are all of them.
    ``points``: what its requests usually call."""

    name: str
    questions: Sequence[Sequence[str]]
    all: bool
    callees: Mapping[str, str]
    points: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Past:
    """What experiments have done so far, all of them."""

    experiments: int = 0
    hurt: int = 0

    @property
    def each(self) -> float | None:
        """Devices that one has hurt on average; None before there was one."""
        return self.hurt / self.experiments if self.experiments else None


@dataclass(frozen=True, slots=True)
class Plan:
    """``alone``, ``together``: questions with one failure, and with several. ``at_least``: there
    may be more. ``devices``: at most; ``hurt``: about, None where nobody knows. ``left``: devices
    of today's ``limit`` that may still take part. ``ends``: about; None where nobody knows, or not
    within months. ``first``: devices of one experiment that can just about decide. ``asks``: some
    of the questions; ``waits``: what stands in the way of some of them now."""

    against: str | None
    classes: int
    alone: int
    together: int
    at_least: bool
    devices: int
    in_each: int
    hurt: int | None
    past: Past
    left: int
    limit: int
    begins: float | None
    ends: float | None
    slow: Sequence[str]
    first: int
    asks: Sequence[str]
    waits: Sequence[str]

    @property
    def questions(self) -> int:
        """All open questions."""
        return self.alone + self.together


def plan(
    forecast: Forecast,
    known: Sequence[Known],
    past: Past,
    left: int,
    limit: int,
    windows: Iterable[Maintenance],
    now: float,
) -> Plan:
    """Say what it would cost. ``left``: of the ``limit`` of devices a day; ``windows``: open."""
    settings, definition = forecast.definition.settings, forecast.definition
    asked = [(each, tuple(q)) for each in known for q in each.questions if _tries(settings, q)]
    alone = sum(len(question) == 1 for _, question in asked)
    begins = definition.schedule.next_after(now) if definition.schedule else None
    seconds, slow = _seconds(forecast, [each.name for each, _ in asked], settings)
    hurt = None
    if past.each is not None:
        hurt = min(math.ceil(past.each * len(asked)), settings.member_budget)
    return Plan(
        against=forecast.why_not,
        classes=len(known),
        alone=alone,
        together=len(asked) - alone,
        at_least=not all(each.all for each in known)
        or settings.max_size > DEFAULTS.max_size
        or not {*settings.kinds} <= {*DEFAULTS.kinds},
        devices=settings.member_budget,
        in_each=settings.members,
        hurt=hurt,
        past=past,
        left=left,
        limit=limit,
        begins=begins,
        ends=None if seconds is None else over(definition.calendar, begins or now, seconds),
        slow=slow,
        first=min(settings.members, settings.min_samples),
        asks=[_question(each, faults) for each, faults in _telling(asked)],
        waits=[said for said in (_waits(each, known) for each in windows) if said],
    )


def _tries(settings: Settings, question: Sequence[str]) -> bool:
    return len(question) <= settings.max_size and all(_happens(settings, q) for q in question)


def _happens(settings: Settings, fault: str) -> bool:
    """Say whether these settings try this kind; an error is whatever it is at its point."""
    kind = fault.partition("@")[0]
    if late(kind):
        return any(map(late, settings.kinds))
    return "error" in settings.kinds or kind in settings.kinds


def _seconds(
    forecast: Forecast, asked: Sequence[str], settings: Settings
) -> tuple[float | None, list[str]]:
    """Add up how long it takes, and name what has too little traffic to be decided at all.

    One question at a time on each kind of request, and so many kinds at once. One experiment often
    answers several, and what hurts is tried twice: about.
    """
    known = {each.flow.request_class: each for each in forecast.estimates}
    slow = sorted({name for name in asked if name in known and known[name].decides == "nothing"})
    took: dict[str, float] = {}
    for name in asked:
        if name in known and name not in slow:
            one = min(known[name].seconds, settings.window) + settings.settle
            took[name] = took.get(name, 0.0) + one
    if not took:
        return None, slow
    return max(*took.values(), sum(took.values()) / settings.concurrency), slow


def _telling(
    asked: Sequence[tuple[Known, tuple[str, ...]]],
) -> list[tuple[Known, tuple[str, ...]]]:
    """Choose what is spelt out: single failures before several, of each kind of request in turn."""
    order: dict[str, int] = {}
    ranked = []
    for each, faults in sorted(asked, key=lambda one: (len(one[1]), one[1])):
        turn = order[each.name] = order.get(each.name, 0) + 1
        ranked.append(((len(faults), turn, each.name), each, faults))
    return [(each, faults) for _, each, faults in sorted(ranked, key=lambda one: one[0])[:ASKED]]


def _question(known: Known, faults: Sequence[str]) -> str:
    return f"Does {known.name} go well while {said_shortly(faults, known.callees)}?"


def _waits(window: Maintenance, known: Sequence[Known]) -> str:
    """Say which kinds of request wait for the end of a maintenance; empty for none."""
    names = [each.name for each in known if window.touches(each.points, each.callees) is not None]
    if not names:
        return ""
    what = ", ".join(window.down) or EVERYTHING
    wait = "waits" if len(names) == 1 else "wait"
    return f"{listed(names)} {wait} until the maintenance of {what} is over: {window.reason}."
