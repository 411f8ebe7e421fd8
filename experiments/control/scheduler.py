"""The scheduler: campaigns forward, experiments armed and disarmed, everything on record.

It is told what time it is and is called many times a second. What it decides is pure (``domain``);
what it does is one transaction each (``store``) and a change on the rules board. Nothing is armed
that is not on record with a lease; when keeping the record fails, the board is cleared.
"""

from __future__ import annotations

import logging
import secrets
from collections import deque
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from ldfi.experiments.control.restore import restored
from ldfi.experiments.control.rules_board import RulesBoard
from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.domain.campaign.exploration import Exploration, FindingChange
from ldfi.experiments.domain.campaign.knowledge import Hypothesis
from ldfi.experiments.domain.campaign.lesson import Lesson
from ldfi.experiments.domain.campaign.run import Runs
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.gates.safety import class_obstacle, first_window, touched, unsteady
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.domain.traffic.catalogue import Catalogue, ClassChange
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.experiments.errors import Conflict, Halted, NotFound
from ldfi.experiments.store import (
    campaigns,
    classes,
    experiments,
    findings,
    maintenance,
    notifications,
    switches,
)
from ldfi.experiments.store.arming import Order, Refused, arm
from ldfi.experiments.store.database import SERVICE, Database
from ldfi.experiments.telemetry import tracing
from ldfi.experiments.telemetry.instruments import PROPOSE_SECONDS
from ldfi.fit.rules import Rule

_log = logging.getLogger("ldfi")

PASS_SECONDS = 0.5
"""How often the campaigns are asked what to try next."""

SAVE_SECONDS = 600.0
"""How often what the traffic has shown is put on record, besides whenever it matters."""

SAVED_AT_ONCE = 5
"""Classes put on record in one step."""

SYNC_SECONDS = 1.0
"""How often is looked up what others may have changed: the halt, the maintenance windows."""

RETRY_SECONDS = 5.0
"""How long a class waits whose experiment was refused."""

SPENT_SECONDS = 30.0
"""How long a campaign waits that found a budget spent: such budgets are those of hours and days."""

LATE_SECONDS = 60.0
"""How long after its end an experiment still counts what comes in for it."""


@dataclass(frozen=True, slots=True)
class _Ending:
    """An experiment that is over and not yet on record. What it taught is known by then."""

    campaign: Campaign
    experiment: Experiment
    spent: int
    lesson: Lesson | None
    changes: list[FindingChange]
    runs: Runs
    began: int


@dataclass(slots=True)
class _Late:
    campaign: Campaign
    experiment: Experiment
    until: float
    hurt: int


class Scheduler:
    """Runs campaigns over the classes of a catalogue.

    ``lease``: seconds for which an edge may act without news.

    The database may fail at any moment, and then nobody knows whether a transaction was done. So
    what is decided here is kept until it is on record, and written again; what was about to be
    armed is forgotten, as after a crash.
    """

    def __init__(
        self,
        db: Database,
        board: RulesBoard,
        catalogue: Catalogue,
        limits: Limits,
        *,
        now: float,
        lease: float = 10.0,
    ) -> None:
        self.campaigns: dict[str, Campaign] = {}
        self.late = 0
        """Requests that came in when their experiment was over: they count for its members only."""
        self.breach: str | None = None
        self.limits = limits
        self._db = db
        self._board = board
        self._catalogue = catalogue
        self._lease = lease
        self._halted: str | None = None
        self._halt_unsaved: tuple[str, str] | None = None
        self._windows: list[Maintenance] = []
        self._late: deque[_Late] = deque()
        self._endings: deque[_Ending] = deque()
        self._unrecorded: dict[str, tuple[Campaign, str]] = {}
        self._changes: list[ClassChange] = []
        self._to_follow: deque[ClassChange] = deque()
        self._next_pass = self._next_sync = self._next_renewal = 0.0
        self._next_save = now + SAVE_SECONDS
        self._unsaved: deque[str] = deque()
        self._load_campaigns = True
        self._sync(now)

    @property
    def halted(self) -> str | None:
        """Why everything is halted; None when nothing is."""
        return self._halted

    @property
    def windows(self) -> list[Maintenance]:
        """The maintenance windows that are open."""
        return self._windows

    def campaign(self, campaign_id: str) -> Campaign:
        """A campaign that is not over. Raises NotFound, or Conflict when it is."""
        campaign = self.campaigns.get(campaign_id)
        if campaign is not None and campaign.live():
            return campaign
        with self._db.read() as session:
            state = campaigns.load(session, campaign_id).state
        raise Conflict(f"campaign {campaign_id} is {state}: it is over")

    def experiment(self, experiment_id: str) -> tuple[Campaign, Experiment]:
        """An experiment that is not over, and its campaign. Raises NotFound."""
        for campaign in self.campaigns.values():
            for experiment in campaign.running.values():
                if experiment.id == experiment_id:
                    return campaign, experiment
        raise NotFound(f"there is no experiment {experiment_id!r} that still runs")

    def start(self, definition: Definition, who: str, now: float) -> Campaign:
        """Begin a campaign, now or when its schedule says. Raises Halted."""
        if self._halted is not None:
            raise Halted(f"everything is halted ({self._halted}); run `ldfi resume` first")
        campaign = Campaign(_new_id(), definition, _new_id, self.limits.protected_points)
        if definition.schedule is None:
            campaign.begin_run(now)
        else:
            campaign.state = "scheduled"
            campaign.next_run_at = definition.schedule.next_after(now)
        self._load_campaigns = True  # in case that it is on record, and only the answer is lost
        with self._db.change(now, who) as change:
            campaigns.create(change, campaign)
        self._load_campaigns = False
        self.campaigns[campaign.id] = campaign
        return campaign

    def stop(self, campaign_id: str, reason: str, who: str, now: float) -> Campaign:
        """Stop a campaign for good. What it has armed is disarmed at once. Raises NotFound."""
        campaign = self.campaign(campaign_id)
        campaign.state, campaign.reason = "stopped", reason
        self._unrecorded[campaign.id] = campaign, who
        self._abort_all(campaign, reason, now)
        self._save(campaign, now, who)
        return campaign

    def pause(self, campaign_id: str, reason: str, who: str, now: float) -> Campaign:
        """Let a campaign start nothing more for now; what runs is disarmed. Raises NotFound."""
        campaign = self.campaign(campaign_id)
        if campaign.state != "running":
            raise Conflict(f"campaign {campaign_id} is {campaign.state}: only a running one pauses")
        campaign.state, campaign.reason = "paused", reason
        self._unrecorded[campaign.id] = campaign, who
        self._abort_all(campaign, f"paused: {reason}", now)
        self._save(campaign, now, who)
        return campaign

    def unpause(self, campaign_id: str, who: str, now: float) -> Campaign:
        """Let a paused campaign go on. Raises NotFound or Conflict."""
        campaign = self.campaign(campaign_id)
        if campaign.state != "paused":
            raise Conflict(f"campaign {campaign_id} is {campaign.state}, not paused")
        campaign.state, campaign.reason = "running", ""
        self._save(campaign, now, who)
        return campaign

    def halt(self, reason: str, who: str, now: float) -> None:
        """Disarm everything, at once, and let nothing start until :meth:`resume`.

        It holds in this process even when it cannot be put on record; that is tried again then.
        """
        self._board.clear()
        self._halted = reason
        self._halt_unsaved = (reason, who)
        try:
            self._save_halt(now)
        finally:
            for campaign in self.campaigns.values():
                self._abort_all(campaign, f"halted: {reason}", now)

    def resume(self, who: str, now: float) -> None:
        """Let experiments start again."""
        with self._db.change(now, who) as change:
            switches.set_halted(change, None)
        self._halted = self._halt_unsaved = None

    def _save_halt(self, now: float) -> None:
        if self._halt_unsaved is not None:
            reason, who = self._halt_unsaved
            with self._db.change(now, who) as change:
                switches.set_halted(change, reason)
            self._halt_unsaved = None

    def approve(self, experiment_id: str, who: str, now: float) -> Experiment:
        """Let an experiment that waits for it be armed. Raises NotFound or Conflict."""
        _, experiment = self._waiting(experiment_id)
        experiment.approved_by = who
        with self._db.change(now, who) as change:
            change.audit("experiment approved", experiment.id)
        self._next_pass = now
        return experiment

    def reject(self, experiment_id: str, reason: str, who: str, now: float) -> Experiment:
        """Have an experiment that waits never tried in this campaign. Raises like approve."""
        campaign, experiment = self._waiting(experiment_id)
        experiment.abort(f"rejected: {reason}", now)
        lesson = Lesson(experiment.hypothesis, succeeded=None, purpose="rejected")
        campaign.explorations[experiment.request_class].learn(lesson)
        campaign.drop(experiment)
        with self._db.change(now, who) as change:
            experiments.end(change, experiment, 0, lesson)
        return experiment

    def abort(self, experiment_id: str, reason: str, who: str, now: float) -> Experiment:
        """Disarm one experiment at once. Its campaign goes on. Raises NotFound."""
        campaign, experiment = self.experiment(experiment_id)
        with self._db.change(now, who) as change:
            change.audit("experiment called off", experiment_id, reason)
        if experiment.abort(f"called off by {who}: {reason}", now):
            self._disarm(experiment, now)
        elif experiment.over:
            campaign.drop(experiment)
            with self._db.change(now) as change:
                experiments.end(change, experiment, 0, None)
        return experiment

    def release(self, campaign_id: str, class_name: str, who: str, now: float) -> None:
        """Let a class that is held since its lineage changed be explored again."""
        if not self.campaign(campaign_id).release(class_name):
            raise Conflict(f"class {class_name!r} is not held in campaign {campaign_id}")
        with self._db.change(now, who) as change:
            change.audit("class released", campaign_id, class_name)
        self._save(self.campaign(campaign_id), now, who)

    def open_maintenance(self, window: Maintenance, who: str, now: float) -> None:
        """Open a maintenance window; whatever it touches is disarmed at once."""
        with self._db.change(now, who) as change:
            maintenance.open_window(change, window)
        self._sync(now)
        self._end_touched(now)

    def close_maintenance(self, window_id: str, who: str, now: float) -> Maintenance:
        """Close a maintenance window. Raises NotFound."""
        with self._db.change(now, who) as change:
            closed = maintenance.close_window(change, window_id)
        self._sync(now)
        return closed

    def observe(self, observation: Observation) -> bool:
        """Take in a request under experiment; False when nobody knows the experiment."""
        for campaign in self.campaigns.values():
            experiment = campaign.observe(observation)
            if experiment is not None:
                self.late += experiment.over
                return True
        return False

    def shut_down(self, reason: str, now: float) -> None:
        """The service ends: disarm, and leave the campaigns to whoever comes next."""
        self._board.clear()
        for campaign in self.campaigns.values():
            for experiment in list(campaign.running.values()):
                experiment.abort(reason, now)
                if not experiment.over:
                    experiment.state, experiment.ended_at = "aborted", now
                self._end(campaign, experiment, now)
        self._unsaved = deque(self._catalogue.classes)
        self._save_classes(now, len(self._unsaved))

    def advance(self, now: float) -> None:
        """Move everything on by one step. Raises what the database raises."""
        if now >= self._next_sync:
            self._next_sync = now + SYNC_SECONDS
            self._sync(now)
            self._end_touched(now)
        self._put_on_record(now)  # before anything counts as abandoned
        self._renew(now)
        for campaign in list(self.campaigns.values()):
            self._review(campaign, now)
        if now >= self._next_pass:
            self._next_pass = now + PASS_SECONDS
            self._changes += self._catalogue.changes()
            self._follow(now)
            for campaign in list(self.campaigns.values()):
                self._pass(campaign, now)
        if now >= self._next_save:
            self._next_save = now + SAVE_SECONDS
            self._unsaved = deque(self._catalogue.classes)
        self._save_classes(now, SAVED_AT_ONCE)
        while self._late and self._late[0].until <= now:
            late = self._late[0]
            if len(late.experiment.hurt) != late.hurt:
                with self._db.change(now) as change:
                    experiments.recount(change, late.experiment)
            late.campaign.forget(late.experiment)
            self._late.popleft()
        self._drop_over()

    def _drop_over(self) -> None:
        """Campaigns that are over are on record; here they would only take room."""
        busy = {late.campaign.id for late in self._late} | set(self._unrecorded)
        busy |= {ending.campaign.id for ending in self._endings}
        for campaign in list(self.campaigns.values()):
            if not campaign.live() and not campaign.running and campaign.id not in busy:
                del self.campaigns[campaign.id]

    def _review(self, campaign: Campaign, now: float) -> None:
        """Follow the experiments that are armed."""
        for experiment in campaign.active():
            experiment.used = self._board.used(experiment.id)
            if experiment.state == "armed" and self._board.taken(experiment.id):
                experiment.taken()
                self._move(experiment, now)
            self._guard(campaign, experiment, now)
            exhausted = self._board.exhausted(experiment.id)
            if experiment.review(now, exhausted=exhausted):
                self._disarm(experiment, now)
            out = self._board.out_of_force(experiment.id, now)
            if experiment.settle(now, disarmed=out):
                self._end(campaign, experiment, now)
                self._next_pass = now

    def _guard(self, campaign: Campaign, experiment: Experiment, now: float) -> None:
        exploration = campaign.explorations.get(experiment.request_class)
        reason = self.breach or (unsteady(exploration) if exploration else None)
        if reason is not None and experiment.abort(reason, now):
            self._disarm(experiment, now)

    def _disarm(self, experiment: Experiment, now: float) -> None:
        self._board.take_down(experiment.id)
        self._move(experiment, now)

    def _move(self, experiment: Experiment, now: float) -> None:
        with self._db.change(now) as change:
            experiments.move(change, experiment)

    def _end(self, campaign: Campaign, experiment: Experiment, now: float) -> None:
        """An experiment is over: what it taught goes on record with it."""
        began = tracing.clock()
        spent = self._board.spent(experiment.id) if experiment.armed_at is not None else 0
        experiment.used = max(experiment.used, spent)
        lesson, changes, runs = campaign.close(experiment)
        self._endings.append(_Ending(campaign, experiment, spent, lesson, changes, runs, began))
        self._put_on_record(now)

    def _put_on_record(self, now: float) -> None:
        """Write what is not written yet. Whatever was written but not answered does no harm."""
        while self._endings:
            each = self._endings[0]
            experiment = each.experiment
            known = self._catalogue.classes.get(experiment.request_class)
            with self._db.change(now) as change:
                experiments.end(
                    change, experiment, each.spent, each.lesson, each.changes, each.runs
                )
                if known is not None and each.lesson is not None:
                    classes.save(change, experiment.request_class, known.version, known.to_json())
            self._endings.popleft()
            self._board.forget(experiment.id)
            late = _Late(each.campaign, experiment, now + LATE_SECONDS, len(experiment.hurt))
            self._late.append(late)
            tracing.tell("end", experiment, each.began)
        for campaign, who in list(self._unrecorded.values()):
            self._save(campaign, now, who)

    def _pass(self, campaign: Campaign, now: float) -> None:
        """Ask a campaign what to try next, and try it."""
        if campaign.state == "scheduled" and now >= (campaign.next_run_at or 0.0):
            self._begin_run(campaign, now)
        if campaign.state != "running":
            return
        campaign.enroll(self._catalogue.classes, lambda name: self._known(name, campaign))
        obstacle = self._obstacle(campaign, now)
        if obstacle is not None:
            campaign.waiting[""] = obstacle
            return
        campaign.waiting.pop("", None)
        for experiment in list(campaign.running.values()):
            if experiment.state == "proposed" or experiment.over:  # a pass was cut short
                campaign.drop(experiment)
            elif experiment.state == "waiting" and experiment.approved_by is not None:
                self._try(campaign, experiment, now)
        room = self.limits.max_concurrent - len(self._board.armed())
        began = tracing.clock()
        with PROPOSE_SECONDS.time():
            proposed = campaign.propose(self._catalogue.classes, self._gate, room, now)
        for experiment in proposed:
            tracing.tell("propose", experiment, began)
            self._consider(campaign, experiment, now)
        if campaign.complete(self._catalogue.classes):
            campaign.end_run("nothing left to try within the bounds", now)
            self._save(campaign, now)

    def _begin_run(self, campaign: Campaign, now: float) -> None:
        asked = campaign.definition.hypotheses
        with self._db.read() as session:
            known = {
                name: findings.known(session, name, now, asked) for name in campaign.explorations
            }
        campaign.begin_run(now)
        for name, exploration in campaign.explorations.items():
            exploration.begin_run(known[name])
        self._save(campaign, now)

    def _obstacle(self, campaign: Campaign, now: float) -> str | None:
        """Why the campaign may try nothing at all now."""
        if self._halted is not None:
            return f"halted: {self._halted}"
        if self.breach is not None:
            return self.breach
        calendar = campaign.definition.calendar
        closed = calendar.closed(now) if calendar is not None else None
        if closed is not None:
            for experiment in campaign.active():
                if experiment.abort(closed, now):
                    self._disarm(experiment, now)
            return closed
        if not self._board.edges(now):
            return "no edge asks for rules"
        return None

    def _gate(self, _name: str, exploration: Exploration) -> str | None:
        return class_obstacle(exploration, self.limits)

    def _consider(self, campaign: Campaign, experiment: Experiment, now: float) -> None:
        """Arm a proposed experiment, or have it approved first."""
        limit = campaign.settings.approve_above
        if limit is not None and experiment.risk > limit:
            experiment.wait(f"may hurt {experiment.risk:.0f} members, more than {limit:g}")
            with self._db.change(now) as change:
                until = now + self._lease
                experiments.propose(change, experiment, campaign.id, campaign.run, until)
        else:
            self._try(campaign, experiment, now)

    def _try(self, campaign: Campaign, experiment: Experiment, now: float) -> None:
        began = tracing.clock()
        exploration = campaign.explorations[experiment.request_class]
        until = now + self._lease
        order = Order(
            experiment=experiment,
            campaign_id=campaign.id,
            run=campaign.run,
            lease_until=until,
            touches=lambda window: touched(window, experiment, exploration),
        )
        try:
            with self._db.change(now) as change:
                answer = arm(self._db, change, order, self.limits)
        except SQLAlchemyError:
            campaign.drop(
                experiment
            )  # if it is armed on record, it is closed when its lease is over
            raise
        if isinstance(answer, Refused):
            if experiment.state == "proposed":
                retry_at = now + (SPENT_SECONDS if answer.spent else RETRY_SECONDS)
                campaign.hold(experiment, answer.reason, retry_at, all_classes=answer.spent)
            return
        first = experiment.purpose in {"explore", "recheck"}
        experiment.arm(now, campaign.fdr.next_level() if first else 1.0)
        settings = experiment.settings
        rule = Rule(
            experiment=experiment.id,
            salt=experiment.id,
            predicate=experiment.predicate,
            treatment=settings.treatment,
            control=settings.control,
            faults=experiment.faults,
            delay_ms=int(settings.delay * 1000),
            yields_to=answer.yields_to,
        )
        if len(self._board.armed()) == 0:
            self._board.renew(until)
        self._board.put(rule, answer.members, now)
        tracing.tell("arm", experiment, began)

    def _renew(self, now: float) -> None:
        """Keep on record that what is armed is alive; what is not ours any more is disarmed."""
        if now < self._next_renewal:
            return
        self._next_renewal = now + self._lease / 3
        kept = [e for c in self.campaigns.values() for e in c.running.values() if not e.over]
        kept = [e for e in kept if e.active or e.state == "waiting"]
        until = now + self._lease
        with self._db.change(now) as change:
            ours = experiments.renew(change, [e.id for e in kept], until)
            experiments.close_abandoned(change)
        for experiment in kept:
            if experiment.id not in ours:  # we had stalled, and another scheduler has closed it
                self._board.take_down(experiment.id)
                experiment.abort("another scheduler has closed it", now)
        self._board.renew(until)

    def _sync(self, now: float) -> None:
        self._save_halt(now)
        with self._db.read() as session:
            halted = switches.halted(session)
            self._windows = maintenance.open_windows(session, now)
            if self._load_campaigns:
                self._load(session)
        self._load_campaigns = False
        if halted is not None and self._halted is None:
            self._board.clear()
            for campaign in self.campaigns.values():
                self._abort_all(campaign, f"halted: {halted}", now)
        self._halted = halted

    def _load(self, session: Session) -> None:
        for row in campaigns.live(session):
            if row.id not in self.campaigns:
                campaign = restored(session, row, self._catalogue, self.limits, _new_id)
                self.campaigns[row.id] = campaign

    def _end_touched(self, now: float) -> None:
        for campaign in self.campaigns.values():
            for experiment in campaign.active():
                exploration = campaign.explorations.get(experiment.request_class)
                reason = first_window(self._windows, experiment, exploration)
                if reason is not None and experiment.abort(reason, now):
                    self._disarm(experiment, now)

    def _follow(self, now: float) -> None:
        """Classes have appeared, changed or gone: keep that, and tell the campaigns."""
        if self._changes:
            self._record_changes(now)
        while self._to_follow:
            self._drifted(self._to_follow.popleft(), now)

    def _record_changes(self, now: float) -> None:
        with self._db.change(now) as change:
            for each in self._changes:
                known = each.known
                change.audit(f"class {each.kind}", known.name[:64], _why(each))
                if each.kind == "expired":
                    classes.remove(change, known.name)
                else:
                    classes.save(change, known.name, known.version, known.to_json())
                if each.kind == "changed":
                    title = f"{known.name}: its lineage changed"
                    notifications.put(change, "class-drifted", title, _why(each))
        self._to_follow.extend(self._changes)
        self._changes = []

    def _drifted(self, changed: ClassChange, now: float) -> None:
        for campaign in self.campaigns.values():
            held = len(campaign.held)
            if campaign.follow(changed):
                experiment = campaign.running[changed.known.name]
                if experiment.abort(f"the class {changed.kind}: {_why(changed)}", now):
                    self._disarm(experiment, now)
            if len(campaign.held) != held:
                self._save(campaign, now)

    def _abort_all(self, campaign: Campaign, reason: str, now: float) -> None:
        for experiment in list(campaign.running.values()):
            if experiment.abort(reason, now):
                self._disarm(experiment, now)
            elif experiment.over:
                campaign.drop(experiment)
                with self._db.change(now) as change:
                    experiments.end(change, experiment, 0, None)

    def _save_classes(self, now: float, most: int) -> None:
        """Put some classes on record; all at once would hold up everything else."""
        names = [self._unsaved.popleft() for _ in range(min(most, len(self._unsaved)))]
        if not names:
            return
        with self._db.change(now) as change:
            for name in names:
                known = self._catalogue.classes.get(name)
                if known is not None:
                    classes.save(change, name, known.version, known.to_json())

    def _save(self, campaign: Campaign, now: float, who: str = SERVICE) -> None:
        self._unrecorded[campaign.id] = campaign, who
        certificates = campaign.certificates()
        with self._db.change(now, who) as change:
            campaigns.save(change, campaign, certificates)
        del self._unrecorded[campaign.id]

    def _known(self, name: str, campaign: Campaign) -> list[Hypothesis]:
        with self._db.read() as session:
            return _known(session, name, campaign)

    def _waiting(self, experiment_id: str) -> tuple[Campaign, Experiment]:
        campaign, experiment = self.experiment(experiment_id)
        if experiment.state != "waiting":
            raise Conflict(f"experiment {experiment_id} is {experiment.state}, not waiting")
        return campaign, experiment


def _new_id() -> str:
    return secrets.token_hex(6)


def _known(session: Session, name: str, campaign: Campaign) -> list[Hypothesis]:
    """What was found in a class before this run of the campaign, and is tried again."""
    asked = campaign.definition.hypotheses
    return findings.known(session, name, campaign.run_started_at, asked)


def _why(changed: ClassChange) -> str:
    """What changed in a class's lineage, in words."""
    words = [
        f"{verb} {', '.join(sorted(points))}"
        for verb, points in (("came:", changed.appeared), ("went:", changed.vanished))
        if points
    ]
    return "; ".join(words) or "its requests are divided differently now"
