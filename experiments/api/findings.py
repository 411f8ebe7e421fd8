"""Findings: what hurts, and what has become of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, Query, Request
from pydantic import ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema
from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.analysis.repairs.issue import Tracker, issue
from ldfi.analysis.repairs.request_names import BY_THEIR_NAMES
from ldfi.experiments.api.auth import Operator, Viewer
from ldfi.experiments.api.campaign_view import CampaignView
from ldfi.experiments.api.campaigns import campaign_view
from ldfi.experiments.api.deprecated import noting
from ldfi.experiments.api.finding_view import FindingView
from ldfi.experiments.api.idempotency import IdempotentRoute
from ldfi.experiments.api.input_documents import Document, Filter, Id, Line
from ldfi.experiments.api.new_campaign import Bounded
from ldfi.experiments.api.pagination import Cursor, Limit, Links, Page, page
from ldfi.experiments.api.repairs import (
    Explained,
    FindingDetail,
    IssueView,
    called_of,
    explained,
    owners_of,
)
from ldfi.experiments.api.service import Db, PerhapsRunning, Running, check_promql
from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.campaign.lifecycle import FindingState
from ldfi.experiments.queries.finding_commands import reproduce_command, scenario_if_any
from ldfi.experiments.queries.scenario_of_finding import scenario_of
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import Database, findings
from ldfi.experiments.store import campaigns as stored
from ldfi.experiments.store.schema import FindingRow
from ldfi.experiments.telemetry import clock
from ldfi.scenarios.scenario import Scenario

router = APIRouter(prefix="/api/v1/findings", tags=["findings"], route_class=IdempotentRoute)

WEB = r"^https?://[^\x00-\x20\x7f]+$"


class Acknowledgement(Document):
    """What somebody says who knows of a finding; it goes into the audit."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"note": "ann adds a fallback"}]})

    note: Annotated[
        Line | SkipJsonSchema[None],
        Field(
            description="What is to be done and who does it.",
            min_length=1,
            max_length=500,
            examples=["ann adds a fallback"],
        ),
    ] = None
    reason: Annotated[
        Line | SkipJsonSchema[None],
        Field(
            min_length=1,
            max_length=500,
            description="Old form of `note`.",
            json_schema_extra={"deprecated": True},
        ),
    ] = None

    @model_validator(mode="after")
    def _once(self) -> Acknowledgement:
        return _one_of(self, "note", "reason")

    @property
    def said(self) -> str:
        """Return what was said, in whichever form."""
        return self.note or self.reason or ""

    def old_forms(self) -> frozenset[str]:
        """Name the old form, where it was used."""
        return frozenset(self.model_fields_set & {"reason"})


class TrackerLink(Document):
    """Where people work on a finding: a page of an issue tracker."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"tracker_url": "https://tracker.example.org/SHOP-42"}]}
    )

    tracker_url: Annotated[
        str | None,
        Field(
            pattern=WEB,
            max_length=2000,
            description="Null takes the link away.",
            examples=["https://tracker.example.org/SHOP-42"],
        ),
    ] = None
    url: Annotated[
        str | None,
        Field(
            pattern=WEB,
            max_length=2000,
            description="Old form of `tracker_url`.",
            json_schema_extra={"deprecated": True},
        ),
    ] = None

    @model_validator(mode="after")
    def _once(self) -> TrackerLink:
        return _one_of(self, "tracker_url", "url")

    def old_forms(self) -> frozenset[str]:
        """Name the old form, where it was used."""
        return frozenset(self.model_fields_set & {"url"})


Said = TypeVar("Said", bound=Document)


def _one_of(document: Said, name: str, old: str) -> Said:
    """Return a document that says something in one of two forms. Raises ValueError for another."""
    if len(document.model_fields_set & {name, old}) != 1:
        raise ValueError(f"say {name!r}, and nothing else")
    return document


@router.get("")
async def listing(
    request: Request,
    engine: PerhapsRunning,
    db: Db,
    _caller: Viewer,
    links: Links,
    cursor: Cursor = None,
    limit: Limit = 50,
    state: Annotated[
        FindingState | SkipJsonSchema[None], Query(description="Only those in this state.")
    ] = None,
    request_class: Annotated[Filter, Query(description="Only those of this class.")] = None,
    campaign_id: Annotated[
        Filter, Query(description="Only those that this campaign was the first to find.")
    ] = None,
    exact: Annotated[
        bool,
        Query(description="Whether sentences have requests by their exact names, as programs do."),
    ] = False,
) -> Page[FindingView]:
    """List every finding, newest first; those that were refuted as well."""
    wanted = {"state": state, "request_class": request_class, "campaign_id": campaign_id}
    query = select(FindingRow)
    query = query.filter_by(**{name: value for name, value in wanted.items() if value is not None})
    with db.read() as session:
        found = page(session, query, FindingRow.found_at, FindingRow.id, cursor, limit)
        called = BY_THEIR_NAMES if exact else called_of(request)
        every = explained(session, found.items, engine, owners_of(request), called)
        shown = {each.row.id: each.listed for each in every}
        return found.answer(links, lambda row: shown[row.id])


@router.get("/{finding_id}")
async def show(
    finding_id: Id, request: Request, engine: PerhapsRunning, db: Db, _caller: Viewer
) -> FindingDetail:
    """Show one finding: what would mend it, and who owns that."""
    return _explained(finding_id, request, engine, db).view


@router.get("/{finding_id}/issue")
async def issue_text(
    finding_id: Id,
    request: Request,
    engine: PerhapsRunning,
    db: Db,
    _caller: Viewer,
    tracker: Annotated[Tracker, Query(description="In whose markup.")] = "github",
) -> IssueView:
    """Write a finding as an issue for a tracker. Nothing is sent anywhere."""
    with db.read() as session:
        command = reproduce_command(finding_id, scenario_if_any(session, finding_id))
    shown = _explained(finding_id, request, engine, db)
    url = request.app.state.public_url or str(request.base_url).rstrip("/")
    subject = shown.subject(url, command)
    written = issue(subject, tracker)
    return IssueView(tracker=tracker, title=written.title, body=written.body)


@router.get("/{finding_id}/scenario", response_model_exclude_defaults=True)
async def scenario(finding_id: Id, db: Db, _caller: Viewer) -> Scenario:
    """Show the finding as a scenario: to be kept beside the code and replayed
    (docs/scenarios.md)."""
    with db.read() as session:
        return scenario_of(session, finding_id)


@router.post("/{finding_id}/acknowledge")
async def acknowledge(
    finding_id: Id,
    said: Annotated[Acknowledgement, Depends(noting(Acknowledgement))],
    request: Request,
    engine: PerhapsRunning,
    db: Db,
    caller: Operator,
) -> FindingView:
    """Acknowledge a finding: who owns it, and what will be done about it."""
    with db.change(clock.now(), caller.name) as change:
        row = findings.acknowledge(change, finding_id, said.said)
        return _said(change.session, row, request, engine)


@router.post("/{finding_id}/link")
async def link(
    finding_id: Id,
    where: Annotated[TrackerLink, Depends(noting(TrackerLink))],
    request: Request,
    engine: PerhapsRunning,
    db: Db,
    caller: Operator,
) -> FindingView:
    """Record where people work on it. Finding events carry the link from then on."""
    with db.change(clock.now(), caller.name) as change:
        row = findings.link(change, finding_id, where.tracker_url or where.url)
        return _said(change.session, row, request, engine)


@router.post("/{finding_id}/verify", status_code=202)
async def verify(
    finding_id: Id,
    bounds: Annotated[Bounded, Depends(noting(Bounded))],
    request: Request,
    engine: Running,
    db: Db,
    caller: Operator,
) -> CampaignView:
    """Try it once more, by default within the bounds of the campaign that found it: is it fixed?"""
    check_promql(request, bounds)
    with db.read() as session:
        row = findings.load(session, finding_id)
        found_by = stored.definition_from_json(stored.load(session, row.campaign_id).definition)
        definition = Definition(
            settings=replace(bounds.settings(found_by.settings), verify=True),
            classes=(row.request_class,),
            name=f"verify {finding_id}",
            hypotheses=(frozenset(row.faults),),
        )
    campaign = engine.scheduler.commands.start(definition, caller.name, clock.now())
    with db.read() as session:
        return campaign_view(session, stored.load(session, campaign.id), engine, campaign)


def _said(
    session: Session, row: FindingRow, request: Request, engine: Engine | None
) -> FindingView:
    return explained(session, [row], engine, owners_of(request), called_of(request))[0].listed


def _explained(finding_id: str, request: Request, engine: Engine | None, db: Database) -> Explained:
    with db.read() as session:
        row = findings.load(session, finding_id)
        return explained(session, [row], engine, owners_of(request), called_of(request))[0]
