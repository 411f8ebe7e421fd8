"""The scheduler: campaigns forward, experiments armed and disarmed, everything on record.

It is told what time it is and is called many times a second. What it decides is pure (``domain``);
what it does is one transaction each (``store``) and a change on the rules board. Nothing is armed
that is not on record with a lease; when keeping the record fails, the board is cleared.

    Commands ──▶ Switch ──▶ Arming ──▶ Record         each may look to the right,
                 Passes ──────┘ ▲                     and all share a State
                 DriftWatch ────┘
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.campaign.knowledge import Knowledge, unseen_of
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.domain.traffic.catalogue import Catalogue
from ldfi.experiments.domain.traffic.injectors import Injectors
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.experiments.scheduler.arming import Arming
from ldfi.experiments.scheduler.campaign_step import CampaignStep
from ldfi.experiments.scheduler.commands import Commands
from ldfi.experiments.scheduler.drift import DriftWatch
from ldfi.experiments.scheduler.global_controls import GlobalControls
from ldfi.experiments.scheduler.halt import HaltSwitch
from ldfi.experiments.scheduler.record import Record, uncertified
from ldfi.experiments.scheduler.rules_board import RulesBoard
from ldfi.experiments.scheduler.shared_state import State
from ldfi.experiments.store import injectors
from ldfi.experiments.store.database import Database
from ldfi.fit.protocol.mark import Mark
from ldfi.lineage.killed_process import Death

PASS_SECONDS = 0.5
"""How often the campaigns are asked what to try next."""

SYNC_SECONDS = 1.0
"""How often is looked up what others may have changed: the halt, the maintenance windows."""


class Scheduler:
    """Runs campaigns over the classes of a catalogue: its parts, and the order of their steps.

    ``lease``: seconds for which an edge may act without news. ``traces``: seconds that a trace may
    take until it is whole. ``global_controls``: what is over the namespace that this is.

    The database may fail at any moment, and then nobody knows whether a transaction was done. So
    what is decided is kept until it is on record, and written again; what was about to be armed is
    forgotten, as after a crash.
    """

    def __init__(
        self,
        db: Database,
        board: RulesBoard,
        catalogue: Catalogue,
        limits: Limits,
        injectors: Injectors | None = None,
        *,
        now: float,
        lease: float = 10.0,
        traces: float = 0.0,
        global_controls: GlobalControls | None = None,
    ) -> None:
        self.state = State(
            limits,
            injectors=injectors or Injectors(),
            traces=traces,
            global_controls=global_controls or GlobalControls(),
        )
        self._board = board
        self._catalogue = catalogue
        self._record = Record(db, board, catalogue)
        self._arming = Arming(db, board, self._record, self.state, lease)
        self.switch = HaltSwitch(db, board, catalogue, self._record, self._arming, self.state)
        self.commands = Commands(db, self._record, self._arming, self.switch, self.state)
        self._passes = CampaignStep(db, board, catalogue, self._record, self._arming, self.state)
        self._drift = DriftWatch(db, catalogue, self._record, self._arming, self.state, now)
        self.certifier = Certifier(self._record, self.state)
        self._reports = ReportKeeper(db, self.state.injectors)
        self._next_sync = 0.0
        self.switch.sync(now)

    def observe(self, observation: Observation, now: float) -> bool:
        """Take a request under experiment; return False if the experiment is unknown."""
        self._follow(observation)
        for campaign in self.state.campaigns.values():
            experiment = campaign.observe(observation)
            if experiment is not None:
                shown = observation.lineage.fired | observation.lineage.would_fire
                self.state.injectors.prove(shown, now)
                fired = observation.lineage.fired
                self.state.outlived.update(each.partition("@")[2] for each in fired)
                self.state.late += experiment.over
                return True
        return False

    def pass_by(self, observation: Observation, now: float) -> bool:
        """Take a request that was not injected into, before its class does; return whether an
        experiment may have affected it."""
        state = self.state
        self._follow(observation)
        if not (state.nearby.experiments or state.windows):
            return False
        lineage = observation.lineage
        known = self._catalogue.class_of(lineage.features, lineage.service)
        if known is None:
            return False
        state.steps.pass_by(observation, known, state.windows, now)
        return state.nearby.pass_by(observation, known, now)

    def _follow(self, observation: Observation) -> None:
        """Tell experiments how their devices fare in any request. Who falls in an arm of one may
        be in control of another and is treated by none."""
        lineage, outcome = observation.lineage, observation.outcome
        self.state.returns.add(outcome.device, lineage.start)
        if outcome.success or lineage.arm == "treatment":
            return
        for _, experiment in self.state.active():
            if experiment.id != lineage.experiment:
                experiment.follow(observation)

    def mark(self, trace_id: str, mark: Mark, at: int, now: float) -> None:
        """Take in that a fault is about to fire, or would. ``at``: nanoseconds of that process."""
        for _, experiment in self.state.active():
            if experiment.id == mark.experiment:
                experiment.instances.mark(trace_id, mark, at, now)

    def settle(self, experiment_id: str, trace_id: str, died: Iterable[Death]) -> None:
        """Take in which processes died under a request, now that its trace is whole."""
        for _, experiment in self.state.active():
            if experiment.id == experiment_id:
                experiment.instances.settle(trace_id, died)

    def lose(
        self, experiment_id: str, arm: str, trace_id: str = "", died: Iterable[Death] = ()
    ) -> None:
        """Note that the trace of a request under experiment had a hole."""
        for _, experiment in self.state.active():
            if experiment.id == experiment_id:
                experiment.lose(arm, trace_id, died)

    def advance(self, now: float) -> None:
        """Run one step of everything. Raises what the database raises."""
        self.switch.look_up(now)
        if now >= self._next_sync:
            self._next_sync = now + SYNC_SECONDS
            self.switch.sync(now)
        self._record.write(now)  # before anything counts as abandoned
        self._arming.renew(now)
        for campaign in list(self.state.campaigns.values()):
            self._passes.review(campaign, now)
        if now >= self.state.next_pass:
            self.state.next_pass = now + PASS_SECONDS
            self._drift.follow(now)
            for campaign in list(self.state.campaigns.values()):
                self._passes.ask(campaign, now)
        self._drift.save_some(now)
        self._reports.keep(now)
        self._record.recount(now)
        self._record.certify(now)
        self.state.nearby.part(now)
        self._drop_over()

    def shut_down(self, reason: str, now: float) -> None:
        """Disarm at the end of the service; campaigns are left to the next leader."""
        self._board.clear()
        for campaign in self.state.campaigns.values():
            for experiment in list(campaign.running.values()):
                experiment.abort(reason, now)
                if not experiment.over:
                    experiment.state, experiment.ended_at = "aborted", now
                self._record.end(campaign, experiment, now)
        self._drift.save_all(now)
        self._reports.keep(now, at_once=True)
        self._record.certify(now)

    def certificates(self, campaign: Campaign) -> list[dict[str, Any]]:
        """Return the certificates of a campaign that is not over, one for each class."""
        return self._record.certificates(campaign)

    def _drop_over(self) -> None:
        """Campaigns that are over are on record; here they would only take room."""
        busy = self._record.busy()
        for campaign in list(self.state.campaigns.values()):
            if not campaign.live() and not campaign.running and campaign.id not in busy:
                del self.state.campaigns[campaign.id]


# Certificates, written beside the event loop: one class at a time, when it has learned.
#
# A class with hundreds of points takes a second or two. What is to be written is copied in the
# loop, which takes no time, and nothing in the copy changes any more; so the writing may be done
# in a thread while the class learns on.

_log = logging.getLogger("ldfi")

PAUSE_SECONDS = 0.2
"""How often is looked up whether a class has learned."""


class Certifier:
    """Writes the certificates of all campaigns that are not over, and of those just over."""

    def __init__(self, record: Record, state: State) -> None:
        self._record = record
        self._state = state

    async def run(self) -> None:
        """Write until cancelled. From then on certificates are written on the spot again."""
        self._record.beside = True
        try:
            while True:
                for campaign in list(self._state.campaigns.values()):
                    for knowledge in uncertified(campaign):
                        await self._write(knowledge)
                await asyncio.sleep(PAUSE_SECONDS)
        finally:
            self._record.beside = False

    async def _write(self, knowledge: Knowledge) -> None:
        filing, changes = knowledge.filing, knowledge.filing.changes
        try:
            statement = knowledge.statement()
            changes = filing.changes
            certificate = await asyncio.to_thread(statement.certificate)
        except Exception:  # noqa: BLE001 - of this class's, whatever it is; the others go on
            _log.exception("the certificate of %s could not be written", knowledge.name)
            filing.give_up(changes)
        else:
            filing.file(changes, knowledge.name, certificate, unseen_of(knowledge))


# Keeps on record what injectors have reported, and forgets what was not heard of for long.

KEEP_SECONDS = 1.0
"""How often is put on record what is new."""

KEPT_AT_ONCE = 20
"""Callers put on record in one step: all at once would hold up everything else."""

EXPIRE_SECONDS = 600.0


class ReportKeeper:
    """Raises what the database raises."""

    def __init__(self, db: Database, known: Injectors) -> None:
        self._db = db
        self._known = known
        self._next_keep = self._next_expire = 0.0

    def keep(self, now: float, *, at_once: bool = False) -> None:
        """Write new reports when it is due; all of them if ``at_once``."""
        if now >= self._next_expire:
            self._next_expire = now + EXPIRE_SECONDS
            self._known.expire(now)
        if now < self._next_keep and not at_once:
            return
        self._next_keep = now + KEEP_SECONDS
        unkept = list(self._known.unkept().items())
        some = dict(unkept if at_once else unkept[:KEPT_AT_ONCE])
        if some:
            with self._db.change(now) as change:
                injectors.save(change, some)
            self._known.kept(some, now)
