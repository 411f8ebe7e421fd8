"""What is being worked on: what runs, what is planned, and who must act. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ldfi.analysis.phrases import said_shortly
from ldfi.dashboards.links import to_campaign
from ldfi.dashboards.todo import Act
from ldfi.experiments.domain.campaign.campaign import Campaign
from ldfi.experiments.domain.gates.maintenance import EVERYTHING, Maintenance
from ldfi.experiments.queries.finding_summary import CalleesOf


@dataclass(frozen=True, slots=True)
class Going:
    """A campaign that runs. ``tries``: id → what it tries now; ``waits``: why it tries nothing."""

    name: str
    to: str
    open: int
    tries: Mapping[str, str]
    waits: str


@dataclass(frozen=True, slots=True)
class Coming:
    """Something that is planned. ``at``: when it begins, or ends (``until``); Unix seconds."""

    what: str
    to: str
    at: float
    until: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """``acts``: what waits for somebody."""

    going: Sequence[Going] = ()
    coming: Sequence[Coming] = ()
    paused: int = 0
    acts: Sequence[Act] = field(default=())

    @property
    def sentence(self) -> str:
        """Say it: what runs, what is planned, and whether anybody has to do anything."""
        running = len(self.going)
        planned = sum(not each.until for each in self.coming)
        parts = [_count(running, "campaign is running", "campaigns are running")]
        if planned:
            parts.append(_count(planned, "run is planned", "runs are planned").lower())
        elif not running:
            parts[0] += ", and none is planned"
        if not self.acts:
            return f"{' and '.join(parts)}."
        things = _count(len(self.acts), "thing waits for somebody", "things wait for somebody")
        return f"{' and '.join(parts)}. {things}."


def work(
    campaigns: Iterable[Campaign],
    windows: Iterable[Maintenance],
    acts: Sequence[Act],
    callees_of: CalleesOf,
    now: float,
) -> Work:
    """Put together what goes on and comes."""
    live = [each for each in campaigns if each.live()]
    return Work(
        going=[_going(each, callees_of) for each in live if each.state == "running"],
        coming=sorted(
            [*_runs(live), *(_ends(each) for each in windows if each.active(now))],
            key=lambda each: each.at,
        ),
        paused=sum(each.state == "paused" for each in live),
        acts=acts,
    )


def _going(campaign: Campaign, callees_of: CalleesOf) -> Going:
    tries = {
        each.id: f"{name}: {said_shortly(sorted(each.hypothesis), callees_of(name))}"
        for name, each in sorted(campaign.running.items())
        if each.active
    }
    waits = campaign.waiting.get("", "")
    if not waits and not tries and campaign.waiting:
        name, why = min(campaign.waiting.items())
        waits = f"{name}: {why}"
    asked = sum(each.knowledge.open for each in campaign.explorations.values())
    return Going(_name(campaign), to_campaign(campaign.id), asked, tries, waits)


def _runs(live: Iterable[Campaign]) -> list[Coming]:
    return [
        Coming(
            f"{_name(each)} begins its {'first' if each.run == 1 else 'next'} run",
            to_campaign(each.id),
            each.next_run_at,
        )
        for each in live
        if each.state == "scheduled" and each.next_run_at is not None
    ]


def _ends(window: Maintenance) -> Coming:
    what = ", ".join(window.down) or EVERYTHING
    said = f"The maintenance of {what} ends by itself: {window.reason}"
    return Coming(said, "/maintenance", window.until, until=True)


def _name(campaign: Campaign) -> str:
    name = campaign.definition.name
    return f"“{name}”" if name else f"Campaign {campaign.id}"


def _count(count: int, one: str, many: str) -> str:
    return f"{({0: 'No', 1: 'One'}).get(count, f'{count:,}')} {many if count > 1 else one}"
