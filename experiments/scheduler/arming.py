"""Arming and disarming: nothing is armed that is not on record with a lease.

What was about to be armed when the database failed is forgotten, as after a crash: if it is armed
on record, it is closed there when its lease is over.
"""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy.exc import SQLAlchemyError

from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.gates.guards import BYSTANDERS, objection
from ldfi.experiments.domain.gates.wait_checks import RENEWED, ServiceTimes
from ldfi.experiments.domain.judging.bystanders import Bystanders, systems_of
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.judging.reachability import Share
from ldfi.experiments.domain.traffic.class_traffic import Traffic, calling
from ldfi.experiments.scheduler.record import Record
from ldfi.experiments.scheduler.rules_board import RulesBoard
from ldfi.experiments.scheduler.shared_state import State
from ldfi.experiments.store import experiments
from ldfi.experiments.store.arming import Armed, Order, Refused
from ldfi.experiments.store.database import Database
from ldfi.experiments.telemetry import tracing
from ldfi.fit.protocol.rules import ARMED_WAIT_SECONDS, Rule

LEAST_SECONDS = 1.0
"""An edge that stamps has so much left of its lease, however short leases are."""

RETRY_SECONDS = 1.0
"""How long a class waits whose experiment was refused."""

UNKNOWN_STAY = "it is not known yet how soon devices ask again; within a minute of traffic it is"

SPENT_SECONDS = 30.0
"""How long a campaign waits that found a budget spent: such budgets are those of hours and days."""


class Arming:
    """Puts experiments on the rules board and takes them down, each change on record.

    ``lease``: seconds for which an edge may act without news. Everything here raises what the
    database raises.
    """

    def __init__(
        self, db: Database, board: RulesBoard, record: Record, state: State, lease: float
    ) -> None:
        self._db = db
        self._board = board
        self._record = record
        self._state = state
        self._lease = lease
        self._next_renewal = 0.0

    def consider(self, campaign: Campaign, experiment: Experiment, now: float) -> None:
        """Arm a proposed experiment, or have it approved first."""
        limit = campaign.settings.approve_above
        if limit is None or experiment.risk <= limit:
            self.attempt(campaign, experiment, now)
            return
        experiment.wait(f"may hurt {experiment.risk:.0f} members, more than {limit:g}")
        with self._db.change(now) as change:
            until = now + self._lease
            experiments.propose(change, experiment, campaign.id, campaign.run, until)

    def attempt(self, campaign: Campaign, experiment: Experiment, now: float) -> None:
        """Arm an experiment, unless a guard objects: then its class waits, or it itself does."""
        began = tracing.clock()
        unsure = self._state.unsure(experiment)
        for _, other in self._state.active() if unsure else ():
            if unsure & {fault.point for fault in other.faults}:
                first = "another experiment is the first to try a fault at one of its points"
                _hold(campaign, experiment, first, now)  # it may kill the process
                return
        experiment.unsure = bool(unsure)
        stay = self._stay(campaign, experiment)
        if stay is None:
            _hold(campaign, experiment, UNKNOWN_STAY, now)
            return
        until = now + self._lease + (experiment.settings.patience or 0.0)
        order = self._order(campaign, experiment, until, now)
        try:
            answer = self._state.global_controls.arm(self._db, order, self._state.limits, now)
        except SQLAlchemyError:
            campaign.drop(experiment)
            raise
        if isinstance(answer, Refused):
            _refuse(campaign, experiment, answer, now)
            return
        if order.exploration is not None:
            _look_before(experiment, order.exploration.knowledge.traffic, now)
            self._state.nearby.experiments.append(experiment)
        opens = experiment.purpose in {"explore", "recheck"}
        level = campaign.fdr.next_level(campaign.settings.fdr) if opens else 1.0
        experiment.arm(now, level, holds=self._holds(experiment), stay=stay)
        if len(self._board.armed()) == 0:
            self._board.renew(now + self._lease)
        self._board.put(
            _rule(experiment, answer), answer.members, now, allowed=experiment.admission(now)
        )
        tracing.tell("arm", experiment, began)

    def _order(self, campaign: Campaign, experiment: Experiment, until: float, now: float) -> Order:
        facts = self._state.facts_of(campaign, experiment, now)
        return Order(
            experiment=experiment,
            campaign_id=campaign.id,
            run=campaign.run,
            lease_until=until,
            facts=replace(facts, edges=self._board.edges(now)),
            exploration=campaign.explorations.get(experiment.request_class),
        )

    def _holds(self, experiment: Experiment) -> float:
        """For how long the failure contexts of an experiment are sure to hold, in seconds."""
        times = ServiceTimes(self._lease, 0.0, ARMED_WAIT_SECONDS)
        return max(LEAST_SECONDS, times.holds(experiment.settings))

    def _stay(self, campaign: Campaign, experiment: Experiment) -> float | None:
        """For how long each of its devices is followed, in seconds; None where that is not known
        yet. Where the class is not asked for again, until devices ask for anything; not at all
        where outcomes are of no device."""
        settings = experiment.settings
        exploration = campaign.explorations.get(experiment.request_class)
        if settings.promql is not None or settings.rule != "sequential":
            return 0.0
        if settings.follow is not None or exploration is None:
            return settings.follow or 0.0
        stay = exploration.knowledge.traffic.returns.stay()
        return self._state.returns.stay() if stay == 0.0 else stay

    def disarm(self, experiment: Experiment, now: float) -> None:
        """Take down the rule of an experiment that is settling now."""
        self._board.take_down(experiment.id)
        self._record.move([experiment], now)

    def abort(self, campaign: Campaign, experiment: Experiment, reason: str, now: float) -> None:
        """Stop an experiment without a verdict. One that was never armed is over at once."""
        if experiment.abort(reason, now):
            self.disarm(experiment, now)
        elif experiment.over:
            self._record.drop(campaign, experiment, now)

    def abort_all(self, campaign: Campaign, reason: str, now: float) -> None:
        """Stop everything that a campaign runs."""
        for experiment in list(campaign.running.values()):
            self.abort(campaign, experiment, reason, now)

    def guard(self, campaign: Campaign, experiment: Experiment, now: float) -> None:
        """Disarm an armed experiment to which a guard objects."""
        against = objection(self._state.facts_of(campaign, experiment, now), "armed")
        if against is None:
            return
        if against.guard is not BYSTANDERS:
            self.abort(campaign, experiment, against.reason, now)
        elif experiment.used and experiment.state == "observing":  # which is a verdict
            experiment.stop("bystanders are hurt", now)
            self.disarm(experiment, now)
        elif experiment.state != "settling":  # nobody was treated who could have hurt them
            self.abort(campaign, experiment, against.reason, now)

    def renew(self, now: float) -> None:
        """Renew the leases on record; disarm what is no longer ours."""
        if now < self._next_renewal:
            return
        self._next_renewal = now + self._lease * RENEWED
        running = [e for c in self._state.campaigns.values() for e in c.running.values()]
        kept = [each for each in running if each.active or each.state == "waiting"]
        longest = max((each.settings.patience or 0.0 for each in kept), default=0.0)
        with self._db.change(now) as change:
            until = now + self._lease + longest
            ours = experiments.renew(change, [each.id for each in kept], until)
            experiments.close_abandoned(change)
        for experiment in kept:
            if experiment.id not in ours:  # we had stalled, and another scheduler has closed it
                self._board.take_down(experiment.id)
                experiment.abort("another scheduler has closed it", now)
        self._board.renew(now + self._lease)


def _refuse(campaign: Campaign, experiment: Experiment, refused: Refused, now: float) -> None:
    """One that was approved goes on waiting; any other is forgotten, and its class asked later.

    Members of the run that are spent do not come back, but for those of what still runs.
    """
    if experiment.state == "proposed":
        retry_at = now + (SPENT_SECONDS if refused.spent else RETRY_SECONDS)
        campaign.hold(experiment, refused.reason, retry_at, all_classes=refused.spent)
        campaign.spent = refused.for_good and not campaign.running


def _hold(campaign: Campaign, experiment: Experiment, reason: str, now: float) -> None:
    """Put an experiment off; it is proposed again."""
    if experiment.state == "proposed":
        campaign.hold(experiment, reason, now + RETRY_SECONDS)


def _look_before(experiment: Experiment, traffic: Traffic, now: float) -> None:
    """Keep how the class fares before anything is injected, to compare with."""
    points = frozenset(fault.point for fault in experiment.faults)
    experiment.reach.before = Share(*calling(traffic, points))
    systems = systems_of(points, traffic.topology.callees)
    way = traffic.topology.above(points)
    experiment.bystanders = Bystanders(systems, experiment.settings.delta, way=way)
    experiment.bystanders.note(experiment.request_class, traffic.baseline.worst(now))


def _rule(experiment: Experiment, armed: Armed) -> Rule:
    settings = experiment.settings
    return Rule(
        experiment=experiment.id,
        salt=armed.salt,
        predicate=experiment.predicate,
        treatment=settings.treatment,
        control=settings.control,
        faults=experiment.faults,
        delay_ms=int(settings.delay * 1000),
        yields_to=armed.yields_to,
        patience=settings.patience or 0.0,
    )
