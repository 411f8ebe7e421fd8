"""What the first page tells before anybody scrolls: is anything injected, was it us, what hurts
most, and who must act?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal
from zoneinfo import ZoneInfo

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from ldfi.analysis.phrases import said_shortly
from ldfi.analysis.repairs.called import Called
from ldfi.dashboards.experiment_rows import Kind
from ldfi.dashboards.now import strip
from ldfi.dashboards.now.day_kept import DayKept
from ldfi.dashboards.now.missing import why_nothing_can_be_tried
from ldfi.dashboards.todo import Act, acts
from ldfi.dashboards.words import devices
from ldfi.dashboards.worst import SHOWN, Hurting, callees, hurting, ranked
from ldfi.experiments.api.service import live_experiments
from ldfi.experiments.api.was_it_us import LAST, live_exposure, with_live
from ldfi.experiments.domain.campaign.lifecycle import SERIOUS
from ldfi.experiments.domain.judging.counts import counts_so_far
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.judging.injected import Exposure, Injected, hurt_in_words
from ldfi.experiments.queries.finding_summary import CalleesOf
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import injected as stored
from ldfi.experiments.store.schema import AuditRow, ExperimentRow, FindingRow
from ldfi.experiments.telemetry import clock

DAY: Final = 86_400.0
ROWS, FOLDED, LISTED, ACTS = 4, 30, 40, 4
FINDINGS: Final = 1_000
"""Findings that are ranked, the newest: nobody has more, and a page has to end."""


Tone = Literal["calm", "busy", "bad"]

_WORDS: Final = {1: "One", 2: "Two", 3: "Three", 4: "Four", 5: "Five", 6: "Six"}


@dataclass(frozen=True, slots=True)
class StatusLine:
    """``hurt``: of each experiment that may inject something now, the treated devices that failed
    so far, and bystanders. ``day``: the same of all experiments of the last 24 hours.
    ``counting``: experiments that inject nothing any more and wait for their last devices.
    ``waiting``: how much waits for somebody. ``missing``: why nothing could be injected; empty
    where something could."""

    hurt: Sequence[tuple[int, int]]
    counting: int
    halted: bool
    breach: bool
    missing: str
    waiting: int
    day: tuple[int, int] = (0, 0)

    @property
    def sentence(self) -> str:
        """Say it: first whether anything is injected, then whether all is well."""
        if self.hurt and not self.halted:
            return f"{self._running()} {self._harm()}"
        if self.halted:
            return "Nothing is injected. Everything is halted."
        if self.missing:
            return f"Nothing can be injected: {self.missing}."
        if self.breach:
            return "Nothing is injected. A guardrail is breached."
        return f"Nothing is injected. {self._well()}"

    @property
    def tone(self) -> Tone:
        """Say how it is to be coloured."""
        if self.halted or self.breach:
            return "bad"
        if self.hurt:
            return "bad" if any(map(any, self.hurt)) else "busy"
        return "busy" if self.missing or self.waiting else "calm"

    def _running(self) -> str:
        count = len(self.hurt)
        said = _WORDS.get(count, f"{count:,}")
        return f"{said} experiment{' is' if count == 1 else 's are'} running."

    def _harm(self) -> str:
        who = "It has" if len(self.hurt) == 1 else "They have"
        so_far = [sum(each[place] for each in self.hurt) for place in (0, 1)]
        if any(so_far) or not any(self.day):
            return f"{who} hurt {hurt_in_words(*so_far)} so far."
        whose = "its" if len(self.hurt) == 1 else "their"
        others = f"others hurt {hurt_in_words(*self.day)} in the last 24 hours"
        return f"None of {whose} devices is hurt so far; {others}."

    def _well(self) -> str:
        if not self.waiting:
            return "All is well."
        things = "One thing waits" if self.waiting == 1 else f"{self.waiting:,} things wait"
        return f"{things} for somebody."


@dataclass(frozen=True, slots=True)
class Running:
    """An experiment that may be injecting, for people. ``ends``: by itself, at the latest."""

    experiment: Experiment
    said: str
    ends: float


@dataclass(frozen=True, slots=True)
class Told:
    """An experiment of the past, in words."""

    injected: Injected
    kind: Kind
    said: str
    came: str


@dataclass(frozen=True, slots=True)
class NowStory:
    """``rows``: shown at once; ``folded``: below them; ``classes``: how many there are in all.
    ``newest``: marks of the strip with their classes, to be read.
    ``recent``: what was armed since ``recently``."""

    now: float
    standing: StatusLine
    running: list[Running]
    day: Exposure
    rows: list[strip.Row]
    folded: list[strip.Row]
    classes: int
    hours: list[strip.Hour]
    newest: list[tuple[str, strip.Mark]]
    recently: float
    recent: Exposure
    armed: list[Told]
    worst: list[Hurting]
    hurting: int
    acts: list[Act]


def now_story(
    session: Session,
    engine: Engine,
    kept: DayKept,
    called: Called,
    tz: ZoneInfo,
    now: float | None = None,
) -> NowStory:
    """Tell it, with one question to the database for all of the last 24 hours."""
    now = clock.now() if now is None else now
    callees_of = callees(engine)
    day = strip.by_class(kept.bunches(session, now - DAY, now))
    alone = [each.first for _, some, _ in day[:ROWS] for each in some if each.alone]
    looked_at = or_(ExperimentRow.id.in_(alone), stored.within(now - LAST, now))
    injected = with_live(engine, stored.injected(session, looked_at))
    recent = [each for each in injected if each.within(now - LAST, now)]
    findings = _findings(session)
    state = engine.scheduler.state
    campaigns = list(state.campaigns.values())
    edges = engine.board.edges(now)
    must = acts(
        findings, campaigns, state.halted, _halt(session, state.halted), state.breach, edges,
        callees_of, called,
    )  # fmt: skip
    today = sum((exposure for _, _, exposure in day), live_exposure(engine))
    rates = {name: known.rate(now) for name, known in engine.catalogue.classes.items()}
    weak = ranked(findings, rates)
    said = {each.id: _titled(each, callees_of) for each in injected}
    made = strip.rows(day[: ROWS + FOLDED], now - DAY, now, said)
    marks = [(row.request_class, mark) for row in made[:ROWS] for mark in row.marks]
    return NowStory(
        now=now,
        standing=_standing(engine, now, len(must), today),
        running=_running(engine, callees_of),
        day=today,
        rows=made[:ROWS],
        folded=made[ROWS:],
        classes=len(day),
        hours=strip.hours(now - DAY, now, tz),
        newest=sorted(marks, key=lambda one: -one[1].since)[:LISTED],
        recently=now - LAST,
        recent=Exposure.of(recent),
        armed=[told(each, callees_of) for each in recent[::-1]],
        worst=hurting(session, weak[:SHOWN], callees_of, called),
        hurting=len(weak),
        acts=must,
    )


def told(injected: Injected, callees_of: CalleesOf) -> Told:
    """Say what was tried and what came of it."""
    said = said_shortly(injected.hypothesis, callees_of(injected.request_class))
    kind = strip.kind_of(injected.verdict, running=injected.running)
    return Told(injected, kind, said, came_of(injected))


def came_of(injected: Injected) -> str:
    """Say how many devices were hurt. What nobody knows yet, or ever, has a limit."""
    counts = injected.counts
    if counts.unknown:
        return f"nobody knows what came of it, on {devices(counts.unknown)} at most"
    hurt = f"{counts.hurt:,}" if counts.hurt else "none"
    said = f"{hurt} of {devices(counts.treated)}{' so far' if injected.running else ''} hurt"
    if not counts.treated:
        said = "no device is treated so far" if injected.running else "no device was treated"
    beside = counts.bystanders_hurt
    return f"{said}, and {hurt_in_words(0, beside)} beside them" if beside else said


def _titled(injected: Injected, callees_of: CalleesOf) -> str:
    each = told(injected, callees_of)
    return f"{each.said}: {each.came}"


def _findings(session: Session) -> list[FindingRow]:
    query = select(FindingRow).where(FindingRow.state.in_([*SERIOUS, "suspected"]))
    return list(session.scalars(query.order_by(FindingRow.found_at.desc()).limit(FINDINGS)))


def _halt(session: Session, halted: str | None) -> AuditRow | None:
    """Find who halted, where anything is."""
    if halted is None:
        return None
    query = select(AuditRow).where(AuditRow.what == "halt").order_by(AuditRow.id.desc())
    return session.scalars(query.limit(1)).first()


def _active(engine: Engine) -> list[Experiment]:
    return [each for each in live_experiments(engine).values() if each.active]


def _standing(engine: Engine, now: float, waiting: int, day: Exposure) -> StatusLine:
    state = engine.scheduler.state
    active = _active(engine)
    injecting = [each for each in active if each.state != "settling"]
    return StatusLine(
        hurt=[
            (counts.hurt, counts.bystanders_hurt)
            for counts in (counts_so_far(each, 0) for each in injecting)
        ],
        day=(day.counts.hurt, day.counts.bystanders_hurt),
        counting=len(active) - len(injecting),
        halted=state.halted is not None,
        breach=state.breach is not None,
        missing=why_nothing_can_be_tried(engine, engine.board.edges(now), now),
        waiting=waiting,
    )


def _running(engine: Engine, callees_of: CalleesOf) -> list[Running]:
    found = [each for each in _active(engine) if each.state != "settling"]
    return [
        Running(
            each,
            said_shortly(sorted(each.hypothesis), callees_of(each.request_class)),
            (each.armed_at or 0.0) + each.settings.window,
        )
        for each in sorted(found, key=lambda each: each.armed_at or 0.0)
    ]
