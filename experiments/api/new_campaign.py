"""What is asked for with a new campaign, checked, and in the words of the domain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    create_model,
    field_validator,
    model_validator,
)

from ldfi.errors import InvalidCalendar
from ldfi.experiments.api.documents import AsRead, Document, Line, all_but
from ldfi.experiments.api.views import CampaignView, ExperimentView
from ldfi.experiments.domain.campaign.calendar import Calendar, Schedule
from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.declared import Setting
from ldfi.experiments.domain.settings import DEFAULTS, SETTINGS, Settings
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.fit.protocol.faults import DOWN, Fault
from ldfi.fit.protocol.kinds import alike_of, kind_of
from ldfi.fit.protocol.native import check_native, gone

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_VARIABLE = r"^[a-z]+(:[A-Za-z0-9_.=]+)?@[^\x00-\x1f\x7f]+$"
_MOST_KINDS = 20
Promql = Annotated[str, Field(pattern=r"^[^\x00]*$", min_length=1, max_length=4000)]


class PromqlCounts(Document):
    """PromQL counters of one arm's requests; `$experiment` and `$arm` are filled in."""

    failures: Annotated[
        Promql,
        Field(
            description="A query for the requests of an arm that failed.",
            examples=['sum(orders_failed_total{experiment="$experiment",arm="$arm"})'],
        ),
    ]
    total: Annotated[
        Promql,
        Field(
            description="A query for all requests of an arm.",
            examples=['sum(orders_total{experiment="$experiment",arm="$arm"})'],
        ),
    ]


class NewBlackout(Document):
    """No experiments from `first` to `last`: dates, the last one included, or local times."""

    first: Annotated[
        Line,
        Field(
            description="Where it begins: a date, or a local time such as 2026-12-18T09:00.",
            max_length=32,
            examples=["2026-12-18"],
        ),
    ]
    last: Annotated[
        Line,
        Field(
            description="Where it ends: a date, which is part of it, or a local time.",
            max_length=32,
            examples=["2027-01-04"],
        ),
    ]
    why: Annotated[
        Line,
        Field(
            description="Shown while it holds experiments back.",
            min_length=1,
            max_length=500,
            examples=["holidays"],
        ),
    ]


class NewCalendar(Document):
    """When experiments may run, by the clock on the wall."""

    timezone: Annotated[
        Line,
        Field(
            description="In which days, hours and blackouts are read: a name of the IANA database.",
            max_length=64,
            examples=["Europe/Berlin"],
        ),
    ] = "UTC"
    days: list[Day] = Field(default=[], max_length=7, description="None: any day.")
    hours: Annotated[
        list[Annotated[str, Field(pattern=r"^[0-9]{2}:[0-9]{2}$")]] | None,
        Field(
            min_length=2,
            max_length=2,
            description="From, to; may pass midnight. Null: the whole day.",
            examples=[["09:00", "16:00"]],
        ),
    ] = None
    blackouts: list[NewBlackout] = Field(
        default=[], description="Times without experiments; none: no such times.", max_length=1000
    )

    def meant(self) -> Calendar:
        """Put the same in the words of the domain. Raises InvalidCalendar."""
        return Calendar.from_json(self.model_dump())


class NewSchedule(Document):
    """When a run begins: cron's five fields, read in this time zone."""

    cron: Annotated[
        Line,
        Field(
            description="Minute, hour, day of the month, month, day of the week.",
            max_length=100,
            examples=["0 9 * * mon"],
        ),
    ]
    timezone: Annotated[
        Line,
        Field(
            description="In which these are read: a name of the IANA database.",
            max_length=64,
            examples=["Europe/Berlin"],
        ),
    ] = "UTC"

    def meant(self) -> Schedule:
        """Put the same in the words of the domain. Raises InvalidCalendar."""
        return Schedule.from_json(self.model_dump())


def _possible(variable: str) -> str:
    """Return a fault or a system that is down. Raises ValueError where that cannot happen."""
    if variable.startswith(DOWN):
        return variable
    fault = Fault.parse(variable)
    if fault.first:
        raise ValueError(f"{variable} hits the first calls only, which experiments do not count")
    check_native(fault.kind, fault.point)
    return variable


def _named(variable: str, proxied: tuple[str, ...]) -> str:
    """Say of an error what a dead dependency looks like at its point."""
    kind, _, point = variable.partition("@")
    if kind != "error":
        return variable
    return f"{gone(point, proxied=matching(proxied, [point]) is not None)}@{point}"


def _alike(text: str) -> str:
    """Return what says which kinds are alike. Raises ValueError for what does not."""
    alike_of(text)
    return text


def _each_once(given: list[str]) -> list[str]:
    """Return a list in which nothing stands twice. Raises ValueError for another one."""
    twice = next((each for at, each in enumerate(given) if each in given[:at]), None)
    if twice is not None:
        raise ValueError(f"{twice} stands there twice")
    return given


Hypothesis = Annotated[
    list[Annotated[str, AfterValidator(_possible), Field(pattern=_VARIABLE, max_length=1000)]],
    Field(
        min_length=1,
        max_length=100,
        description="Faults KIND@POINT, or down@SYSTEM, injected together.",
        examples=[["error@api>http:GET:playlist/*"]],
    ),
]

_UNIQUE: Final[dict[str, Any]] = {"uniqueItems": True}

_AS_JSON: Final[Mapping[str, Any]] = {
    "kinds": Annotated[
        list[Annotated[str, AfterValidator(kind_of), Field(max_length=64)]],
        Field(min_length=1, max_length=_MOST_KINDS, json_schema_extra=_UNIQUE),
        AfterValidator(_each_once),
    ],
    "alike": Annotated[
        list[Annotated[str, AfterValidator(_alike), Field(max_length=200)]],
        Field(max_length=_MOST_KINDS, json_schema_extra=_UNIQUE),
        AfterValidator(_each_once),
    ],
    "proxied": Annotated[
        list[Annotated[Line, Field(min_length=1, max_length=1000)]],
        Field(max_length=1000, json_schema_extra=_UNIQUE),
        AfterValidator(_each_once),
    ],
    "promql": PromqlCounts | None,
}
"""Types of settings that look different as JSON."""


def _field(setting: Setting, described: str, **more: Any) -> tuple[Any, Any]:
    about, default = setting.about, setting.default
    shown = list(default) if isinstance(default, tuple) else default
    kind = _AS_JSON.get(setting.name, setting.type)
    bounds: dict[str, Any] = {**about.limits, **more}
    return kind, Field(shown, description=described, **bounds)


def _beside(setting: Setting) -> tuple[Any, Any]:
    """Declare a setting where it stood before there was `settings`."""
    old = {"deprecated": True}
    return _field(setting, "Old form: it belongs into `settings`.", json_schema_extra=old)


if TYPE_CHECKING:
    _Declared = Document  # settings are read by methods, which have types
    _Beside = AsRead
else:
    _Declared = create_model(
        "_Declared",
        __base__=Document,
        **{name: _field(each, each.about.described) for name, each in SETTINGS.items()},
    )
    _Beside = create_model(
        "_Beside", __base__=AsRead, **{name: _beside(each) for name, each in SETTINGS.items()}
    )


class Bounds(_Declared):
    """The bounds and the care of a campaign. Times in seconds, shares of all devices."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"members": 50, "window": 30}]})

    def settings(self, before: Settings = DEFAULTS) -> Settings:
        """Return the same in the words of the domain.

        ``before``: what holds for all that was not set.
        """
        return _changed(before, self)


class Bounded(_Beside):
    """Whatever is tried within bounds: they are said in `settings`."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"settings": {"members": 50}}]})

    nested: Annotated[
        Bounds | None,
        Field(alias="settings", description="Bounds and care. What stands beside it holds."),
    ] = None

    def settings(self, before: Settings = DEFAULTS) -> Settings:
        """Return what was asked for in the words of the domain; ``before``: where nothing was."""
        return _changed(self.nested.settings(before) if self.nested else before, self)

    def named(self) -> frozenset[str]:
        """Name the settings that were asked for, and that no profile chooses."""
        return frozenset(self.nested.model_fields_set if self.nested else ()) | self.old_forms()

    def old_forms(self) -> frozenset[str]:
        """Name the settings that stand beside `settings`."""
        return frozenset(self.model_fields_set & set(SETTINGS))


def _changed(before: Settings, document: Document) -> Settings:
    given = document.model_dump(include=set(SETTINGS), exclude_unset=True)
    return Settings.from_json({**before.to_json(), **given})


class NewCampaign(Bounded):
    """A campaign: over which classes, within which bounds, when.

    A campaign as it is read makes the same campaign again, and so does its `definition`.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "nightly",
                    "classes": ["GET /boot*"],
                    "settings": {"max_size": 2, "members": 50},
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

    name: Annotated[
        Line,
        Field(description="What people call it; shown in lists and notifications.", max_length=100),
    ] = ""
    classes: list[Annotated[Line, Field(min_length=1, max_length=1000)]] = Field(
        default=[], max_length=1000, description="Names, or patterns with *; none: every fit class."
    )
    calendar: Annotated[
        NewCalendar | None, Field(description="When experiments may run; null: at any time.")
    ] = None
    schedule: Annotated[
        NewSchedule | None, Field(description="When a run begins; null: one run, now.")
    ] = None
    hypotheses: list[Hypothesis] = Field(
        default=[],
        max_length=100,
        description="None: it explores. Others are tried once each, on the one class.",
    )

    @model_validator(mode="before")
    @classmethod
    def _as_read(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not isinstance(given.get("definition"), dict):
            return given
        definition, filled_in = given["definition"], all_but(CampaignView, {"name"})
        beside = {name: value for name, value in given.items() if name not in filled_in}
        before, after = definition.get("settings"), beside.get("settings")
        if isinstance(before, dict) and isinstance(after, dict):
            beside["settings"] = {**before, **after}
        return {**definition, **beside}

    @model_validator(mode="after")
    def _on_one_class(self) -> NewCampaign:
        if self.hypotheses and len(self.classes) != 1:
            raise ValueError("hypotheses are tried on one class, which `classes` names")
        return self

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
        """Put the same in the words of the domain."""
        settings, hypotheses = _tried(self.settings(), self.hypotheses)
        return Definition(
            settings=settings,
            hypotheses=hypotheses,
            classes=tuple(self.classes),
            name=self.name,
            calendar=self.calendar.meant() if self.calendar else None,
            schedule=self.schedule.meant() if self.schedule else None,
        )


class NewExperiment(Bounded):
    """One hypothesis tried on one request class, as soon as the gates are open.

    An experiment as it is read tries the same again, with the bounds that stand here.
    """

    filled_in: ClassVar = all_but(ExperimentView, {"request_class", "hypothesis"})

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"request_class": "GET /boot", "hypothesis": ["error@api>http:GET:playlist/*"]}
            ]
        }
    )

    request_class: Annotated[
        Line,
        Field(
            description="The exact name of the class whose requests are treated.",
            min_length=1,
            max_length=1000,
            examples=["GET /boot"],
        ),
    ]
    hypothesis: Hypothesis

    def definition(self) -> Definition:
        """Make a campaign of just this experiment. It is not confirmed: it was asked for once."""
        settings, hypotheses = _tried(self.settings(), [self.hypothesis])
        return Definition(
            settings=settings,
            classes=(self.request_class,),
            name=f"one experiment on {self.request_class}",
            hypotheses=hypotheses,
        )


def _tried(
    settings: Settings, hypotheses: list[list[str]]
) -> tuple[Settings, tuple[frozenset[str], ...]]:
    """Put hypotheses in the words of the domain, and their kinds among those that are tried."""
    every = {each for faults in hypotheses for each in sorted(faults)}
    asked = sorted({Fault.parse(each).kind for each in every if not each.startswith(DOWN)})
    kinds = tuple(dict.fromkeys((*settings.kinds, *asked)))
    named = partial(_named, proxied=settings.proxied)
    return replace(settings, kinds=kinds), tuple(frozenset(map(named, each)) for each in hypotheses)
