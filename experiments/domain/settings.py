"""What an operator decides: about one campaign, and about the service as a whole.

A setting of a campaign stands here and nowhere else: type, default, bounds, and what people are
told of it. :data:`SETTINGS` is what the API, the command line and the form are made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Final, Literal, Self

from ldfi.experiments.domain.declared_settings import About, Setting, settings_of
from ldfi.fit.protocol.kinds import KINDS, FaultKind, alike_of, kind_of

StrategyName = Literal["smallest", "likeliest", "union"]
VerdictRule = Literal["sequential", "threshold"]
Admission = Literal["staged", "all"]
OnDrift = Literal["reopen", "pause", "ignore"]
Profile = Literal["staging", "production"]

_MANY: Final = 1_000_000_000
MAX_PATIENCE: Final = 120.0
"""Seconds that a failure context may be asked to hold at most, as edges have it (fit.rules)."""
MAX_FOLLOW: Final = 600.0
"""Seconds that a device may be followed at most."""
MAX_SETTLE: Final = 300.0
"""Seconds that late devices are waited for at most."""
_LISTS: Final = ("kinds", "alike", "proxied")
"""The settings of several values."""


@dataclass(frozen=True, slots=True)
class Caution:
    """What a profile may choose: shares of devices from ``least`` to ``most`` in either arm, and
    the longest window, in seconds. ``united``: faults that one experiment may unite. Some devices
    are always left out of both arms, for the steady state is told by them."""

    least: float
    most: float
    window: float
    united: int | None


PROFILES: Final[Mapping[Profile, Caution]] = {
    "staging": Caution(least=0.4, most=0.4, window=600.0, united=None),
    "production": Caution(least=0.001, most=0.05, window=120.0, united=10),
}


LONGEST_WINDOW: Final = 600.0
"""Seconds that an experiment may observe."""


@dataclass(frozen=True, slots=True)
class PromqlOutcome:
    """Two PromQL expressions that count requests of one arm: all, and those that failed.

    ``$experiment`` and ``$arm`` (``control`` or ``treatment``) stand in them for what is asked
    about, so the series must carry both as labels; :func:`fit.current` tells a service what it
    serves. Counters: they may only rise.
    """

    failures: str
    total: str


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When evidence is enough. Raises ValueError for a value outside its bounds."""

    alpha_harmful: Annotated[
        float,
        About("Chance of a false verdict harmful", "Chance of a false “harmful”", gt=0, lt=1),
    ] = 1e-3
    alpha_tolerated: Annotated[
        float,
        About("Chance of a false verdict tolerated", "Chance of a false “tolerated”", gt=0, lt=1),
    ] = 0.05
    delta: Annotated[
        float,
        About(
            "The rise in failure rate that would matter",
            "Rise that matters",
            "In the failure rate, as a share.",
            gt=0,
            lt=1,
        ),
    ] = 0.15
    min_samples: Annotated[
        int,
        About("Outcomes of either arm before a verdict", "Pairs before a verdict", ge=1, le=10_000),
    ] = 10

    def __post_init__(self) -> None:
        """Refuse what is out of bounds, here and in :class:`Settings`."""
        for each in fields(self):
            SETTINGS[each.name].check(getattr(self, each.name))


STEADY: Final = 0.9
"""Where nobody says otherwise no experiment starts or goes on in a class of whose bystanders a
smaller share succeeds."""


@dataclass(frozen=True, slots=True)
class Settings(Thresholds):
    """Bounds and care of a campaign. Times in seconds, shares of all devices.

    Some need more words than people can be told on the spot. ``kinds``: besides ``error`` and
    ``delay`` those of :mod:`ldfi.fit.protocol.kinds`, each tried at the points that can have it.
    ``delay`` is the longest that any call hangs; ``delay:0.5..2`` among the kinds draws shorter
    ones. ``concurrency``: one experiment at a time for each class. ``confirm``: a finding is
    announced when a second experiment of its own has hurt as well. ``verify``: known findings of
    the classes are tried again in every run, as many as the budget has room for. ``rechecks``
    measure how far "more faults never help" holds;
    where there are any, what was survived is tried again before a certificate rests on it.
    ``window``: when it is over the experiment is inconclusive. ``approve_above``: experiments
    that may hurt more members than this, as far as one can tell beforehand, wait for an operator.
    ``profile``: chooses, as the campaign starts, those of shares, window and unions that were not
    given (:mod:`ldfi.experiments.domain.gates.feasibility`). ``alike``: an assumption falls at a
    point where one of its kinds hurt and another was survived.
    Raises ValueError for a value outside its bounds.
    """

    profile: Annotated[
        Profile | None,
        About(
            "What shares and window are chosen for, by the traffic seen",
            "Choose shares and window for",
            "Staging: large shares; production: the smallest that can decide.",
            none="they are as given",
        ),
    ] = None
    max_size: Annotated[int, About("Faults at once, at most", "Faults at once", ge=1, le=4)] = 2
    kinds: Annotated[
        tuple[FaultKind, ...],
        About(
            "Kinds of fault that are tried",
            "Kinds of fault",
            choices=KINDS,
            reads=kind_of,
        ),
    ] = KINDS
    each_kind: Annotated[
        bool,
        About(
            "Try what was found to hurt with its other kinds, too; else they are presumed to hurt",
            "Try other kinds of what hurts",
        ),
    ] = False
    alike: Annotated[
        tuple[str, ...],
        About(
            "Kinds that are assumed to do the same, as 5xx or refused+reset",
            "Kinds taken as alike",
            "An assumption; certificates name it, and rechecks try it.",
            reads=alike_of,
        ),
    ] = ()
    proxied: Annotated[
        tuple[str, ...],
        About(
            "Points before which a proxy stands: an error there is its answer 503",
            "Behind a proxy",
            "Patterns with *; those where traffic has shown it are known anyway.",
            reads=str.strip,
        ),
    ] = ()
    strategy: Annotated[
        StrategyName,
        About("How the next try is chosen", "Strategy", "Smallest is the most cautious."),
    ] = "union"
    max_union: Annotated[
        int | None,
        About(
            "Faults that one experiment may unite",
            "Faults united at most",
            "By the strategy union.",
            none="no cap",
            ge=1,
            le=10_000,
        ),
    ] = None
    seed: Annotated[
        int,
        About(
            "Seed of every choice that is left to chance",
            "Seed",
            "The same seed makes the same choices.",
            ge=0,
            lt=2**63,
        ),
    ] = 0
    delay: Annotated[
        float,
        About(
            "How long a delay hangs without a caller's timeout, and the longest that is drawn",
            "A delay hangs for",
            "Where the caller sets no timeout.",
            unit="seconds",
            gt=0,
            le=60,
        ),
    ] = 10.0
    treatment: Annotated[
        float,
        About(
            "Share of devices that are treated",
            "Share treated",
            "Of all devices; 0.01 is one in a hundred.",
            ge=1e-9,
            le=0.5,
        ),
    ] = 0.01
    control: Annotated[
        float,
        About(
            "Share of devices that the treated are compared with",
            "Share in control",
            "Nothing is injected; about ten times as many hurt the fewest.",
            ge=1e-9,
            le=0.5,
        ),
    ] = 0.1
    members: Annotated[
        int,
        About(
            "Devices that one experiment may expose",
            "Members per experiment",
            "One experiment exposes no more devices than this.",
            ge=1,
            le=100_000,
        ),
    ] = 100
    admission: Annotated[
        Admission,
        About(
            "How devices are let into an experiment: some at a time, or all at once",
            "Let in",
            "Staged hurts far fewer; all at once is quicker.",
        ),
    ] = "staged"
    member_budget: Annotated[
        int,
        About(
            "Devices that one run of the campaign may expose",
            "Members per run",
            "All experiments of one run together.",
            ge=1,
            le=_MANY,
        ),
    ] = 10_000
    concurrency: Annotated[
        int,
        About("Experiments at once", hint="Each on a request class of its own.", ge=1, le=100),
    ] = 3
    rule: Annotated[VerdictRule, About("How a verdict is reached", "Verdict by")] = "sequential"
    fdr: Annotated[
        float,
        About(
            "Share of findings that may be false",
            "False findings, share",
            "Over the life of the service.",
            gt=0,
            lt=1,
        ),
    ] = 0.05
    window: Annotated[
        float,
        About(
            "How long an experiment observes at most",
            "Observe for",
            "At most; then it is inconclusive.",
            unit="seconds",
            ge=1,
            le=LONGEST_WINDOW,
        ),
    ] = 120.0
    settle: Annotated[
        float,
        About(
            "Wait for devices that report late",
            "Wait for late devices",
            unit="seconds",
            ge=0,
            le=MAX_SETTLE,
        ),
    ] = 5.0
    patience: Annotated[
        float | None,
        About(
            "How long a request's failure context holds, and so how long after a halt calls may "
            "still be made to fail",
            "A context holds for",
            "As long as callers go on asking.",
            unit="seconds",
            none="learned: as long as requests of the class last when something fails",
            gt=0,
            le=MAX_PATIENCE,
        ),
    ] = None
    follow: Annotated[
        float | None,
        About(
            "How long a device is followed from its first request in an experiment, for harm that "
            "comes with a later one",
            "Follow devices for",
            "As long as devices take to come again.",
            unit="seconds",
            none="learned: until nearly all that come again have, 60 seconds at most",
            ge=0,
            le=MAX_FOLLOW,
        ),
    ] = None
    confirm: Annotated[bool, About("Announce only what has hurt twice")] = True
    apart: Annotated[
        float,
        About(
            "How long after it has hurt a finding is confirmed",
            "Confirm after",
            "So that no single incident makes a finding.",
            unit="seconds",
            ge=0,
            le=86_400,
        ),
    ] = 60.0
    verify: Annotated[bool, About("Try known findings again in every run")] = True
    rechecks: Annotated[
        int,
        About(
            "Sets inferred to be safe that are tried, per class; 0: nor is what was survived",
            "Rechecks per class",
            "Sets inferred to be safe that are tried. 0: and what was survived is not tried again.",
            ge=0,
            le=100,
        ),
    ] = 2
    min_traffic: Annotated[
        int,
        About(
            "Good requests that a class must have had",
            "Good requests first",
            "A class needs so many.",
            ge=1,
            le=_MANY,
        ),
    ] = 100
    min_consistency: Annotated[
        float,
        About(
            "Share of a class's good requests that must be alike, where its parts contradict each "
            "other",
            "Consistency",
            "Share of a class's requests that do the same, where its parts contradict each other.",
            ge=0,
            le=1,
        ),
    ] = 0.95
    unseen: Annotated[
        float | None,
        About(
            "Largest share of a class's calls that may not be seen, at 95 %",
            "May not be seen",
            "Share of calls; where more are missing from traces, nothing is complete.",
            none="it is told, and holds nothing up",
            ge=0,
            le=1,
        ),
    ] = None
    on_drift: Annotated[
        OnDrift, About("What becomes of a class whose lineage changes", "When a lineage changes")
    ] = "reopen"
    steady: Annotated[
        float,
        About(
            "Share of requests that must go right by themselves",
            "Must go right by themselves",
            "Of those nobody injects into; where fewer do nothing starts, and what runs stops.",
            gt=0,
            le=1,
        ),
    ] = STEADY
    guardrail: Annotated[
        float,
        About(
            "Share of control devices that may fail",
            "Control may fail",
            "Share of devices; more calls the experiment off.",
            gt=0,
            le=1,
        ),
    ] = 0.3
    promql: Annotated[
        PromqlOutcome | None,
        About("Where outcomes are counted elsewhere", none="what devices report"),
    ] = None
    approve_above: Annotated[
        float | None,
        About(
            "Members that may be hurt without an operator's approval",
            "Ask for approval above",
            "Members that an experiment may hurt without being approved first.",
            none="never ask",
            ge=0,
            le=_MANY,
        ),
    ] = None

    def to_json(self) -> dict[str, Any]:
        """Return every setting by its name, as JSON can hold it."""
        return {**asdict(self), **{name: list(getattr(self, name)) for name in _LISTS}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read settings by name; those that are not there have their default.

        Once the thresholds stood in a document of their own, and records live long. Raises
        ValueError for a value outside its bounds, TypeError for a name that is no setting's.
        """
        flat = {**data, **data.get("thresholds", {})}
        flat.pop("thresholds", None)
        for name in _LISTS:
            if name in flat:
                flat[name] = tuple(flat[name])
        if flat.get("promql") is not None:
            flat["promql"] = PromqlOutcome(**flat["promql"])
        return cls(**flat)


_JUDGED: Final = {each.name for each in fields(Thresholds)}
SETTINGS: Final[Mapping[str, Setting]] = dict(
    sorted(settings_of(Settings).items(), key=lambda item: item[0] in _JUDGED)
)
"""Every setting of a campaign by its name, in the order in which people read them."""

DEFAULTS: Final = Settings()


@dataclass(frozen=True, slots=True)
class Limits:
    """What holds for all campaigns together, whoever started them.

    ``max_concurrent`` experiments at once; ``members_per_hour`` and ``members_per_day`` devices
    exposed within any 60 minutes and any 24 hours. ``protected_points`` are never injected into,
    ``protected_classes`` never experimented on; both are patterns with ``*``.
    """

    max_concurrent: int = 5
    members_per_hour: int = 1_000
    members_per_day: int = 5_000
    protected_points: tuple[str, ...] = ()
    protected_classes: tuple[str, ...] = ()
