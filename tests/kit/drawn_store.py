"""Draws what a store may hold: experiments in all states and of all verdicts, findings, campaigns.

What each experiment did is drawn as figures, and written as the service writes it; the counts that
faces have to show are worked out from the figures alone.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, get_args

from hypothesis import strategies as st
from sqlalchemy import delete

from ldfi.experiments.domain.campaign.campaign import CampaignState, Definition
from ldfi.experiments.domain.campaign.lifecycle import FindingState
from ldfi.experiments.domain.campaign.recording import GONE
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.store.campaigns import definition_to_json
from ldfi.experiments.store.database import Change
from ldfi.experiments.store.experiments import counts_of
from ldfi.experiments.store.schema import CampaignRow, ExperimentRow, FindingRow, finding_id
from tests.kit.campaigns import an_experiment

CLASSES: Final = ("GET /a", "GET /b")
POINTS: Final = tuple(f"error@api>http:GET:s{number}/x" for number in range(60))
LATER: Final = 86_400.0
"""Seconds for which no lease ends: the service would close what nobody keeps alive."""

_OVER: Final = [("decided", v, "evidence") for v in ("harmful", "tolerated", "inconclusive")]
_STATES: Final = [
    *_OVER,
    ("aborted", None, "called off by kim"),
    ("aborted", None, GONE),
    *((state, None, "") for state in ("armed", "observing", "settling", "proposed", "waiting")),
]


@dataclass(frozen=True, slots=True)
class Drawn:
    """An experiment on record. ``devices``: what every face has to say of them."""

    row: ExperimentRow
    devices: dict[str, int]

    @property
    def armed(self) -> bool:
        """Return whether it was ever armed."""
        return self.row.armed_at is not None

    @property
    def lost(self) -> bool:
        """Return whether nobody can say what it did."""
        return self.devices["unknown"] > 0


@dataclass(frozen=True, slots=True)
class Store:
    """What was drawn."""

    campaigns: list[CampaignRow]
    experiments: list[Drawn]
    findings: list[FindingRow]

    def put(self, change: Change) -> None:
        """Write it, in place of what was there."""
        for table in (ExperimentRow, FindingRow, CampaignRow):
            change.session.execute(delete(table))
        for row in (*self.campaigns, *self.findings, *(each.row for each in self.experiments)):
            change.session.merge(row)  # a copy: what was drawn is looked at afterwards

    def of(self, campaign: CampaignRow) -> list[Drawn]:
        """List the experiments of its run."""
        return [each for each in self.experiments if each.row.campaign_id == campaign.id]


NAMES: Final = ("reserved", "treated", "reached", "failed", "hurt", "bystanders_hurt", "unknown")


def together(experiments: Iterable[Drawn]) -> dict[str, int]:
    """Count the devices of experiments together."""
    found = list(experiments)
    return {name: sum(each.devices[name] for each in found) for name in NAMES}


def _figures(draw: st.DrawFn) -> dict[str, int]:
    reserved = draw(st.integers(1, 2000))
    treated = draw(st.integers(0, reserved))
    reached = draw(st.integers(0, treated))
    hurt = draw(st.integers(0, min(reached, 4)) | st.integers(0, reached))
    control = draw(st.integers(0, 40))
    return {
        "reserved": reserved,
        "treated": treated,
        "reached": reached,
        "hurt": hurt,
        "control": control,
        "control_failed": draw(st.integers(0, control)),
        "compared": reached,
        "failed": draw(st.integers(0, hurt)),
        "bystanders_hurt": draw(st.just(0) | st.integers(1, 3)),
    }


def _comparison(figures: dict[str, int]) -> dict[str, Any]:
    shown = copy.deepcopy(counts_of(an_experiment("e", "GET /a", "p")))
    shown["treatment"] |= {"devices": figures["compared"], "failures": figures["failed"]}
    shown["control"] |= {"devices": figures["control"], "failures": figures["control_failed"]}
    beside = figures["bystanders_hurt"]
    shown["others"] |= {"met": beside, "hurt": beside}
    return {**shown, "exposed": figures["reached"], "hurt": figures["hurt"]}


@st.composite
def stores(draw: st.DrawFn, now: float) -> Store:
    """Draw a store as it may stand ``now`` (Unix seconds), with its experiments of the last half
    hour."""
    definition = definition_to_json(Definition(Settings()))
    campaigns = [
        CampaignRow(
            id=f"c{number}",
            name=draw(st.sampled_from(["", "nightly"])),
            state=draw(st.sampled_from(get_args(CampaignState))),
            definition=definition,
            created_by="kim",
            created_at=now - 3000,
            run=1,
            run_started_at=now - 3000,
        )
        for number in range(draw(st.integers(1, 2)))
    ]
    experiments = [
        _experiment(draw, f"e{number}", draw(st.sampled_from(campaigns)).id, now)
        for number in range(draw(st.integers(1, 4)))
    ]
    tried = {each.row.tried: each.row for each in experiments}
    findings = [
        FindingRow(
            id=identity,
            request_class=row.request_class,
            faults=row.hypothesis,
            state=draw(st.sampled_from(get_args(FindingState))),
            found_at=now - 100,
            campaign_id=row.campaign_id,
            experiment_id=row.id,
        )
        for identity, row in tried.items()
        if draw(st.booleans())
    ]
    return Store(campaigns, experiments, findings)


def _experiment(draw: st.DrawFn, identity: str, campaign: str, now: float) -> Drawn:
    state, verdict, reason = draw(st.sampled_from(_STATES))
    name = draw(st.sampled_from(CLASSES))
    many = draw(st.sampled_from([1, 2, 3, 4, 60]))
    faults = sorted(draw(st.permutations(POINTS))[:many])
    over, pending = state in {"decided", "aborted"}, state in {"proposed", "waiting"}
    armed = not pending and (state != "aborted" or reason == GONE or draw(st.booleans()))
    armed_at = now - draw(st.integers(60, 1800)) if armed else None
    known = armed and over and reason != GONE
    figures = _figures(draw) if armed else dict.fromkeys(NAMES, 0)
    devices = dict.fromkeys(NAMES, 0)
    if armed:
        devices["reserved"] = figures["reserved"]
        devices["unknown"] = 0 if known else figures["reserved"]
    if known:
        devices |= {n: figures[n] for n in ("treated", "reached", "hurt", "bystanders_hurt")}
        devices["failed"] = figures["hurt"] + figures["control_failed"]
    row = ExperimentRow(
        id=identity,
        campaign_id=campaign,
        run=1,
        request_class=name,
        active_class=None,
        purpose=draw(st.sampled_from(["explore", "confirm", "verify", "repeat", "recheck"])),
        hypothesis=faults,
        tried=finding_id(name, faults),
        faults=faults,
        state=state,
        verdict=verdict,
        reason=reason,
        created_at=now - 2000,
        armed_at=armed_at,
        lease_until=now + LATER if armed and not over else armed_at,
        ended_at=now - 30 if over else None,
        members_reserved=figures["reserved"],
        members_charged=figures["treated"] if known else figures["reserved"],
        members_hurt=figures["hurt"] if known else 0,
        comparison=_comparison(figures) if known else {},
    )
    return Drawn(row, devices)
