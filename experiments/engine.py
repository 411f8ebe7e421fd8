"""The service at work: spans and outcomes in, experiments out, in one event loop.

    spans ──▶ Assembler ──▶ learn ──┐
                                    ├─▶ Join ──▶ Traffic (nobody injected) or Experiment
    device metrics ──▶ Outcome ─────┘                         │
                                              Campaign.review ▼ Campaign.propose
                                 RulesBoard ◀── arm, disarm ── gates

Everything here is called from one thread; :meth:`Engine.tick` is called many times a second.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from experiments.domain.campaign import Campaign, ClassTraffic, Gate
from experiments.domain.experiment import Experiment
from experiments.domain.exploration import Exploration
from experiments.domain.observation import Join, Observation, Outcome
from experiments.domain.request_class import class_of
from experiments.domain.settings import Settings
from experiments.domain.traffic import Traffic
from experiments.errors import Conflict, Halted, NotFound
from experiments.rules_board import RulesBoard
from experiments.store import Store
from lineage.assembly import Assembler
from lineage.lineage import learn
from lineage.span import Span

_log = logging.getLogger("ldfi")

STEADY = 0.9
"""No experiment starts on a class whose success rate is below this."""

MAX_CLASSES = 1_000
TICK_SECONDS = 0.05


class Engine:
    """Owns everything that changes while the service runs.

    ``quiet``: seconds without a span after which a trace counts as whole.
    """

    def __init__(self, store: Store, *, now: float, lease: float = 10.0, quiet: float = 0.4):
        self.board = RulesBoard(secrets.token_hex(4), lease)
        self.campaigns: dict[str, Campaign] = {}
        self.classes: dict[str, ClassTraffic] = {}
        self.dropped: Counter[str] = Counter()
        self.spans = 0
        self.outcomes = 0
        self._store = store
        self._assembler = Assembler(quiet=quiet, max_age=60.0)
        self._join = Join()
        self._halted: str | None = store.halted()
        store.close_leftovers(now)

    @property
    def halted(self) -> str | None:
        """Why everything is halted; None when nothing is."""
        return self._halted

    def drops(self) -> dict[str, int]:
        """Everything that was received and could not be used, by reason."""
        return {
            **{f"span_{reason}": count for reason, count in self._assembler.dropped.items()},
            **{f"join_{reason}": count for reason, count in self._join.dropped.items()},
            **self.dropped,
        }

    def receive_spans(self, spans: Iterable[Span], now: float) -> None:
        """Spans have arrived, in any order."""
        spans = list(spans)
        self.spans += len(spans)
        self._assembler.add(spans, now)

    def receive_outcomes(self, outcomes: Iterable[Outcome], now: float) -> None:
        """Devices have reported."""
        for outcome in outcomes:
            self.outcomes += 1
            self._route(self._join.add_outcome(outcome, now))

    def tick(self, now: float) -> None:
        """Move everything on by one step."""
        for trace in self._assembler.pop(now):
            lineage = learn(trace)
            if lineage is None:
                self.dropped["trace_without_root"] += 1
            elif lineage.orphans:
                self.dropped["trace_incomplete"] += 1
            else:
                self._route(self._join.add_lineage(lineage, now))
        self._join.expire(now)
        for campaign in self.campaigns.values():
            self._advance(campaign, now)

    async def run(self) -> None:
        """Tick until cancelled. A tick that fails is logged; the next one comes all the same."""
        while True:
            started = time.time()
            try:
                self.tick(started)
            except Exception:  # noqa: BLE001 - one bad trace must not stop the watch
                _log.exception("a tick failed; everything armed ends with its lease")
                self.board.clear()
            await asyncio.sleep(max(0.0, TICK_SECONDS - (time.time() - started)))

    def start_campaign(
        self, settings: Settings, wanted: tuple[str, ...], who: str, now: float
    ) -> Campaign:
        """Begin a campaign. Raises Halted, or Conflict when one is running."""
        if self._halted is not None:
            raise Halted(f"everything is halted ({self._halted}); run `ldfi resume` first")
        running = [c.id for c in self.campaigns.values() if c.active()]
        if running:
            raise Conflict(f"campaign {running[0]} is running; stop it, or wait until it ends")
        campaign = Campaign(secrets.token_hex(6), settings, wanted)
        self._store.campaign_started(campaign, who, now)
        self.campaigns[campaign.id] = campaign
        return campaign

    def stop_campaign(self, campaign_id: str, reason: str, who: str, now: float) -> Campaign:
        """Stop a campaign for good. Raises NotFound."""
        campaign = self.campaign(campaign_id)
        if campaign.active():
            self._end_all(campaign, campaign.stop(reason, now), now)
            self._store.campaign_ended(campaign, self.certificates(campaign), who, now)
        return campaign

    def campaign(self, campaign_id: str) -> Campaign:
        """The campaign of that id. Raises NotFound."""
        try:
            return self.campaigns[campaign_id]
        except KeyError:
            raise NotFound(f"there is no campaign {campaign_id!r} in this service") from None

    def halt(self, reason: str, who: str, now: float) -> None:
        """Disarm everything, at once, and let nothing start until :meth:`resume`."""
        self.board.clear()
        self._halted = reason
        self._store.set_halted(reason, who, now)
        for campaign in self.campaigns.values():
            self._end_all(campaign, campaign.abort(f"halted: {reason}", now), now)

    def resume(self, who: str, now: float) -> None:
        """Let experiments start again."""
        self._halted = None
        self._store.set_halted(None, who, now)

    def certificates(self, campaign: Campaign) -> list[dict[str, Any]]:
        """One certificate for each class of a campaign."""
        return [exploration.certificate() for exploration in campaign.explorations.values()]

    def _route(self, observation: Observation | None) -> None:
        if observation is None:
            return
        if observation.lineage.experiment:
            if not any(c.observe(observation) for c in self.campaigns.values()):
                self.dropped["unknown_experiment"] += 1
            return
        request_class = class_of(observation.lineage.features)
        known = self.classes.get(request_class.name)
        if known is None:
            if len(self.classes) >= MAX_CLASSES:
                self.dropped["too_many_classes"] += 1
                return
            known = self.classes[request_class.name] = ClassTraffic(request_class, Traffic())
        known.traffic.observe(observation)

    def _advance(self, campaign: Campaign, now: float) -> None:
        if not campaign.active():
            return
        self._end_all(campaign, campaign.review(now), now)
        for experiment in campaign.propose(self.classes, self._gate(campaign)):
            self._store.experiment_armed(campaign, experiment, now)
            self.board.put(experiment.arm(now))
        if not campaign.active():
            self._store.campaign_ended(campaign, self.certificates(campaign), "ldfi", now)

    def _end_all(self, campaign: Campaign, experiments: list[Experiment], now: float) -> None:
        for experiment in experiments:
            self.board.take_down(experiment.id)
            exploration = campaign.explorations[experiment.request_class.name]
            self._store.experiment_ended(campaign, experiment, exploration.findings(), now)

    def _gate(self, campaign: Campaign) -> Gate:
        """Why no experiment may start on a class now; None when one may."""
        exposed = campaign.exposed()

        def gate(exploration: Exploration) -> str | None:
            settings, traffic = campaign.settings, exploration.traffic
            if self._halted is not None:
                return f"halted: {self._halted}"
            if exposed >= settings.member_budget:
                return f"budget spent: {exposed} of {settings.member_budget} devices exposed"
            if traffic.success_rate() < STEADY:
                return f"steady state does not hold: {traffic.success_rate():.0%} succeed"
            return None

        return gate
