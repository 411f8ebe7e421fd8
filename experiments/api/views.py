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
from ldfi.experiments.scheduler.estimating import Forecast
from ldfi.experiments.store.experiments import counts_of
from ldfi.experiments.store.schema import AuditRow, CampaignRow, ExperimentRow, FindingRow
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

    name: str = Field(examples=["GET /boot"])
    version: int
    finished: bool
    open: int = Field(description="Minimal hypotheses that are still open.")
    findings: list[list[str]]
    waiting: str | None = Field(default=None, description="Why nothing is tried on it just now.")
    running: ExperimentView | None = None

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

    request_class: str = Field(examples=["GET /boot"])
    why: dict[str, int] = Field(
        description="Of how many minimal hypotheses nothing is known for this reason.",
        examples=[{"window over": 2}],
    )
    named: list[list[str]] = Field(description="Some of these hypotheses.")
    silent: list[str] = Field(
        description="Points at which nothing ever fired; they were not tried again in this run."
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
    words: str = Field(description="The same, for people.")


class EndingView(View):
    """How the last run ended, and what it left open."""

    kind: EndKind = Field(
        description="`complete`: nothing is left to try within the bounds. `open`: experiments "
        "gave no answer. `out of time`: the solver. `out of budget`: the members of the run."
    )
    left: list[LeftOpenView]
    held: list[str] = Field(description="Classes that are held since their lineage changed.")


class ExperimentView(View):
    """One experiment: what was tried on whom, why it ended, and control against treatment."""

    id: str
    campaign_id: str
    run: int
    request_class: str = Field(examples=["GET /boot"])
    purpose: str = Field(examples=["explore", "confirm", "verify", "repeat", "recheck"])
    hypothesis: list[str] = Field(examples=[["error@api>http:GET:playlist/*"]])
    faults: list[str]
    state: str = Field(examples=["waiting", "observing", "decided", "aborted"])
    verdict: str | None = Field(examples=["harmful", "tolerated", "inconclusive"])
    reason: str
    risk: float = Field(description="How many members it may hurt, as far as could be told.")
    approved_by: str | None
    level: float | None = Field(description="Chance of a false `harmful` that it could run.")
    members_reserved: int
    members_charged: int = Field(
        description="What budgets count: all that are reserved until it has ended, then those "
        "treated. How many took part is in `devices`."
    )
    devices: DevicesView = Field(default_factory=_no_devices)
    created_at: float
    armed_at: float | None
    ended_at: float | None
    counts: dict[str, Any] = Field(
        validation_alias="comparison",
        default_factory=dict,
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

    id: str
    name: str
    state: str = Field(examples=["running"])
    reason: str
    definition: dict[str, Any]
    created_by: str
    created_at: float
    run: int
    run_started_at: float | None
    next_run_at: float | None
    ended_at: float | None
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
    waiting: str | None = None
    classes: list[ClassProgress] = []
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
    decides: Decides


class EstimateView(View):
    """What a campaign could decide on one request class, by the traffic that was seen."""

    request_class: str = Field(examples=["GET /boot"])
    per_minute: float = Field(description="Requests of which the outcome came to be known.")
    expected: float = Field(description="Treated outcomes to be expected within one window.")
    harmful: int | None = Field(description="Treated outcomes that `harmful` takes; null: never.")
    tolerated: int | None = Field(description="The same for `tolerated`.")
    seconds: float | None = Field(description="Until either verdict is reached, on average.")
    decides: Decides
    words: str = Field(description="The same, for people.")
    rarest: RarestView | None = Field(
        None, description="The same at the point that the fewest call; null: all call all."
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

    id: str
    request_class: str = Field(examples=["GET /boot"])
    faults: list[str] = Field(examples=[["error@api>http:GET:playlist/*"]])
    state: str = Field(examples=["open", "acknowledged", "fixed", "suspected", "killed"])
    found_at: float
    verified_at: float | None
    campaign_id: str
    experiment_id: str
    traces: list[str]
    note: str | None = Field(description="What whoever acknowledged it said.")
    tracker_url: str | None = Field(description="Where people work on it.")
    sentence: str = Field(
        default="",
        description="What it is, in a sentence; the title of its page.",
        examples=["GET /play is lost when license does not answer"],
    )


class VarietyView(View):
    """One way in which requests of a class go."""

    requests: int = Field(description="How many of those that were seen went so.")
    support: list[str] = Field(description="What they rely on.")


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
    advice: list[str] = Field(description="What to change.")

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

    name: str = Field(examples=["GET /boot"])
    service: str
    version: int
    good: int
    per_minute: float
    success_rate: float
    consistency: float
    hit_rate: float
    sample: int
    unfit: str | None = Field(None, description="Why it may not be explored by default.")
    first_seen: float
    last_seen: float
    support: list[str]
    shared: dict[str, list[str]] = Field(description="Systems that several points reach.")
    shown: dict[str, list[str]] = Field(
        {},
        description="By point, how its calls failed by themselves, the commonest kind first: "
        "campaigns try them there without being asked.",
    )
    no_injector: dict[str, str] = Field(
        {},
        description="Points that no injector has reported, where others of their service are: "
        "campaigns do not try them. By point, what to install.",
    )
    shares: dict[str, float] = Field(
        {}, description="Points that only some of its requests call: the share of them that do."
    )
    not_looked_at: dict[str, str] = Field(
        {}, description="What happens in its requests and is not a part of their outcome, and why."
    )

    unseen: UnseenView = Field(
        default_factory=lambda: UnseenView.of(NOTHING),
        description="What cannot be seen of its requests.",
    )
    varieties: list[VarietyView] = Field(
        [],
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

    id: str
    owner: str = Field(examples=["ann"])
    reason: str = Field(examples=["rolling upgrade of recordsdb"])
    down: list[str] = Field(examples=[["recordsdb"]])
    opened_at: float
    until: float
    seconds: float = Field(description="How long it was to stay open.")
    closed_at: float | None = None

    @classmethod
    def of(cls, window: Maintenance) -> MaintenanceView:
        """Show a window in the words of the API."""
        return cls.model_validate(window)


class WhatIfView(View):
    """With some points down: which single further failure hurts, is survived, or is unknown."""

    request_class: str
    down: list[str]
    already: str = Field(description="The outage by itself: failing, safe or open (unknown).")
    hurts: list[str]
    safe: list[str]
    unknown: list[str]
    anyway: list[str] = Field(description="Those of `hurts` that hurt with nothing down as well.")

    @classmethod
    def of(cls, answer: WhatIf) -> WhatIfView:
        """Show an answer in the words of the API."""
        return cls.model_validate(answer)


class SignView(View):
    """What traces of the last minute show of something that fails, or answers late."""

    name: str = Field(description="The service or system; a point where others of it are well.")
    state: Literal["failing", "late"]
    points: list[str]
    calls: int = Field(description="The newest calls: of the last seconds, or the last few.")
    ailing: int = Field(description="How many of them failed by themselves, or took long.")
    latest: float = Field(description="When the newest of these came (Unix seconds).")
    trace_id: str = Field(description="The trace of the newest of these.")
    seconds: float | None = Field(description="How long those take that are late (median).")
    usual: float | None = Field(description="How long calls took over the last hour (median).")
    words: str

    @classmethod
    def of(cls, sign: Sign) -> SignView:
        """Show a sign in the words of the API."""
        return cls.model_validate(sign)


class GateView(View):
    """Whether something may be taken down now, on top of what is down already."""

    verdict: GateVerdict = Field(description="unknown: it is not proved to be safe.")
    down: list[str] = Field(
        description="The step, what open maintenance windows name, and what fails now."
    )
    why: list[str] = Field(
        description="Reasons against it, or why nobody knows.",
        examples=[["GET /boot: one more failure would hurt: api>http:GET:popular/lists/*"]],
    )
    classes: list[WhatIfView]
    signs: list[SignView] = Field(
        description="Of what the classes concerned call: what fails now, and what answers late."
    )

    @classmethod
    def of(cls, answer: Gate) -> GateView:
        """Show an answer in the words of the API."""
        return cls.model_validate(answer)


class WatchedClass(View):
    """How a request class fares while something that it calls is down."""

    request_class: str
    requests: int = Field(description="Since the window was opened; a device that fails, once.")
    failures: int
    hurt: str | None = Field(description="How it suffers, in words; null: as far as known, not.")

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

    window: MaintenanceView
    open: bool
    classes: list[WatchedClass]
    suffers: list[str] = Field(
        description="Each class that suffers, and how; the guardrail that does not hold.",
        examples=[["GET /boot: 9 of 40 requests that nobody injected into failed"]],
    )
    signs: list[SignView] = Field(description="What fails or is late now, the step's own aside.")


class AuditSubject(View):
    """What an experiment or a finding is about."""

    request_class: str = Field(examples=["GET /boot"])
    faults: list[str] = Field(examples=[["error@api>http:GET:playlist/*"]])
    said: str = Field(
        description="The failures, in words.",
        examples=["api's call to playlist (GET /*) fails"],
    )


class AuditView(View):
    """Who did what, to what, why and when."""

    id: int
    at: float
    who: str
    what: str
    subject: str
    why: str
    about: AuditSubject | None = Field(
        default=None, description="Of what was done to an experiment or a finding."
    )

    @classmethod
    def of(cls, row: AuditRow, about: AuditSubject | None = None) -> AuditView:
        """Show a row in the words of the API."""
        view = cls.model_validate(row)
        view.about = about
        return view


def finding_view(row: FindingRow, sentence: str) -> FindingView:
    """Show a row in the words of the API. ``sentence``: what it says."""
    view = FindingView.model_validate(row)
    view.sentence = sentence
    return view


ClassProgress.model_rebuild()
