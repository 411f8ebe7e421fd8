"""What is asked for with a new campaign, checked, and in the words of the domain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field, create_model, field_validator

from ldfi.experiments.api.documents import Document, Line
from ldfi.experiments.domain.campaign.calendar import Calendar, Schedule
from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.campaign.fold import DOWN
from ldfi.experiments.domain.declared import Setting
from ldfi.experiments.domain.settings import DEFAULTS, SETTINGS, Settings
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.experiments.errors import InvalidCalendar
from ldfi.fit.faults import Fault
from ldfi.fit.native import check_native, gone
from ldfi.kinds import alike_of, kind_of

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_VARIABLE = r"^[a-z]+(:[A-Za-z0-9_.=]+)?@[^\x00-\x1f\x7f]+$"
_MOST_KINDS = 20
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
        """Put the same in the words of the domain. Raises InvalidCalendar."""
        return Calendar.from_json(self.model_dump())


class NewSchedule(Document):
    """When a run begins: cron's five fields, read in this time zone."""

    cron: Annotated[Line, Field(max_length=100, examples=["0 9 * * mon"])]
    timezone: Annotated[Line, Field(max_length=64, examples=["Europe/Berlin"])] = "UTC"

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


def _field(setting: Setting) -> tuple[Any, Any]:
    about, default = setting.about, setting.default
    shown = list(default) if isinstance(default, tuple) else default
    kind = _AS_JSON.get(setting.name, setting.type)
    bounds: dict[str, Any] = dict(about.limits)
    return kind, Field(shown, description=about.described, **bounds)


if TYPE_CHECKING:
    _Declared = Document  # its settings are read by :meth:`Bounds.settings`, which has a type
else:
    _Declared = create_model(
        "_Declared", __base__=Document, **{name: _field(each) for name, each in SETTINGS.items()}
    )


class Bounds(_Declared):
    """The bounds and the care of a campaign. Times in seconds, shares of all devices."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"members": 50, "window": 30}]})

    def settings(self, before: Settings = DEFAULTS) -> Settings:
        """Return the same in the words of the domain.

        ``before``: what holds for all that was not set.
        """
        given = self.model_dump(include=set(SETTINGS), exclude_unset=True)
        return Settings.from_json({**before.to_json(), **given})


class NewCampaign(Bounds):
    """A campaign: over which classes, within which bounds, when.

    A campaign's `definition`, as it is read, makes the same campaign again.
    """

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
    nested: Annotated[
        Bounds | None,
        Field(
            alias="settings",
            description="Bounds and care, as a `definition` has them; what stands beside it holds.",
        ),
    ] = None
    hypotheses: list[list[str]] = Field(
        [],
        max_length=0,
        description="None: a campaign explores. `POST /experiments` tries one hypothesis.",
    )

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
        return Definition(
            settings=self.settings(self.nested.settings() if self.nested else DEFAULTS),
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
        list[Annotated[str, AfterValidator(_possible), Field(pattern=_VARIABLE, max_length=1000)]],
        Field(
            min_length=1,
            max_length=100,
            description="Faults KIND@POINT, or down@SYSTEM, injected together.",
            examples=[["error@api>http:GET:playlist/*"]],
        ),
    ]

    def definition(self) -> Definition:
        """Make a campaign of just this experiment. It is not confirmed: it was asked for once."""
        settings = self.settings()
        asked = (Fault.parse(each).kind for each in self.hypothesis if not each.startswith(DOWN))
        kinds = tuple(dict.fromkeys((*settings.kinds, *asked)))
        named = partial(_named, proxied=settings.proxied)
        return Definition(
            settings=replace(settings, kinds=kinds),
            classes=(self.request_class,),
            name=f"one experiment on {self.request_class}",
            hypotheses=(frozenset(map(named, self.hypothesis)),),
        )
