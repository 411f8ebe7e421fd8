"""What is asked for with a new campaign, checked, and in the words of the domain."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, field_validator

from ldfi.experiments.api.documents import Document, Line
from ldfi.experiments.domain.campaign.calendar import Calendar, Schedule
from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.settings import (
    OnDrift,
    PromqlOutcome,
    Settings,
    Thresholds,
    VerdictRule,
)
from ldfi.experiments.errors import InvalidCalendar
from ldfi.fit.faults import KINDS, FaultKind

_SHOWN = Settings()
_MANY = 1_000_000_000
_JUDGED = Thresholds()
_JUDGING = {"alpha_harmful", "alpha_tolerated", "delta", "min_samples"}

Strategy = Literal["smallest", "likeliest", "union"]
Share = Annotated[float, Field(gt=0, le=0.5)]
Alpha = Annotated[float, Field(gt=0, lt=1)]


Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_VARIABLE = r"^(error|delay|down)@[^\x00-\x1f\x7f]+$"
Promql = Annotated[str, Field(pattern=r"^[^\x00]*$", min_length=1, max_length=4000)]


class PromqlCounts(Document):
    """PromQL counters of one arm's requests; `$experiment` and `$arm` are filled in."""

    failures: Annotated[
        Promql, Field(examples=['sum(orders_failed_total{experiment="$experiment",arm="$arm"})'])
    ]
    total: Annotated[
        Promql, Field(examples=['sum(orders_total{experiment="$experiment",arm="$arm"})'])
    ]


class NewBlackout(Document):
    """No experiments from `first` to `last`: dates, the last one included, or local times."""

    first: Annotated[Line, Field(max_length=32, examples=["2026-12-18"])]
    last: Annotated[Line, Field(max_length=32, examples=["2027-01-04"])]
    why: Annotated[Line, Field(min_length=1, max_length=500, examples=["holidays"])]


class NewCalendar(Document):
    """When experiments may run, by the clock on the wall."""

    timezone: Annotated[Line, Field(max_length=64, examples=["Europe/Berlin"])] = "UTC"
    days: list[Day] = Field([], max_length=7, description="None: any day.")
    hours: Annotated[
        list[Annotated[str, Field(pattern=r"^[0-9]{2}:[0-9]{2}$")]] | None,
        Field(
            min_length=2,
            max_length=2,
            description="From, to; may pass midnight. Null: the whole day.",
            examples=[["09:00", "16:00"]],
        ),
    ] = None
    blackouts: list[NewBlackout] = Field([], max_length=1000)

    def meant(self) -> Calendar:
        """The same in the words of the domain. Raises InvalidCalendar."""
        return Calendar.from_json(self.model_dump())


class NewSchedule(Document):
    """When a run begins: cron's five fields, read in this time zone."""

    cron: Annotated[Line, Field(max_length=100, examples=["0 9 * * mon"])]
    timezone: Annotated[Line, Field(max_length=64, examples=["Europe/Berlin"])] = "UTC"

    def meant(self) -> Schedule:
        """The same in the words of the domain. Raises InvalidCalendar."""
        return Schedule.from_json(self.model_dump())


class Bounds(Document):
    """The bounds and the care of a campaign. Times in seconds, shares of all devices."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"members": 50, "window": 30}]})

    max_size: Annotated[int, Field(ge=1, le=4, description="Faults at once, at most.")] = 2
    kinds: list[FaultKind] = Field(list(KINDS), min_length=1, max_length=len(KINDS))
    strategy: Strategy = "union"
    max_union: Annotated[
        int | None,
        Field(ge=1, le=10_000, description="Faults that one experiment may unite; null: no cap."),
    ] = _SHOWN.max_union
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
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
        int, Field(ge=1, le=_MANY, description="Devices that one run of the campaign may expose.")
    ] = _SHOWN.member_budget
    concurrency: Annotated[int, Field(ge=1, le=100, description="Experiments at once.")] = (
        _SHOWN.concurrency
    )
    rule: Annotated[VerdictRule, Field(description="How a verdict is reached.")] = "sequential"
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
    min_traffic: Annotated[int, Field(ge=1, le=_MANY)] = _SHOWN.min_traffic
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
        Field(ge=0, le=_MANY, description="Members that may be hurt without approval."),
    ] = None

    def settings(self, before: Settings | None = None) -> Settings:
        """The same in the words of the domain. ``before``: what holds for all that was not set."""
        given = set(Bounds.model_fields) if before is None else self.model_fields_set
        before = before or Settings()
        values = self.model_dump(include=given - _JUDGING - {"kinds", "promql"})
        if "kinds" in given:
            values["kinds"] = tuple(self.kinds)
        if "promql" in given:
            values["promql"] = PromqlOutcome(**self.promql.model_dump()) if self.promql else None
        thresholds = replace(before.thresholds, **self.model_dump(include=given & _JUDGING))
        return replace(before, **values, thresholds=thresholds)


class NewCampaign(Bounds):
    """A campaign: over which classes, within which bounds, when."""

    model_config = ConfigDict(
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

    name: Annotated[Line, Field(max_length=100)] = ""
    classes: list[Annotated[Line, Field(min_length=1, max_length=1000)]] = Field(
        [], max_length=1000, description="Names, or patterns with *; none: every fit class."
    )
    calendar: Annotated[
        NewCalendar | None, Field(description="When experiments may run; null: at any time.")
    ] = None
    schedule: Annotated[
        NewSchedule | None, Field(description="When a run begins; null: one run, now.")
    ] = None

    @field_validator("calendar", "schedule")
    @classmethod
    def _makes_sense(
        cls, value: NewCalendar | NewSchedule | None
    ) -> NewCalendar | NewSchedule | None:
        try:
            if value is not None:
                value.meant()
        except InvalidCalendar as error:
            raise ValueError(str(error)) from error
        return value

    def definition(self) -> Definition:
        """The same in the words of the domain."""
        return Definition(
            settings=self.settings(),
            classes=tuple(self.classes),
            name=self.name,
            calendar=self.calendar.meant() if self.calendar else None,
            schedule=self.schedule.meant() if self.schedule else None,
        )


class NewExperiment(Bounds):
    """One hypothesis tried on one request class, as soon as the gates are open."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"request_class": "GET /boot", "hypothesis": ["error@api>http:GET:playlist/*"]}
            ]
        }
    )

    request_class: Annotated[Line, Field(min_length=1, max_length=1000, examples=["GET /boot"])]
    hypothesis: Annotated[
        list[Annotated[str, Field(pattern=_VARIABLE, max_length=1000)]],
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
