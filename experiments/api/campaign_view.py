"""What the API shows of a campaign, its request classes and how it ended."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ldfi.experiments.api.experiment_view import DevicesView, ExperimentView, no_devices
from ldfi.experiments.api.view import View
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.campaign.ending import EndKind
from ldfi.experiments.domain.campaign.exploration import Exploration
from ldfi.experiments.queries.campaign_summary import CampaignSummary
from ldfi.experiments.store.schema import CampaignRow


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
        default_factory=no_devices, description="Of all experiments of this run."
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
