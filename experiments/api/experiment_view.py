"""What the API shows of an experiment, and of the devices in it."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from ldfi.experiments.api.view import View
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.judging.counts import DeviceCounts
from ldfi.experiments.queries.experiment_summary import (
    ExperimentSummary,
    experiment_so_far,
    experiment_summary,
)
from ldfi.experiments.queries.wording import PURPOSES
from ldfi.experiments.store.experiments import counts_of
from ldfi.experiments.store.schema import ExperimentRow


class DevicesView(View):
    """Devices, in the one vocabulary of all answers, commands and pages."""

    reserved: int = Field(description="May be treated at most; taken from the budget.")
    treated: int = Field(description="Their requests got a failure context of the treatment.")
    reached: int = Field(description="Treated, and a fault fired in their requests.")
    failed: int = Field(description="Of either arm, reported a failure.")
    hurt: int = Field(description="Treated, and reported a failure, whatever the verdict.")
    bystanders_hurt: int = Field(
        description="Nobody drew them; they met a fault all the same, and failed."
    )
    unknown: int = Field(
        description="Reserved by experiments of which nobody can say how many they treated."
    )


def no_devices() -> DevicesView:
    return DevicesView.model_validate(DeviceCounts())


class ExperimentView(View):
    """One experiment: what was tried on whom, why it ended, and control against treatment."""

    id: str = Field(description="By which routes and commands name it.", examples=["3f1c9a52b7de"])
    campaign_id: str = Field(
        description="The campaign that it belongs to.", examples=["0b9c6a7e2f10"]
    )
    run: int = Field(description="Which run of the campaign it is of: the first is 1.")
    request_class: str = Field(
        description="The request class whose requests it treats.", examples=["GET /boot"]
    )
    purpose: str = Field(
        description="For what it was tried: "
        + "; ".join(f"`{name}`: {words}" for name, words in PURPOSES.items())
        + ".",
        examples=list(PURPOSES),
    )
    hypothesis: list[str] = Field(
        description="The set of failures that is tried, as the solver has it: KIND@POINT or "
        "down@SYSTEM.",
        examples=[["error@api>http:GET:playlist/*"]],
    )
    faults: list[str] = Field(
        description="What is injected for it, KIND@POINT: down@SYSTEM stands for an error at "
        "each of its points.",
        examples=[["error@api>http:GET:playlist/*"]],
    )
    state: str = Field(
        description="How far it is: `proposed`, `waiting`, `armed`, `observing`, `settling`, "
        "then `decided` or `aborted`.",
        examples=["waiting", "observing", "decided", "aborted"],
    )
    verdict: str | None = Field(
        description="What was decided; null: nothing yet, or it was aborted.",
        examples=["harmful", "tolerated", "inconclusive"],
    )
    reason: str = Field(
        description="Why it waits, or why it ended, in words; empty: there is nothing to say.",
        examples=["evidence"],
    )
    risk: float = Field(description="How many members it may hurt, as far as could be told.")
    approved_by: str | None = Field(
        description="Whoever approved it, where the campaign asks for that; null: nobody."
    )
    level: float | None = Field(description="Chance of a false `harmful` that it could run.")
    members_reserved: int = Field(description="Old form of `devices.reserved`.")
    members_charged: int = Field(
        description="What budgets count: all that are reserved until it has ended, then those "
        "treated. How many took part is in `devices`."
    )
    devices: DevicesView = Field(
        description="Its devices, as far as anybody knows.", default_factory=no_devices
    )
    created_at: float = Field(
        description="When it was proposed (Unix seconds).", examples=[1767225600.0]
    )
    armed_at: float | None = Field(
        description="When its rules were first handed out (Unix seconds); null: never.",
        examples=[1767225600.0],
    )
    ended_at: float | None = Field(
        description="When it was decided or aborted (Unix seconds); null: it goes on.",
        examples=[1767225600.0],
    )
    counts: dict[str, Any] = Field(
        validation_alias="comparison",
        default_factory=dict,
        examples=[
            {
                "control": {"devices": 40, "failures": 0, "failure_rate": 0.0},
                "treatment": {"devices": 34, "failures": 34, "failure_rate": 1.0},
                "exposed": 34,
            }
        ],
        description="Control against treatment, of devices that were compared; `exposed`: devices "
        "reached; `edges`: how many devices each edge was given and "
        "used, the largest first, and whether it tells some apart by address.",
    )

    model_config = ConfigDict(from_attributes=True, populate_by_name=True)

    @classmethod
    def of(cls, row: ExperimentRow, live: Any = None) -> ExperimentView:
        """Show it from its record; ``live`` is the experiment itself, while it is not over."""
        view = cls.model_validate(row)
        if live is not None:
            view.counts = counts_of(live)
        return view._with(experiment_summary(row, live))

    @classmethod
    def live(cls, experiment: Any, campaign: Campaign) -> ExperimentView:
        """Show it from the experiment itself."""
        return cls(
            id=experiment.id,
            campaign_id=campaign.id,
            run=campaign.run,
            request_class=experiment.request_class,
            purpose=experiment.purpose,
            hypothesis=sorted(experiment.hypothesis),
            faults=[str(fault) for fault in experiment.faults],
            state=experiment.state,
            verdict=experiment.verdict,
            reason=experiment.reason,
            risk=experiment.risk,
            approved_by=experiment.approved_by,
            level=experiment.level,
            members_reserved=0,
            members_charged=0,
            created_at=experiment.created_at,
            armed_at=experiment.armed_at,
            ended_at=experiment.ended_at,
            counts=counts_of(experiment),
        )._with(experiment_so_far(experiment, campaign.id, campaign.run))

    def _with(self, summary: ExperimentSummary) -> ExperimentView:
        self.state, self.reason = summary.state, summary.reason
        self.devices = DevicesView.model_validate(summary.counts)
        return self
