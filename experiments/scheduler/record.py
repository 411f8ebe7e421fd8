"""What the scheduler puts on record: each thing is one transaction.

The database may fail at any moment, and then nobody knows whether a transaction was done. So what
has been decided is kept here until it is on record, and written again. Whatever was written already
and only not answered does no harm.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.campaign.exploration import FindingChange
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.campaign.result import ExperimentResult
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.traffic.catalogue import Catalogue
from ldfi.experiments.scheduler.rules_board import RulesBoard
from ldfi.experiments.store import campaigns, classes, experiments, findings, halts
from ldfi.experiments.store.database import SERVICE, Database, unless_unwritable
from ldfi.experiments.telemetry import tracing
from ldfi.lineage.run_summary import Runs

_log = logging.getLogger("ldfi")

LATE_SECONDS = 60.0
"""How long after its end an experiment still counts what comes in for it."""


@dataclass(frozen=True, slots=True)
class _Ending:
    """An experiment that is over and not yet on record. What it taught is known by then."""

    campaign: Campaign
    experiment: Experiment
    spent: int
    result: ExperimentResult | None
    changes: list[FindingChange]
    runs: Runs
    began: int


@dataclass(slots=True)
class _Late:
    """An experiment that is on record as over, with so many ``hurt``; it counts ``until`` then."""

    campaign: Campaign
    experiment: Experiment
    until: float
    hurt: int


class Record:
    """Keeps what is not on record yet: endings of experiments, states of campaigns, a halt.

    Everything here raises what the database raises.
    """

    def __init__(self, db: Database, board: RulesBoard, catalogue: Catalogue) -> None:
        self._db = db
        self._board = board
        self._catalogue = catalogue
        self._endings: deque[_Ending] = deque()
        self._campaigns: dict[str, tuple[Campaign, str]] = {}
        self._halt: tuple[str, str] | None = None
        self._late: deque[_Late] = deque()
        self._uncertified: dict[str, Campaign] = {}
        self.beside = False
        """Whether certificates are written beside the loop, by the certifier; else on the spot."""

    def write(self, now: float) -> None:
        """Write the endings and campaigns that are not written yet."""
        while self._endings:
            self._write_ending(self._endings[0], now)
        for campaign, who in list(self._campaigns.values()):
            self.save(campaign, now, who)

    def busy(self) -> set[str]:
        """Return the campaigns with unwritten changes."""
        late = {each.campaign.id for each in self._late}
        owed = {*self._campaigns, *self._uncertified}
        return late | owed | {each.campaign.id for each in self._endings}

    def owe(self, campaign: Campaign, who: str = SERVICE) -> None:
        """Keep in mind that a campaign has to be saved, whatever fails before it is."""
        self._campaigns[campaign.id] = campaign, who

    def save(self, campaign: Campaign, now: float, who: str = SERVICE) -> None:
        """Write a campaign's state and certificates.

        Those that are still to be written follow: see :meth:`certify`.
        """
        self.owe(campaign, who)
        certificates = self.certificates(campaign)
        with self._db.change(now, who) as change:
            campaigns.save(change, campaign, certificates)
        if uncertified(campaign):
            self._uncertified[campaign.id] = campaign
        del self._campaigns[campaign.id]

    def certificates(self, campaign: Campaign) -> list[dict[str, Any]]:
        """Return a campaign's certificates, as last written if another process writes them."""
        if not self.beside:
            return campaign.certificates()
        filed = (each.knowledge.filing.document for each in campaign.explorations.values())
        return [each for each in filed if each is not None]

    def certify(self, now: float) -> None:
        """Write the certificates of campaigns that were put on record before these were known."""
        for campaign in list(self._uncertified.values()):
            if self.beside and uncertified(campaign):
                continue
            with self._db.change(now) as change:
                campaigns.certify(change, campaign, self.certificates(campaign))
            del self._uncertified[campaign.id]

    def move(self, moved: Iterable[Experiment], now: float) -> None:
        """Write that experiments have gone on to observing or settling."""
        with self._db.change(now) as change:
            for experiment in moved:
                experiments.move(change, experiment)

    def drop(self, campaign: Campaign, experiment: Experiment, now: float) -> None:
        """Write that an experiment is over that was never armed, and forget it."""
        campaign.drop(experiment)
        with self._db.change(now) as change:
            experiments.end(change, experiment, 0, None)

    def end(self, campaign: Campaign, experiment: Experiment, now: float) -> None:
        """Write the end of an experiment with its result.

        Where that cannot be worked out the experiment ends without a verdict; nothing else does.
        """
        began = tracing.clock()
        spent = 0
        if experiment.armed_at is not None:
            spent = self._board[experiment.id].spent
            experiment.shares = self._board[experiment.id].shares()
        experiment.used = max(experiment.used, spent)
        try:
            result, changes, runs = campaign.close(experiment)
        except Exception as error:  # noqa: BLE001 - of this experiment's, whatever it is
            about = {"campaign": campaign.id, "experiment": experiment.id}
            _log.exception("experiment %s taught nothing", experiment.id, extra=about)
            experiment.fail(f"nothing could be learned: {type(error).__name__}: {error}", now)
            result, changes, runs = None, [], Runs()
        self._endings.append(_Ending(campaign, experiment, spent, result, changes, runs, began))
        self.write(now)

    def _write_ending(self, each: _Ending, now: float) -> None:
        experiment = each.experiment
        known = self._catalogue.classes.get(experiment.request_class)
        with self._db.change(now) as change:
            ended = False
            with unless_unwritable(change, "lesson", experiment.id):
                experiments.end(
                    change, experiment, each.spent, each.result, each.changes, each.runs
                )
                change.session.flush()
                ended = True
            if not ended:
                experiment.fail("what it taught cannot be put on record; see the audit", now)
                experiments.end(change, experiment, each.spent, None)
            if known is not None and each.result is not None:
                classes.save(change, experiment.request_class, known.version, known.to_json())
        if each.result is not None and each.result.succeeded:
            self._open_again(each.campaign, each.result)
        self._endings.popleft()
        self._board.forget(experiment.id)
        late = _Late(each.campaign, experiment, now + LATE_SECONDS, len(experiment.hurt))
        self._late.append(late)
        tracing.tell("end", experiment, each.began)

    def _open_again(self, campaign: Campaign, result: ExperimentResult) -> None:
        """Allow again what killed a process once and was survived now."""
        tried = {fault.partition("@")[2] for fault in result.injected} & campaign.closed.keys()
        if tried:
            with self._db.read() as session:
                closed = findings.closed(session)
            for point in tried - closed.keys():
                del campaign.closed[point]

    def recount(self, now: float) -> None:
        """Write who was hurt by experiments that are long over, and count no more for them."""
        while self._late and self._late[0].until <= now:
            late = self._late[0]
            if len(late.experiment.hurt) != late.hurt:
                with self._db.change(now) as change:
                    experiments.recount(change, late.experiment)
            late.campaign.forget(late.experiment)
            self._late.popleft()

    def halt(self, reason: str, who: str, now: float) -> None:
        """Write that everything is halted."""
        self.owe_halt(reason, who)
        self.write_halt(now)

    def owe_halt(self, reason: str, who: str) -> None:
        """Keep in mind that a halt has to be written."""
        self._halt = reason, who

    def write_halt(self, now: float) -> None:
        """Write the halt that is not written yet, if there is one."""
        if self._halt is not None:
            reason, who = self._halt
            with self._db.change(now, who) as change:
                halts.set_halted(change, reason)
            self._halt = None

    def resume(self, who: str, now: float) -> None:
        """Write that nothing is halted any more."""
        with self._db.change(now, who) as change:
            halts.set_halted(change, None)
        self._halt = None


def uncertified(campaign: Campaign) -> list[Knowledge]:
    """List the classes that know more than their certificates say."""
    known = (each.knowledge for each in campaign.explorations.values())
    return [each for each in known if not each.filing.current]
