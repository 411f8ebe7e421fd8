"""The service at work: spans and outcomes in, experiments out, in one event loop.

    spans ──▶ Assembler ──▶ learn ──┐
                                    ├─▶ Join ──▶ Catalogue (nobody injected) or Experiment
    device metrics ──▶ Outcome ─────┘                           │
                                                      Scheduler ▼
                                 RulesBoard ◀── arm, disarm ── store

Everything here is called from one thread; :meth:`Engine.tick` is called many times a second.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from ldfi.experiments.domain.gates.current_state import CurrentState
from ldfi.experiments.domain.gates.wait_checks import ServiceTimes
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.domain.traffic.catalogue import Catalogue
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.cut_traces import cut_of, proves
from ldfi.experiments.domain.traffic.injectors import Injectors
from ldfi.experiments.domain.traffic.observation import Join, Observation, Outcome, root_outcome
from ldfi.experiments.domain.traffic.peer_addresses import Peers
from ldfi.experiments.domain.traffic.vital_signs import Signs, Vitals
from ldfi.experiments.domain.traffic.waiting_times import Waiting
from ldfi.experiments.scheduler.global_controls import GlobalControls
from ldfi.experiments.scheduler.replays import Replays
from ldfi.experiments.scheduler.rules_board import RulesBoard
from ldfi.experiments.scheduler.scheduler import Scheduler
from ldfi.experiments.store import Database, classes, injectors, loose_calls
from ldfi.experiments.telemetry import instruments
from ldfi.experiments.telemetry.clock import CLOCK, Clock
from ldfi.fit.protocol.features import Features
from ldfi.fit.protocol.reach import InjectorReport
from ldfi.fit.protocol.rules import ARMED_WAIT_SECONDS
from ldfi.lineage.assembly import FATES, Assembler, reopens
from ldfi.lineage.expectations import Expectations
from ldfi.lineage.killed_process import deaths, marks
from ldfi.lineage.lineage import Lineage, learn, learn_in_full, partial_trace, unusable
from ldfi.lineage.loose_calls import HOLES, Event, Figures, Sightings
from ldfi.lineage.span import Span, Trace

_log = logging.getLogger("ldfi")

TICK_SECONDS = 0.05
LEARNED_AT_ONCE = 25
"""Traces that a tick of the running service learns: one of a new shape takes a millisecond or two,
and others wait for the loop. Where more are whole the next tick comes at once."""
AT_ONCE = Waiting.of(0.4)
LOOK_SECONDS = 2.0
"""How often each class is told what cannot be seen of it."""
LOOKED_AT_OPEN = 300
"""Traces that are looked at before they are whole, when somebody asks who ails."""

OutcomeSource = Literal["devices", "root"]
"""Who says how a request went: the users' devices, or, as a last resort, its root span."""


class Engine:
    """Owns everything that changes while the service runs.

    ``lease``: seconds for which an edge may act without news. ``waiting``: how long for what, by
    default as where services export many times a second. ``outcomes``: with ``root`` nobody waits
    for devices. ``global_controls``: what is over the namespace that this is.
    """

    def __init__(
        self,
        db: Database,
        *,
        now: float,
        lease: float = 10.0,
        waiting: Waiting = AT_ONCE,
        limits: Limits | None = None,
        outcomes: OutcomeSource = "devices",
        clock: Clock = CLOCK,
        global_controls: GlobalControls | None = None,
    ) -> None:
        self._clock = clock
        self._db = db
        self.dropped: Counter[str] = Counter()
        self.spans = 0
        self.outcomes = self.went_well = 0
        self.began_at = self.ticked_at = now
        self.waits = ServiceTimes(lease, waiting.quiet, ARMED_WAIT_SECONDS)
        self.board = RulesBoard(secrets.token_hex(4), lease)
        with db.read() as session:
            self.catalogue = Catalogue.from_json(classes.load(session))
            known = Injectors.from_json(injectors.load(session))
            self.said = loose_calls.load(session)
            """By point, whether calls in traces of their own are the requests' around them."""
        self.peers = Peers()
        for each in self.catalogue.classes.values():
            self.peers.learn(each.traffic.topology.paths)
        self.sightings = Sightings(self._class_named)
        self._next_look = now
        self.scheduler = Scheduler(
            db,
            self.board,
            self.catalogue,
            limits or Limits(),
            known,
            now=now,
            lease=lease,
            traces=waiting.settle,
            global_controls=global_controls,
        )
        self.replays = Replays()
        self.vitals = Vitals()
        self.outcomes_from = outcomes
        self._assembler = Assembler(
            waiting.quiet,
            waiting.request,
            patience=waiting.patience,
            expected=Expectations(),
        )
        self._join = Join(waiting.report, trace=waiting.outcome, drawn=self._drawn)

    def _drawn(self, lineage: Lineage, outcome: Outcome) -> bool:
        """Return whether the edge can have drawn the device that reports on a request."""
        return outcome.mark is None or self.board.drew(
            lineage.experiment, lineage.arm, outcome.mark
        )

    def drops(self) -> dict[str, int]:
        """Everything that was received and could not be used, by reason."""
        return {
            **{f"span_{reason}": count for reason, count in self._assembler.dropped.items()},
            **{f"join_{reason}": count for reason, count in self._join.dropped.items()},
            **{f"class_{reason}": count for reason, count in self.catalogue.dropped.items()},
            "late": self.scheduler.state.late,
            **self.dropped,
        }

    def fates(self) -> dict[str, int]:
        """Return the number of traces by fate; ``unjoined``: whole, and no device reported."""
        unjoined = self._join.dropped["no_outcome"]
        return {**dict.fromkeys(FATES, 0), **self._assembler.fates, "unjoined": unjoined}

    @property
    def open_traces(self) -> int:
        """Return how many traces are being put together."""
        return len(self._assembler)

    @property
    def oldest_trace(self) -> float | None:
        """Return when the oldest of them got its first span (Unix seconds); None where there is
        none."""
        return self._assembler.oldest

    async def current_state(self, now: float) -> CurrentState:
        """Return the current state, for whoever is about to take something down."""
        return CurrentState(now, await self.signs(now), self.scheduler.state.breach)

    async def signs(self, now: float) -> Signs:
        """Return who ails, by the traces that are whole and by the newest of those that are not:
        one with a failed call may wait long for what will never come, and its root comes last.

        Copied here, which takes no time, and gone over in a thread."""
        open_, vitals = self._assembler.newest(LOOKED_AT_OPEN), self.vitals.copy()
        return await asyncio.to_thread(_signs, vitals, open_, now)

    def receive_spans(self, spans: Iterable[Span], now: float) -> None:
        """Spans have arrived, in any order."""
        spans = list(spans)
        self.spans += len(spans)
        for span, mark in marks(spans):
            self.scheduler.mark(span.trace_id, mark, span.start, now)
        late = self._assembler.add(spans, now)
        for trace_id in {span[0] for span in late}:
            mine = [span for span in late if span[0] == trace_id]
            lineage = self._join.waiting(trace_id)
            if lineage is not None and reopens(lineage.trace, mine):
                self._join.withdraw(trace_id)
                self._assembler.reopen(lineage.trace, mine, now)

    def receive_outcomes(self, outcomes: Iterable[Outcome], now: float) -> None:
        """Devices have reported."""
        for outcome in outcomes:
            self.outcomes += 1
            self.went_well += outcome.success
            self._route(self._join.add_outcome(outcome, now), now)

    def receive_observation(
        self, observation: Observation, now: float, at: tuple[int, int]
    ) -> None:
        """Take a request that an ingest worker has joined with its report; each comes once.

        ``at``: partition and offset where it stands in the stream.
        """
        self.spans += observation.lineage.spans
        self.scheduler.state.injectors.meet(observation.lineage.libraries, now)
        if self.replays.take(observation.lineage, now):
            return  # nobody's experiment, and evidence of nothing
        self.outcomes += 1
        self.went_well += observation.outcome.success
        self.vitals.observe(observation.lineage, now)
        self.sightings.take(observation.lineage, reported=self.outcomes_from == "devices")
        self._route(observation, now, at)

    def receive_event(self, event: Event) -> None:
        """Take a call whose request is not known, from an ingest worker."""
        self.sightings.take_event(event)

    def receive_hole(self, service: str, features: Features) -> None:
        """Take from an ingest worker a request whose trace lacks announced spans."""
        self.sightings.take_hole(features, service)

    def look(self) -> Figures:
        """Update in each class the share that cannot be seen, and return all figures."""
        figures = self.sightings.figures(self.said)
        for known in self.catalogue.classes.values():
            traffic = known.traffic
            kept = (each for each in traffic.taken_in if self.said.get(each))
            traffic.taken_in = figures.theirs(known.name).union(kept)
            named = traffic.taken_in - (traffic.reached().keys() if traffic.taken_in else set())
            traffic.unseen = figures.of(known.name, named)
        return figures

    def say(self, point: str, belong: bool | None, who: str, now: float) -> None:
        """Record what a person says of calls in traces of their own: whether they belong to the
        requests they run within; None takes it back."""
        with self._db.change(now, who) as change:
            self.said = loose_calls.say(change, point, belong)
        self.look()

    def silent(self) -> list[str]:
        """Return services whose injectors report while no trace names them, if there are traces
        of others."""
        known = {*self.sightings.seen}
        for each in self.catalogue.classes.values():
            known |= {each.service, *each.traffic.topology.callees.values()}
        reported = self.scheduler.state.injectors.reports()
        return [each for each in reported if each not in known]

    def bare(self) -> dict[str, dict[str, int]]:
        """List by service and library how many calls at least have run in no trace at all, as
        injectors say."""
        found: dict[str, dict[str, int]] = {}
        for service, told in self.scheduler.state.injectors.reports().items():
            for pattern in (each for patterns in told.values() for each in patterns):
                kind, _, rest = pattern.partition(">")[2].removesuffix("|none").partition(":")
                library, _, count = rest.rpartition(":")
                if kind == "bare" and library and count.isdecimal():
                    known = found.setdefault(service, {})
                    known[library] = max(int(count[:9]), known.get(library, 0))
        return found

    def _class_named(self, features: Features, service: str) -> str | None:
        known = self.catalogue.class_of(features, service)
        return None if known is None else known.name

    def receive_report(self, text: str, now: float) -> None:
        """Take an injector's report of the points it can reach."""
        try:
            self.scheduler.state.injectors.hear(InjectorReport.parse(text), now)
        except ValueError:
            self.dropped["report_unreadable"] += 1

    def tick(self, now: float, most: int = sys.maxsize) -> bool:
        """Move everything on by one step. Whether ``most`` traces were learned: then there may be
        more that are whole."""
        traces = self._assembler.pop(now, most)
        for trace in traces:
            try:
                self._learn(trace, now)
            except Exception:  # noqa: BLE001 - one bad trace must not stop the watch
                self.dropped["trace_unreadable"] += 1
                about = {"trace": trace.trace_id}
                _log.exception("nothing can be learned from trace %s", trace.trace_id, extra=about)
        self._name_late()
        self._join.expire(now)
        if now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            self.look()
        self.scheduler.advance(now)
        self.ticked_at = now
        self.board.tick(now)
        return len(traces) >= most

    async def run(self) -> None:
        """Tick until cancelled. A tick that fails is logged; the next one comes all the same."""
        due, steps = time.monotonic(), self._clock.steps
        while True:
            started = time.monotonic()
            instruments.TICK_LAG_SECONDS.observe(max(0.0, started - due))
            now, more = self._clock.now(), False
            try:
                if steps != self._clock.steps:
                    self._disarm_for_a_step(now)
                    steps = self._clock.steps
                with instruments.TICK_SECONDS.time():
                    more = self.tick(now, LEARNED_AT_ONCE)
            except Exception:  # noqa: BLE001 - the next one may do better
                instruments.TICKS_FAILED.inc()
                _log.exception("a tick failed; everything armed is disarmed")
                self.board.clear()
            due = time.monotonic() if more else max(time.monotonic(), started + TICK_SECONDS)
            await asyncio.sleep(due - time.monotonic())

    def _disarm_for_a_step(self, now: float) -> None:
        """Disarm everything after the machine's clock was set."""
        reason = f"the machine's clock was set by {self._clock.last_step:+.0f} s"
        _log.warning("%s: everything armed is disarmed", reason)
        self.board.clear()
        self.scheduler.switch.disarm(reason, now, self._clock.jumps)

    def _learn(self, trace: Trace, now: float) -> None:
        """Take a trace that was handed over."""
        lineage = learn(trace)
        if lineage is not None and lineage.reach:
            self.receive_report(lineage.reach, now)
        if lineage is not None and lineage.is_report:
            return
        if lineage is not None:
            self.scheduler.state.injectors.meet(lineage.libraries, now)
            self.vitals.observe(lineage, now if trace.heard is None else trace.heard)
        if lineage is not None and self.replays.take(lineage, now):
            return  # nobody's experiment, and evidence of nothing
        reason = unusable(trace, lineage)
        if reason:
            self._note_hole(trace, lineage, reason)
        if lineage is None or (reason and not proves(lineage)):
            self._join.give_up(trace.trace_id, now)
            return
        self.sightings.take(lineage)
        if lineage.experiment:
            told = lineage.experiment, trace.trace_id, deaths(trace.spans)
            self.scheduler.settle(*told)
        elif (traffic := self._traffic_of(lineage)) is not None:
            traffic.reporting.arrive(now)
        if self.outcomes_from == "root":
            self._route(Observation(lineage, root_outcome(lineage)), now)
        else:
            self._route(self._join.add_lineage(lineage, now), now)

    def _traffic_of(self, lineage: Lineage) -> Traffic | None:
        known = self.catalogue.class_of(lineage.features, lineage.service)
        return None if known is None else known.traffic

    def _note_hole(self, trace: Trace, lineage: Lineage | None, reason: str) -> None:
        self.dropped[reason] += 1
        if lineage is not None and reason in HOLES:
            self.sightings.take_hole(lineage.features, lineage.service)
        cut = cut_of(trace, lineage)
        if cut is not None:
            self.scheduler.lose(*cut)

    def _name_late(self) -> None:
        """Note in each class what requests did after they were judged."""
        for request, span in self._assembler.take_late():
            what = request or (span.operation if span.parent_id is None else None)
            known = self.catalogue.class_of(what.features, what.service) if what else None
            if known is not None:
                late = span.operation
                name = late.point or f"{late.service}: {late.name}"
                known.traffic.set_aside("late", [name])

    def _route(
        self, observation: Observation | None, now: float, at: tuple[int, int] | None = None
    ) -> None:
        if observation is None:
            return
        lineage = self.peers.addressed(observation.lineage)
        if lineage is not observation.lineage:
            observation = replace(observation, lineage=lineage)
        if self.outcomes_from == "devices":
            self.sightings.reported(lineage.trace_id)
        if not observation.lineage.experiment:
            if (traffic := self._traffic_of(observation.lineage)) is not None:
                traffic.reporting.report(now)
            near = self.scheduler.pass_by(observation, now)
            self.catalogue.observe(observation, now, at, near=near)
        elif not self.scheduler.observe(observation, now):
            self.dropped["unknown_experiment"] += 1


def _signs(vitals: Vitals, open_: Iterable[Trace], now: float) -> Signs:
    found = (learn_in_full(partial_trace(trace)) for trace in open_)
    return vitals.signs(now, [each for each in found if each is not None])
