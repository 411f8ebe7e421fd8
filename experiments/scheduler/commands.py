"""What operators tell the scheduler, each with their name on record."""

from __future__ import annotations

from ldfi.errors import Conflict, Halted
from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.domain.campaign.result import ExperimentResult
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.scheduler.arming import Arming
from ldfi.experiments.scheduler.halt import HaltSwitch
from ldfi.experiments.scheduler.record import Record
from ldfi.experiments.scheduler.shared_state import State, new_id
from ldfi.experiments.store import campaigns, experiments, maintenance
from ldfi.experiments.store.database import Database


class Commands:
    """For halt and resume see the :class:`~ldfi.experiments.scheduler.halt.Switch`.

    Everything here raises what the database raises.
    """

    def __init__(
        self, db: Database, record: Record, arming: Arming, switch: HaltSwitch, state: State
    ) -> None:
        self._db = db
        self._record = record
        self._arming = arming
        self._switch = switch
        self._state = state

    def start(self, definition: Definition, who: str, now: float) -> Campaign:
        """Begin a campaign, now or when its schedule says. Raises Halted."""
        if self._state.halted is not None:
            raise Halted(f"everything is halted ({self._state.halted}); run `ldfi resume` first")
        state = self._state
        protected = state.limits.protected_points
        shared = state.fdr, state.injectors, state.closed
        campaign = Campaign(new_id(), definition, new_id, protected, *shared)
        if definition.schedule is None:
            campaign.begin_run(now)
        else:
            campaign.state = "scheduled"
            campaign.next_run_at = definition.schedule.next_after(now)
        self._state.unread = True  # in case that it is on record, and only the answer is lost
        with self._db.change(now, who) as change:
            campaigns.create(change, campaign)
        self._state.unread = False
        self._state.campaigns[campaign.id] = campaign
        return campaign

    def stop(self, campaign_id: str, reason: str, who: str, now: float) -> Campaign:
        """Stop a campaign for good. What it has armed is disarmed at once.

        Raises NotFound, or Conflict when it is over.
        """
        campaign = self._live(campaign_id)
        campaign.state, campaign.reason = "stopped", reason
        self._record.owe(campaign, who)
        self._arming.abort_all(campaign, reason, now)
        self._record.save(campaign, now, who)
        return campaign

    def pause(self, campaign_id: str, reason: str, who: str, now: float) -> Campaign:
        """Pause a campaign; its experiments are disarmed.

        Raises NotFound, or Conflict when it does not run.
        """
        campaign = self._live(campaign_id)
        if campaign.state != "running":
            raise Conflict(f"campaign {campaign_id} is {campaign.state}: only a running one pauses")
        campaign.state, campaign.reason = "paused", reason
        self._record.owe(campaign, who)
        self._arming.abort_all(campaign, f"paused: {reason}", now)
        self._record.save(campaign, now, who)
        return campaign

    def unpause(self, campaign_id: str, who: str, now: float) -> Campaign:
        """Let a paused campaign go on. Raises NotFound, or Conflict when it is not paused."""
        campaign = self._live(campaign_id)
        if campaign.state != "paused":
            raise Conflict(f"campaign {campaign_id} is {campaign.state}, not paused")
        campaign.state, campaign.reason = "running", ""
        self._record.save(campaign, now, who)
        return campaign

    def release(self, campaign_id: str, class_name: str, who: str, now: float) -> None:
        """Let a class that is held since its lineage changed be explored again.

        Raises NotFound, or Conflict when it is not held.
        """
        campaign = self._live(campaign_id)
        if not campaign.release(class_name):
            raise Conflict(f"class {class_name!r} is not held in campaign {campaign_id}")
        with self._db.change(now, who) as change:
            change.audit("class released", campaign_id, class_name)
        self._record.save(campaign, now, who)

    def approve(self, experiment_id: str, who: str, now: float) -> Experiment:
        """Let an experiment that waits for it be armed. Raises NotFound or Conflict."""
        _, experiment = self._waiting(experiment_id)
        experiment.approved_by = who
        with self._db.change(now, who) as change:
            change.audit("experiment approved", experiment.id)
        self._state.next_pass = now
        return experiment

    def reject(self, experiment_id: str, reason: str, who: str, now: float) -> Experiment:
        """Have an experiment that waits never tried in this campaign. Raises like approve."""
        campaign, experiment = self._waiting(experiment_id)
        experiment.abort(f"rejected: {reason}", now)
        result = ExperimentResult(experiment.hypothesis, succeeded=None, purpose="rejected")
        campaign.explorations[experiment.request_class].learn(result)
        campaign.drop(experiment)
        with self._db.change(now, who) as change:
            experiments.end(change, experiment, 0, result)
        return experiment

    def abort(self, experiment_id: str, reason: str, who: str, now: float) -> Experiment:
        """Disarm one experiment at once. Its campaign goes on. Raises NotFound."""
        campaign, experiment = self._state.experiment(experiment_id)
        with self._db.change(now, who) as change:
            change.audit("experiment called off", experiment_id, reason)
        self._arming.abort(campaign, experiment, f"called off by {who}: {reason}", now)
        return experiment

    def open_maintenance(self, window: Maintenance, who: str, now: float) -> None:
        """Open a maintenance window; whatever it touches is disarmed at once."""
        with self._db.change(now, who) as change:
            maintenance.open_window(change, window)
        self._switch.sync(now)

    def close_maintenance(self, window_id: str, who: str, now: float) -> Maintenance:
        """Close a maintenance window. Raises NotFound."""
        with self._db.change(now, who) as change:
            closed = maintenance.close_window(change, window_id)
        self._switch.sync(now)
        return closed

    def _live(self, campaign_id: str) -> Campaign:
        """Find a campaign that is not over. Raises NotFound, or Conflict when it is."""
        campaign = self._state.campaigns.get(campaign_id)
        if campaign is not None and campaign.live():
            return campaign
        with self._db.read() as session:
            state = campaigns.load(session, campaign_id).state
        raise Conflict(f"campaign {campaign_id} is {state}: it is over")

    def _waiting(self, experiment_id: str) -> tuple[Campaign, Experiment]:
        campaign, experiment = self._state.experiment(experiment_id)
        if experiment.state != "waiting":
            raise Conflict(f"experiment {experiment_id} is {experiment.state}, not waiting")
        return campaign, experiment
