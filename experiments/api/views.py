"""What the API shows: one model for each kind of thing, with an example of each."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.campaign.ending import EndKind
from ldfi.experiments.domain.campaign.exploration import Exploration
from ldfi.experiments.domain.gates.feasibility import Decides
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.gates.upgrade_gate import Gate, GateVerdict
from ldfi.experiments.domain.gates.whatif import WhatIf
from ldfi.experiments.domain.judging.bystanders import Bystanders
from ldfi.experiments.domain.judging.counts import DeviceCounts
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.domain.traffic.injectors import NO_CONTEXT, Injectors
from ldfi.experiments.domain.traffic.observed_kinds import shown_often
from ldfi.experiments.domain.traffic.shares import shares
from ldfi.experiments.domain.traffic.vitals import Sign
from ldfi.experiments.queries.campaign_summary import CampaignSummary
from ldfi.experiments.queries.experiment_summary import (
    ExperimentSummary,
    experiment_so_far,
    experiment_summary,
)
from ldfi.experiments.queries.wording import PURPOSES
from ldfi.experiments.scheduler.estimating import Forecast
from ldfi.experiments.store.experiments import counts_of
from ldfi.experiments.store.schema import AuditRow, CampaignRow, ExperimentRow
from ldfi.lineage.unseen import NOTHING, Unseen


class View(BaseModel):
    """Read from the service's own objects; times are Unix seconds."""

    model_config = ConfigDict(from_attributes=True)


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


def _no_devices() -> DevicesView:
    return DevicesView.model_validate(DeviceCounts())


class ClassProgress(View):
    """How far a campaign is with one request class."""

    name: str = Field(description="The request class.", examples=["GET /boot"])
    version: int = Field(
        description="Version of the class that is explored: goes up whenever its lineage changes."
    )
    finished: bool = Field(
        description="Nothing is left to try on it within the bounds of the campaign."
    )
    open: int = Field(description="Minimal hypotheses that are still open.")
    findings: list[list[str]] = Field(
        description="Minimal sets of faults that hurt, as far as this run knows; each is a list "
        "of KIND@POINT.",
        examples=[[["error@api>http:GET:playlist/*"]]],
    )
    waiting: str | None = Field(default=None, description="Why nothing is tried on it just now.")
    running: ExperimentView | None = Field(
        default=None, description="The experiment that is tried on it now; null: none."
    )

    @classmethod
    def of(cls, campaign: Campaign, name: str, exploration: Exploration) -> ClassProgress:
        """Show it as it stands now."""
        running = campaign.running.get(name)
        return cls(
            name=name,
            version=exploration.version,
            finished=exploration.finished,
            open=exploration.knowledge.open,
            findings=[
                *map(sorted, exploration.killed),
                *(sorted(faults) for faults, _ in exploration.knowledge.findings()),
            ],
            waiting=campaign.waiting.get(name),
            running=None if running is None else ExperimentView.live(running, campaign),
        )


class LeftOpenView(View):
    """What a run left open of one request class."""

    request_class: str = Field(description="The request class.", examples=["GET /boot"])
    why: dict[str, int] = Field(
        description="Of how many minimal hypotheses nothing is known for this reason.",
        examples=[{"window over": 2}],
    )
    named: list[list[str]] = Field(
        description="Some of these hypotheses.", examples=[[["error@api>http:GET:playlist/*"]]]
    )
    silent: list[str] = Field(
        description="Points at which nothing ever fired; they were not tried again in this run.",
        examples=[["api>http:GET:playlist/*"]],
    )
    unreached: dict[str, str] = Field(
        default={},
        description="Points without an injector, which were not tried, and what to install.",
    )
    out_of_bounds: dict[str, str] = Field(
        default={},
        description="Points and faults at which nothing can be tried, and why: no injector, no "
        "timeout to wait for, a call that begins after the answer, or none of the kinds asked for.",
    )
    words: str = Field(
        description="The same, for people.",
        examples=["GET /boot: of 2 hypotheses nothing is known, window over"],
    )


class EndingView(View):
    """How the last run ended, and what it left open."""

    kind: EndKind = Field(
        description="`complete`: nothing is left to try within the bounds. `open`: experiments "
        "gave no answer. `out of time`: the solver. `out of budget`: the members of the run."
    )
    left: list[LeftOpenView] = Field(description="What was left open, by class; empty: nothing.")
    held: list[str] = Field(
        description="Classes that are held since their lineage changed.", examples=[["GET /search"]]
    )


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
        description="Its devices, as far as anybody knows.", default_factory=_no_devices
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


class CampaignView(View):
    """A campaign: what was asked for, and how far it is."""

    id: str = Field(description="By which routes and commands name it.", examples=["0b9c6a7e2f10"])
    name: str = Field(
        description="What it was called by whoever started it; may be empty.", examples=["nightly"]
    )
    state: str = Field(
        description="`scheduled`, `running`, `paused`, `finished` or `stopped`.",
        examples=["running"],
    )
    reason: str = Field(
        description="Why it is in this state, in words; empty: there is nothing to say.",
        examples=[""],
    )
    definition: dict[str, Any] = Field(
        description="What was asked for, as POST takes it: settings, classes, calendar, "
        "schedule, hypotheses.",
        examples=[{"name": "nightly", "classes": ["GET /boot*"], "settings": {"max_size": 2}}],
    )
    created_by: str = Field(description="The name of the token that started it.", examples=["kim"])
    created_at: float = Field(
        description="When it was started (Unix seconds).", examples=[1767225600.0]
    )
    run: int = Field(description="Number of its current or last run: the first is 1.")
    run_started_at: float | None = Field(
        description="When that run began (Unix seconds); null: none has.", examples=[1767225600.0]
    )
    next_run_at: float | None = Field(
        description="When the next run begins (Unix seconds); null: none is scheduled.",
        examples=[1767225600.0],
    )
    ended_at: float | None = Field(
        description="When it was over for good (Unix seconds); null: it is not.",
        examples=[1767225600.0],
    )
    ending: EndingView | None = Field(
        default=None,
        description="How the last run ended; null while one goes on, and where it was stopped.",
    )
    experiments: int = Field(default=0, description="Experiments armed in this run.")
    exposed_members: int = Field(
        default=0,
        description="Old form: members charged to this run's experiments, of which those that go "
        "on are charged with all they have reserved. See `devices`.",
    )
    failed_members: int = Field(default=0, description="Old form of `devices.hurt`.")
    devices: DevicesView = Field(
        default_factory=_no_devices, description="Of all experiments of this run."
    )
    waiting: str | None = Field(
        default=None,
        description="Why nothing is tried anywhere just now; null: nothing holds the campaign "
        "as a whole.",
        examples=["outside its calendar until Mon 09:00"],
    )
    classes: list[ClassProgress] = Field(
        default=[], description="How far it is with each request class that it has taken up."
    )
    not_yet: dict[str, str] = Field(default={}, description="Classes not taken up, and why.")

    @classmethod
    def of(cls, row: CampaignRow, summary: CampaignSummary, live: Campaign | None) -> CampaignView:
        """Show it from its record, and from the campaign itself while it is live."""
        cost = summary.cost
        view = cls(
            **{name: getattr(row, name) for name in _CAMPAIGN_COLUMNS},
            ending=None if row.ending is None else EndingView(**row.ending),
            experiments=cost.armed,
            exposed_members=cost.charged,
            failed_members=cost.counts.hurt,
            devices=DevicesView.model_validate(cost.counts),
        )
        if live is None:
            view.classes = [_certified(item) for item in row.certificates]
            return view
        explorations = live.explorations
        view.waiting = live.waiting.get("")
        view.not_yet = {n: why for n, why in live.waiting.items() if n and n not in explorations}
        view.classes = [ClassProgress.of(live, *item) for item in explorations.items()]
        return view


_CAMPAIGN_COLUMNS = (
    *("id", "name", "state", "reason", "definition", "created_by", "created_at"),
    *("run", "run_started_at", "next_run_at", "ended_at"),
)


def _certified(item: dict[str, Any]) -> ClassProgress:
    """Show a class of a campaign that is over, from its certificate."""
    certificate = item["certificate"]
    return ClassProgress(
        name=item["request_class"],
        version=item.get("version", 1),
        finished=not certificate["open"],
        open=len(certificate["open"]),
        findings=[sorted(map(str, faults)) for faults in certificate["findings"]],
        waiting=None,
    )


class RarestView(View):
    """What a campaign could decide at the point of a class that the fewest requests call."""

    share: float = Field(description="The share of requests that call it.", examples=[0.12])
    expected: float = Field(description="Treated outcomes of these, in a longer window.")
    seconds: float | None = Field(description="Until either verdict is reached, on average.")
    decides: Decides = Field(
        description="Verdicts that can be reached there: both, only `harmful` (`harm`), or nothing."
    )


class EstimateView(View):
    """What a campaign could decide on one request class, by the traffic that was seen."""

    request_class: str = Field(description="The request class.", examples=["GET /boot"])
    per_minute: float = Field(description="Requests of which the outcome came to be known.")
    expected: float = Field(description="Treated outcomes to be expected within one window.")
    harmful: int | None = Field(description="Treated outcomes that `harmful` takes; null: never.")
    tolerated: int | None = Field(description="The same for `tolerated`.")
    seconds: float | None = Field(description="Until either verdict is reached, on average.")
    decides: Decides = Field(
        description="Verdicts that can be reached: both, only `harmful` (`harm`), or nothing."
    )
    words: str = Field(
        description="The same, for people.",
        examples=["GET /boot: 40 of 60 outcomes within one window decide"],
    )
    rarest: RarestView | None = Field(
        default=None, description="The same at the point that the fewest call; null: all call all."
    )


class ForecastView(View):
    """How a campaign would start now."""

    why_not: str | None = Field(description="Why it may not start; null: it may.")
    settings: dict[str, Any] = Field(description="With what the profile has chosen.")
    classes: list[EstimateView] = Field(description="Those that were seen for long enough.")

    @classmethod
    def of(cls, forecast: Forecast) -> ForecastView:
        """Show it in the words of the API."""
        return cls(
            why_not=forecast.why_not,
            settings=forecast.definition.settings.to_json(),
            classes=[EstimateView(**each.to_json()) for each in forecast.estimates],
        )


class FindingView(View):
    """A minimal failing set: these faults together hurt, and none of them can be left out."""

    id: str = Field(
        description="Its id: the same set of faults of the same class always has the same.",
        examples=["3f1c9a52b7de"],
    )
    request_class: str = Field(
        description="The request class that they hurt.", examples=["GET /boot"]
    )
    faults: list[str] = Field(
        description="The faults, KIND@POINT or down@SYSTEM, all of which it takes.",
        examples=[["error@api>http:GET:playlist/*"]],
    )
    state: str = Field(
        description="What has become of it: `suspected` until confirmed, `open`, "
        "`acknowledged`, `fixed`, `regressed`, `refuted`, `superseded` by a part of "
        "it, or `killed`: a process seems to have died of it.",
        examples=["open", "acknowledged", "fixed", "suspected", "killed"],
    )
    found_at: float = Field(
        description="When it was first found (Unix seconds).", examples=[1767225600.0]
    )
    verified_at: float | None = Field(
        description="When it was last tried again, or said to be survived (Unix seconds); null: "
        "never.",
        examples=[1767225600.0],
    )
    campaign_id: str = Field(
        description="The campaign that was the first to find it.", examples=["0b9c6a7e2f10"]
    )
    experiment_id: str = Field(
        description="The experiment that found it.", examples=["7d20c4e8b1f3"]
    )
    traces: list[str] = Field(
        description="Trace ids of requests that failed under it, as many as are kept.",
        examples=[["5b8efff798038103d269b633813fc60c"]],
    )
    note: str | None = Field(
        description="What whoever acknowledged it said.", examples=["ann adds a fallback"]
    )
    tracker_url: str | None = Field(
        description="Where people work on it.", examples=["https://tracker.example.org/SHOP-42"]
    )
    sentence: str = Field(
        default="",
        description="What it is, in a sentence; the title of its page.",
        examples=["GET /play is lost when license does not answer"],
    )
    owners: list[str] = Field(
        default=[],
        description="Who owns the service that lacks something; empty: nobody says.",
        examples=[["team-api"]],
    )
    share: float | None = Field(
        default=None,
        description="Which part of all requests its class is; null: nobody asks for anything.",
        examples=[0.31],
    )


class VarietyView(View):
    """One way in which requests of a class go."""

    requests: int = Field(description="How many of those that were seen went so.")
    support: list[str] = Field(
        description="What they rely on.", examples=[["api>http:GET:playlist/*"]]
    )


class UnseenView(View):
    """What cannot be seen of some requests."""

    share: float = Field(description="The largest share of calls somewhere that is not seen.")
    at_most: float = Field(
        description="The same with what may be theirs, at its upper bound of 95 %."
    )
    calls: int = Field(description="All calls of theirs that are known.")
    line: str = Field(
        description="In words; empty: nothing is known to be missing.",
        examples=[
            "cannot see: 2 calls of checkout at currency run in traces of their own, 7 % of"
            " arrivals there"
        ],
    )
    advice: list[str] = Field(
        description="What to change.", examples=[["currency: install the propagator tracecontext"]]
    )

    @classmethod
    def of(cls, unseen: Unseen) -> UnseenView:
        """Show a figure."""
        return cls(
            share=unseen.share,
            at_most=unseen.at_most,
            calls=unseen.calls,
            line=unseen.line,
            advice=list(unseen.advice()),
        )


class ClassView(View):
    """A request class: its predicate in words, its traffic, and what it usually relies on."""

    name: str = Field(
        description="Its exact name, by which routes and commands take it.", examples=["GET /boot"]
    )
    service: str = Field(description="The service at which its requests enter.", examples=["api"])
    version: int = Field(
        description="Goes up whenever its lineage changes; evidence of older versions no longer "
        "counts."
    )
    good: int = Field(
        description="Good requests in this version that nobody injected into: its evidence."
    )
    per_minute: float = Field(description="Requests a minute of late.")
    success_rate: float = Field(
        description="Share (0 to 1) of good outcomes among the newest that nobody injected "
        "into; 1 before there are any."
    )
    consistency: float = Field(
        description="Share (0 to 1) of the good requests of the last sample that rely on "
        "exactly what is expected."
    )
    hit_rate: float = Field(
        description="Share (0 to 1) of the expected points that a request reached, on average."
    )
    sample: int = Field(description="Good requests from which `consistency` was taken.")
    unfit: str | None = Field(default=None, description="Why it may not be explored by default.")
    first_seen: float = Field(
        description="When its first sample began (Unix seconds).", examples=[1767225600.0]
    )
    last_seen: float = Field(
        description="When its newest request came in (Unix seconds).", examples=[1767225600.0]
    )
    support: list[str] = Field(
        description="Injection points that its good requests usually rely on.",
        examples=[["api>http:GET:playlist/*"]],
    )
    shared: dict[str, list[str]] = Field(description="Systems that several points reach.")
    shown: dict[str, list[str]] = Field(
        default={},
        description="By point, how its calls failed by themselves, the commonest kind first: "
        "campaigns try them there without being asked.",
    )
    no_injector: dict[str, str] = Field(
        default={},
        description="Points that no injector has reported, where others of their service are: "
        "campaigns do not try them. By point, what to install.",
    )
    shares: dict[str, float] = Field(
        default={},
        description="Points that only some of its requests call: the share of them that do.",
    )
    not_looked_at: dict[str, str] = Field(
        default={},
        description="What happens in its requests and is not a part of their outcome, and why.",
    )

    unseen: UnseenView = Field(
        default_factory=lambda: UnseenView.of(NOTHING),
        description="What cannot be seen of its requests.",
    )
    varieties: list[VarietyView] = Field(
        default=[],
        description="Of a class that may not be explored: the ways in which its requests go. "
        "A replay can choose one, a live experiment cannot.",
    )

    @classmethod
    def of(cls, known: KnownClass, now: float, injectors: Injectors) -> ClassView:
        """Show it as it stands now."""
        traffic = known.traffic
        return cls(
            name=known.name,
            service=known.service,
            version=known.version,
            good=traffic.good,
            per_minute=known.rate(now),
            success_rate=traffic.success_rate(),
            consistency=known.consistency,
            hit_rate=known.hit_rate,
            sample=known.sample,
            unfit=known.unfit_for(),
            first_seen=known.first_seen,
            last_seen=known.last_seen,
            support=sorted(traffic.usual_support() | traffic.taken_in),
            shared={
                system: sorted(points)
                for system, points in sorted(traffic.topology.shared().items())
            },
            shown={
                point: list(kinds)
                for point, kinds in shown_often(
                    (each.failed, each.requests) for each in traffic.survived()
                ).items()
            },
            no_injector=injectors.without(traffic.usually_called())
            | dict.fromkeys(sorted(traffic.taken_in - traffic.usually_called()), NO_CONTEXT),
            shares=shares(traffic),
            not_looked_at=traffic.not_looked_at(),
            unseen=UnseenView.of(traffic.unseen),
            varieties=[
                VarietyView(requests=each.requests, support=sorted(each.support))
                for each in known.varieties()
            ],
        )


class MaintenanceView(View):
    """A maintenance window."""

    id: str = Field(description="By which routes and commands name it.", examples=["c41f0a9d3e72"])
    owner: str = Field(description="Whom to ask about it.", examples=["ann"])
    reason: str = Field(description="Why it was opened.", examples=["rolling upgrade of recordsdb"])
    down: list[str] = Field(
        description="Points, services or systems that are left alone, with *; empty: everything.",
        examples=[["recordsdb"]],
    )
    opened_at: float = Field(
        description="When it was opened (Unix seconds).", examples=[1767225600.0]
    )
    until: float = Field(
        description="When it ends by itself (Unix seconds).", examples=[1767225600.0]
    )
    seconds: float = Field(description="How long it was to stay open.")
    closed_at: float | None = Field(
        default=None,
        description="When somebody closed it before its time (Unix seconds); null: nobody has.",
        examples=[1767225600.0],
    )

    @classmethod
    def of(cls, window: Maintenance) -> MaintenanceView:
        """Show a window in the words of the API."""
        return cls.model_validate(window)


class WhatIfView(View):
    """With some points down: which single further failure hurts, is survived, or is unknown."""

    request_class: str = Field(description="The request class.", examples=["GET /boot"])
    down: list[str] = Field(
        description="Injection points that are taken to be down.",
        examples=[["api>http:GET:playlist/*"]],
    )
    already: str = Field(
        description="The outage by itself: failing, safe or open (unknown).", examples=["safe"]
    )
    hurts: list[str] = Field(
        description="Points at which one more failure is known to hurt.",
        examples=[["api>http:GET:popular/*"]],
    )
    safe: list[str] = Field(
        description="Points at which one more failure is proved to be survived.",
        examples=[["api>http:GET:ratings/*"]],
    )
    unknown: list[str] = Field(
        description="Points at which nobody knows what one more failure does.",
        examples=[["api>http:GET:titles/*"]],
    )
    anyway: list[str] = Field(
        description="Those of `hurts` that hurt with nothing down as well.",
        examples=[["api>http:GET:popular/*"]],
    )

    @classmethod
    def of(cls, answer: WhatIf) -> WhatIfView:
        """Show an answer in the words of the API."""
        return cls.model_validate(answer)


class SignView(View):
    """What traces of the last minute show of something that fails, or answers late."""

    name: str = Field(
        description="The service or system; a point where others of it are well.",
        examples=["playlist"],
    )
    state: Literal["failing", "late"] = Field(
        description="`failing`: calls to it fail; `late`: they take far longer than usual."
    )
    points: list[str] = Field(
        description="The calls at which this shows.", examples=[["api>http:GET:playlist/*"]]
    )
    calls: int = Field(description="The newest calls: of the last seconds, or the last few.")
    ailing: int = Field(description="How many of them failed by themselves, or took long.")
    latest: float = Field(
        description="When the newest of these came (Unix seconds).", examples=[1767225600.0]
    )
    trace_id: str = Field(
        description="The trace of the newest of these.",
        examples=["5b8efff798038103d269b633813fc60c"],
    )
    seconds: float | None = Field(description="How long those take that are late (median).")
    usual: float | None = Field(description="How long calls took over the last hour (median).")
    words: str = Field(
        description="The same, for people.", examples=["playlist fails: 9 of its 10 newest calls"]
    )

    @classmethod
    def of(cls, sign: Sign) -> SignView:
        """Show a sign in the words of the API."""
        return cls.model_validate(sign)


class GateView(View):
    """Whether something may be taken down now, on top of what is down already."""

    verdict: GateVerdict = Field(description="unknown: it is not proved to be safe.")
    down: list[str] = Field(
        description="The step, what open maintenance windows name, and what fails now.",
        examples=[["api>http:GET:playlist/*"]],
    )
    why: list[str] = Field(
        description="Reasons against it, or why nobody knows.",
        examples=[["GET /boot: one more failure would hurt: api>http:GET:popular/lists/*"]],
    )
    classes: list[WhatIfView] = Field(
        description="What one more failure would do to each request class that calls what goes "
        "down."
    )
    signs: list[SignView] = Field(
        description="Of what the classes concerned call: what fails now, and what answers late."
    )

    @classmethod
    def of(cls, answer: Gate) -> GateView:
        """Show an answer in the words of the API."""
        return cls.model_validate(answer)


class WatchedClass(View):
    """How a request class fares while something that it calls is down."""

    request_class: str = Field(description="The request class.", examples=["GET /boot"])
    requests: int = Field(description="Since the window was opened; a device that fails, once.")
    failures: int = Field(description="How many of `requests` failed.")
    hurt: str | None = Field(
        description="How it suffers, in words; null: as far as known, not.",
        examples=["9 of 40 requests that nobody injected into failed"],
    )

    @classmethod
    def of(cls, name: str, watched: Bystanders) -> WatchedClass:
        """Show what was watched of one class."""
        return cls(
            request_class=name,
            requests=watched.requests,
            failures=watched.failures,
            hurt=watched.hurt,
        )


class StepView(View):
    """A step of an upgrade, watched: those that it touches."""

    window: MaintenanceView = Field(description="The maintenance window that is watched.")
    open: bool = Field(description="Whether the window is still open.")
    classes: list[WatchedClass] = Field(description="Each request class that it touches.")
    suffers: list[str] = Field(
        description="Each class that suffers, and how; the guardrail that does not hold.",
        examples=[["GET /boot: 9 of 40 requests that nobody injected into failed"]],
    )
    signs: list[SignView] = Field(description="What fails or is late now, the step's own aside.")


class AuditSubject(View):
    """What an experiment or a finding is about."""

    request_class: str = Field(description="The request class.", examples=["GET /boot"])
    faults: list[str] = Field(
        description="The faults, KIND@POINT or down@SYSTEM.",
        examples=[["error@api>http:GET:playlist/*"]],
    )
    said: str = Field(
        description="The failures, in words.",
        examples=["api's call to playlist (GET /*) fails"],
    )


class AuditView(View):
    """Who did what, to what, why and when."""

    id: int = Field(description="Its number: later entries have larger ones.")
    at: float = Field(description="When (Unix seconds).", examples=[1767225600.0])
    who: str = Field(
        description="The name of the token that did it; the service itself is `ldfi`.",
        examples=["kim"],
    )
    what: str = Field(
        description="What was done, in a few fixed words: `halt`, `campaign started`.",
        examples=["halt"],
    )
    subject: str = Field(
        description="The id of what it was done to; empty: it was done to everything.",
        examples=[""],
    )
    why: str = Field(description="The reason given; empty: none.", examples=["checkout is down"])
    about: AuditSubject | None = Field(
        default=None, description="Of what was done to an experiment or a finding."
    )

    @classmethod
    def of(cls, row: AuditRow, about: AuditSubject | None = None) -> AuditView:
        """Show a row in the words of the API."""
        view = cls.model_validate(row)
        view.about = about
        return view


ClassProgress.model_rebuild()
