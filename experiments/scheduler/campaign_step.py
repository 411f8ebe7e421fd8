"""What campaigns are asked, again and again: what has become of this, and what to try next?"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from sqlalchemy.exc import SQLAlchemyError

from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.campaign.exploration import Exploration
from ldfi.experiments.domain.campaign.result import Hypothesis
from ldfi.experiments.domain.gates.guard_facts import Facts
from ldfi.experiments.domain.gates.guards import objection
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.traffic.catalogue import Catalogue
from ldfi.experiments.scheduler.arming import Arming
from ldfi.experiments.scheduler.record import Record
from ldfi.experiments.scheduler.rules_board import RulesBoard
from ldfi.experiments.scheduler.shared_state import State
from ldfi.experiments.store import findings
from ldfi.experiments.store.database import Database
from ldfi.experiments.telemetry import tracing
from ldfi.experiments.telemetry.instruments import PROPOSE_SECONDS

_log = logging.getLogger("ldfi")

ARMED_AT_ONCE = 2
"""Experiments armed in one pass: each is a transaction of up to ten milliseconds, and in between
others get their turn."""

ENDED_AT_ONCE = 1
"""Experiments of a campaign that end in one step: putting on record what one has taught takes
twenty milliseconds, and where all began at once all end at once."""


class CampaignStep:
    """Moves one campaign on at a time. Raises what the database raises."""

    def __init__(
        self,
        db: Database,
        board: RulesBoard,
        catalogue: Catalogue,
        record: Record,
        arming: Arming,
        state: State,
    ) -> None:
        self._db = db
        self._board = board
        self._catalogue = catalogue
        self._record = record
        self._arming = arming
        self._state = state

    def review(self, campaign: Campaign, now: float) -> None:
        """Follow the experiments of a campaign that are armed.

        One that cannot be followed is called off, with the reason on record; the others go on.
        """
        active, room = campaign.active(), ENDED_AT_ONCE
        self._take_up(active, now)
        for experiment in active:
            experiment.used = self._board[experiment.id].used
            experiment.controls = self._board[experiment.id].enrolled
            experiment.enrolled = self._board[experiment.id].controls
            experiment.shares = self._board[experiment.id].shares()
            try:
                self._follow(campaign, experiment, now)
            except SQLAlchemyError:
                raise
            except Exception as error:  # noqa: BLE001 - of this experiment's, whatever it is
                about = {"campaign": campaign.id, "experiment": experiment.id}
                _log.exception("experiment %s is called off", experiment.id, extra=about)
                reason = f"it could not be followed: {type(error).__name__}: {error}"
                self._arming.abort(campaign, experiment, reason, now)
            out = self._board[experiment.id].out_of_force(now)
            if room and experiment.settle(now, disarmed=out, traces=self._state.traces):
                room -= 1
                if experiment.used and not experiment.instances.killed():
                    self._state.outlived |= {fault.point for fault in experiment.faults}
                self._record.end(campaign, experiment, now)
                self._state.next_pass = now

    def _take_up(self, active: Iterable[Experiment], now: float) -> None:
        """Note which experiments the edges have begun with, in one transaction: an edge that asks
        hears of all that were armed since."""
        taken = [e for e in active if e.state == "armed" and self._board[e.id].taken]
        for experiment in taken:
            experiment.taken()
        if taken:
            self._record.move(taken, now)

    def _follow(self, campaign: Campaign, experiment: Experiment, now: float) -> None:
        self._arming.guard(campaign, experiment, now)
        if experiment.review(now, exhausted=self._board[experiment.id].exhausted):
            self._arming.disarm(experiment, now)
            return
        lead = campaign.lead_of(experiment)
        if lead is not None:
            experiment.lead = lead
            alone = ", ".join(sorted(lead))
            experiment.stop(f"stopped at the first failure, to try {alone} alone", now)
            self._arming.disarm(experiment, now)
        elif experiment.state == "observing":
            allowed = experiment.admission(now, traces=self._state.traces)
            self._board.allow(experiment.id, allowed, now)

    def ask(self, campaign: Campaign, now: float) -> None:
        """Ask a campaign for its next experiment, and arm it."""
        if campaign.state == "scheduled" and now >= (campaign.next_run_at or 0.0):
            self._begin_run(campaign, now)
        if campaign.state != "running":
            return
        campaign.enroll(self._catalogue.classes, lambda name: self._known(name, campaign))
        facts = replace(self._state.facts(campaign, now), edges=self._board.edges(now))
        against = objection(facts, "campaign")
        if against is not None:
            campaign.waiting[""] = against.reason
            return
        campaign.waiting.pop("", None)
        self._try_approved(campaign, now)
        self._try_proposed(campaign, facts, now)
        spent = campaign.spent and not campaign.running
        if spent or campaign.complete(self._catalogue.classes):
            campaign.end_run(now)
            self._record.save(campaign, now)

    def _begin_run(self, campaign: Campaign, now: float) -> None:
        asked = campaign.definition.hypotheses
        with self._db.read() as session:
            known = {
                name: findings.known(session, name, now, asked) for name in campaign.explorations
            }
        campaign.begin_run(now)
        for name, exploration in campaign.explorations.items():
            exploration.begin_run(known[name])
        self._record.save(campaign, now)

    def _known(self, name: str, campaign: Campaign) -> list[Hypothesis]:
        """Return findings of earlier runs in a class, which are tried again."""
        asked = campaign.definition.hypotheses
        with self._db.read() as session:
            return findings.known(session, name, campaign.run_started_at, asked)

    def _try_approved(self, campaign: Campaign, now: float) -> None:
        for experiment in list(campaign.running.values()):
            if experiment.state == "proposed" or experiment.over:  # a pass was cut short
                campaign.drop(experiment)
            elif experiment.state == "waiting" and experiment.approved_by is not None:
                self._arming.attempt(campaign, experiment, now)

    def _try_proposed(self, campaign: Campaign, facts: Facts, now: float) -> None:
        def gate(_name: str, exploration: Exploration) -> str | None:
            against = objection(self._state.of_class(facts, exploration, now), "class")
            return None if against is None else against.reason

        room = min(self._state.limits.max_concurrent - len(self._board.armed()), ARMED_AT_ONCE)
        began = tracing.clock()
        with PROPOSE_SECONDS.time():
            proposed = campaign.propose(self._catalogue.classes, gate, room, now)
        for experiment in proposed:
            tracing.tell("propose", experiment, began)
            self._arming.consider(campaign, experiment, now)
