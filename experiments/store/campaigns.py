"""Campaigns on record, and how to take them up again after a restart."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from ldfi.errors import NotFound
from ldfi.experiments.domain.campaign.calendar import Calendar, Schedule
from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.store import chain, notifications
from ldfi.experiments.store.certificates import CampaignCertificate
from ldfi.experiments.store.database import Change, unless_unwritable
from ldfi.experiments.store.notifications import Event
from ldfi.experiments.store.schema import CampaignRow

LIVE = ("scheduled", "running", "paused")


def create(change: Change, campaign: Campaign) -> None:
    """Put a campaign on record as it begins."""
    change.session.add(
        CampaignRow(
            id=campaign.id,
            name=campaign.definition.name,
            state=campaign.state,
            definition=definition_to_json(campaign.definition),
            created_by=change.who,
            created_at=change.now,
            run=campaign.run,
            run_started_at=campaign.run_started_at,
            next_run_at=campaign.next_run_at,
            certificates=[],
            held=[],
        )
    )
    change.audit(f"campaign {campaign.state}", campaign.id, campaign.definition.name)
    _tell(change, campaign, "campaign-started")


def save(change: Change, campaign: Campaign, certificates: list[dict[str, Any]]) -> None:
    """Put a campaign's changed state on record."""
    row = change.session.get_one(CampaignRow, campaign.id)
    was = row.state
    row.state, row.reason, row.run = campaign.state, campaign.reason, campaign.run
    row.run_started_at, row.next_run_at = campaign.run_started_at, campaign.next_run_at
    certify(change, campaign, certificates)
    row.held = sorted(campaign.held)
    row.ending = None if campaign.ending is None else campaign.ending.to_json()
    if campaign.state in {"finished", "stopped"}:
        row.ended_at = change.now
    change.audit(f"campaign {campaign.state}", campaign.id, campaign.reason)
    if campaign.state == "running" and was == "scheduled":
        _tell(change, campaign, "campaign-started")
    elif was == "running" and campaign.state != "paused":
        _tell(change, campaign, "campaign-ended")


def certify(change: Change, campaign: Campaign, certificates: list[dict[str, Any]]) -> None:
    """Put a campaign's certificates on record, and sign them, and nothing else."""
    settings = campaign.settings.to_json()
    with unless_unwritable(change, "certificate", campaign.id):
        change.session.get_one(CampaignRow, campaign.id).certificates = certificates
    with unless_unwritable(change, "certificate", f"{campaign.id}, signed"):
        chain.certify(change, settings, written(campaign, certificates))


def written(campaign: Campaign, certificates: list[dict[str, Any]]) -> list[CampaignCertificate]:
    """List the certificates of a campaign, each with its class version."""
    return [
        CampaignCertificate(
            campaign.id, name, campaign.explorations[name].version, each["certificate"]
        )
        for each in certificates
        if (name := each["request_class"]) in campaign.explorations
    ]


def load(session: Session, campaign_id: str) -> CampaignRow:
    """Read the record of one campaign. Raises NotFound."""
    row = session.get(CampaignRow, campaign_id)
    if row is None:
        raise NotFound(f"there is no campaign {campaign_id!r}")
    return row


def live(session: Session) -> list[CampaignRow]:
    """List the campaigns that are not over, without their certificates, which may be megabytes."""
    query = select(CampaignRow).options(defer(CampaignRow.certificates))
    query = query.where(CampaignRow.state.in_(LIVE))
    return list(session.scalars(query.order_by(CampaignRow.created_at)))


def between(session: Session, start: float, end: float, most: int) -> list[CampaignRow]:
    """List the campaigns whose last run began from ``start`` to ``end``; the newest ``most``."""
    query = select(CampaignRow).options(defer(CampaignRow.certificates))
    query = query.where(CampaignRow.run_started_at >= start, CampaignRow.run_started_at < end)
    return list(session.scalars(query.order_by(CampaignRow.run_started_at.desc()).limit(most)))


def definition_to_json(definition: Definition) -> dict[str, Any]:
    """Write what was asked for as a document."""
    return {
        "name": definition.name,
        "classes": list(definition.classes),
        "settings": definition.settings.to_json(),
        "calendar": definition.calendar.to_json() if definition.calendar else None,
        "schedule": definition.schedule.to_json() if definition.schedule else None,
        "hypotheses": [sorted(each) for each in definition.hypotheses],
    }


def definition_from_json(data: dict[str, Any]) -> Definition:
    """Read what :func:`definition_to_json` wrote."""
    calendar, schedule = data["calendar"], data["schedule"]
    return Definition(
        settings=Settings.from_json(data["settings"]),
        classes=tuple(data["classes"]),
        name=data["name"],
        calendar=Calendar.from_json(calendar) if calendar else None,
        schedule=Schedule.from_json(schedule) if schedule else None,
        hypotheses=tuple(map(frozenset, data["hypotheses"])),
    )


def _tell(change: Change, campaign: Campaign, event: Event) -> None:
    what = campaign.definition.name or campaign.id
    notifications.put(
        change,
        event,
        f"Campaign {what}: {campaign.state}",
        campaign.reason or f"run {campaign.run}",
        {"campaign": campaign.id, "run": campaign.run, "state": campaign.state},
    )
