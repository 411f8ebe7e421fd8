"""What is asked for with a new campaign, checked, and in the words of the domain."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from experiments.domain.calendar import Calendar, Schedule
from experiments.domain.campaign import Definition
from experiments.domain.settings import OnDrift, PromqlOutcome, Rule, Settings
from experiments.domain.verdict import Thresholds
from experiments.errors import InvalidCalendar
from fit.faults import KINDS, FaultKind

_SHOWN = Settings()
_JUDGED = Thresholds()

Strategy = Literal["smallest", "likeliest", "union"]
Share = Annotated[float, Field(gt=0, le=0.5)]
Alpha = Annotated[float, Field(gt=0, lt=1)]


Promql = Annotated[str, Field(min_length=1, max_length=4000)]


class PromqlCounts(BaseModel):
    """PromQL counters of one arm's requests; `$experiment` and `$arm` are filled in."""

    model_config = ConfigDict(extra="forbid")

    failures: Annotated[
        Promql, Field(examples=['sum(orders_failed_total{experiment="$experiment",arm="$arm"})'])
    ]
    total: Annotated[
        Promql, Field(examples=['sum(orders_total{experiment="$experiment",arm="$arm"})'])
    ]


class Bounds(BaseModel):
    """The bounds and the care of a campaign. Times in seconds, shares of all devices."""

    model_config = ConfigDict(extra="forbid")

    max_size: Annotated[int, Field(ge=1, le=4, description="Faults at once, at most.")] = 2
    kinds: Annotated[list[FaultKind], Field(min_length=1)] = list(KINDS)
    strategy: Strategy = "union"
    max_union: Annotated[
        int | None, Field(ge=1, description="Faults that one experiment may unite; null: no cap.")
    ] = _SHOWN.max_union
    seed: int = 0
    delay: Annotated[
        float, Field(gt=0, le=60, description="How long a delay hangs without a caller's timeout.")
    ] = _SHOWN.delay
    treatment: Annotated[Share, Field(description="Share of devices that are treated.")] = (
        _SHOWN.treatment
    )
    control: Annotated[Share, Field(description="Share of devices compared with them.")] = (
        _SHOWN.control
    )
    members: Annotated[
        int, Field(ge=1, le=100_000, description="Devices that one experiment may expose.")
    ] = _SHOWN.members
    member_budget: Annotated[
        int, Field(ge=1, description="Devices that one run of the campaign may expose.")
    ] = _SHOWN.member_budget
    concurrency: Annotated[int, Field(ge=1, le=100, description="Experiments at once.")] = (
        _SHOWN.concurrency
    )
    rule: Annotated[Rule, Field(description="How a verdict is reached.")] = "sequential"
    alpha_harmful: Alpha = _JUDGED.alpha_harmful
    alpha_tolerated: Alpha = _JUDGED.alpha_tolerated
    delta: Annotated[
        float, Field(gt=0, lt=1, description="The rise in failure rate that would matter.")
    ] = _JUDGED.delta
    min_samples: Annotated[int, Field(ge=1, le=10_000)] = _JUDGED.min_samples
    fdr: Annotated[Alpha, Field(description="Share of findings that may be false.")] = _SHOWN.fdr
    window: Annotated[float, Field(ge=1, le=600)] = _SHOWN.window
    settle: Annotated[
        float, Field(ge=0, le=120, description="Wait for devices that report late.")
    ] = _SHOWN.settle
    confirm: Annotated[bool, Field(description="Announce only what has hurt twice.")] = True
    verify: Annotated[bool, Field(description="Try known findings again in every run.")] = True
    rechecks: Annotated[
        int, Field(ge=0, le=100, description="Sets inferred to be safe that are tried, per class.")
    ] = _SHOWN.rechecks
    min_traffic: Annotated[int, Field(ge=1)] = _SHOWN.min_traffic
    min_consistency: Annotated[float, Field(ge=0, le=1)] = _SHOWN.min_consistency
    on_drift: OnDrift = "reopen"
    guardrail: Annotated[
        float, Field(gt=0, le=1, description="Share of control devices that may fail.")
    ] = _SHOWN.guardrail
    promql: Annotated[
        PromqlCounts | None,
        Field(description="Where outcomes are counted elsewhere; null: what devices report."),
    ] = None
    approve_above: Annotated[
        float | None,
        Field(ge=0, description="Members that may be hurt without an operator's approval."),
    ] = None

    def settings(self) -> Settings:
        """The same in the words of the domain."""
        judged = {"alpha_harmful", "alpha_tolerated", "delta", "min_samples"}
        values = self.model_dump(include=set(Bounds.model_fields) - judged - {"kinds", "promql"})
        promql = PromqlOutcome(**self.promql.model_dump()) if self.promql else None
        thresholds = Thresholds(**self.model_dump(include=judged))
        return Settings(**values, kinds=tuple(self.kinds), thresholds=thresholds, promql=promql)


class NewCampaign(Bounds):
    """A campaign: over which classes, within which bounds, when."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "name": "nightly",
                    "classes": ["GET /boot*"],
                    "max_size": 2,
                    "members": 50,
                    "calendar": {
                        "timezone": "Europe/Berlin",
                        "days": ["mon", "tue", "wed", "thu"],
                        "hours": ["09:00", "16:00"],
                        "blackouts": [
                            {"first": "2026-12-18", "last": "2027-01-04", "why": "holidays"}
                        ],
                    },
                    "schedule": {"cron": "0 9 * * mon", "timezone": "Europe/Berlin"},
                }
            ]
        },
    )

    name: Annotated[str, Field(max_length=100)] = ""
    classes: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=1000)]],
        Field(max_length=1000, description="Names, or patterns with *; none: every fit class."),
    ] = []
    calendar: Annotated[
        dict[str, Any] | None, Field(description="When experiments may run; null: at any time.")
    ] = None
    schedule: Annotated[
        dict[str, Any] | None, Field(description="When a run begins; null: one run, now.")
    ] = None

    @field_validator("calendar")
    @classmethod
    def _is_calendar(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        return _checked(value, Calendar)

    @field_validator("schedule")
    @classmethod
    def _is_schedule(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        return _checked(value, Schedule)

    def definition(self) -> Definition:
        """The same in the words of the domain."""
        return Definition(
            settings=self.settings(),
            classes=tuple(self.classes),
            name=self.name,
            calendar=Calendar.from_json(self.calendar) if self.calendar else None,
            schedule=Schedule.from_json(self.schedule) if self.schedule else None,
        )


class NewExperiment(Bounds):
    """One hypothesis tried on one request class, as soon as the gates are open."""

    request_class: Annotated[str, Field(min_length=1, max_length=1000, examples=["GET /boot"])]
    hypothesis: Annotated[
        list[Annotated[str, Field(min_length=3, max_length=1000)]],
        Field(
            min_length=1,
            max_length=100,
            description="Faults KIND@POINT, or down@SYSTEM, injected together.",
            examples=[["error@api>http:GET:playlist/*"]],
        ),
    ]

    def definition(self) -> Definition:
        """A campaign of just this experiment. It is not confirmed: it was asked for once."""
        return Definition(
            settings=self.settings(),
            classes=(self.request_class,),
            name=f"one experiment on {self.request_class}",
            hypotheses=(frozenset(self.hypothesis),),
        )


def _checked(
    value: dict[str, Any] | None, kind: type[Calendar | Schedule]
) -> dict[str, Any] | None:
    if value is not None:
        try:
            kind.from_json(value)
        except InvalidCalendar as error:
            raise ValueError(str(error)) from error
    return value
