"""Creating a campaign: a form for the API's own document, checked by its rules."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, get_args

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import func, select

from ldfi.dashboards.evidence_cache import KEPT, evidence_kept
from ldfi.dashboards.forms import Form, Submitted, read_as
from ldfi.dashboards.links import to_campaign
from ldfi.dashboards.render import rendered, viewers_zone
from ldfi.dashboards.route import PageRoute
from ldfi.dashboards.work.campaign_story import does, hours, keeps_safe
from ldfi.dashboards.work.new_campaign_story import Known, Past, Plan, plan
from ldfi.experiments.api import campaigns
from ldfi.experiments.api.auth import Operator
from ldfi.experiments.api.new_campaign import Day, NewCampaign
from ldfi.experiments.api.service import Db, Running, forecast_of
from ldfi.experiments.domain.settings import SETTINGS
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import arming
from ldfi.experiments.store.arming import least_members
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import TallyRow
from ldfi.experiments.telemetry import clock
from ldfi.fit.protocol import kinds

router = APIRouter(prefix="/campaigns", route_class=PageRoute)

BLACKOUTS: Final = 3
"""Rows for blackouts that the form has."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the form. ``name`` is that of the document. ``choices``: empty for a number."""

    name: str
    label: str
    hint: str
    choices: tuple[str, ...]


def _field(name: str) -> Field:
    """Make the field for a setting, in the words in which the setting was declared."""
    setting = SETTINGS[name]
    about = setting.about
    unit = f"{about.unit.capitalize()}." if about.unit else ""
    empty = f"Empty: {about.none}." if about.none else ""
    hint = " ".join(filter(None, (unit, about.hint, empty)))
    return Field(name, about.label or about.meaning, hint, setting.choices)


def _fields(*names: str) -> tuple[Field, ...]:
    return tuple(map(_field, names))


def _sizes() -> tuple[str, ...]:
    limits = SETTINGS["max_size"].about.limits
    return tuple(map(str, range(int(limits["ge"]), int(limits["le"]) + 1)))


MAX_SIZE: Final = replace(_field("max_size"), choices=_sizes())
KINDS: Final = replace(_field("kinds"), choices=(*kinds.KINDS, *kinds.WORDS))
"""Those that stand alone are ticked; those that take an argument are typed."""

MEMBERS, BUDGET = _fields("members", "member_budget")
WHO: Final = _fields("treatment", "control", "admission", "concurrency", "approve_above")
HOW: Final = _fields(
    *("strategy", "max_union", "rule", "delta", "alpha_harmful", "alpha_tolerated"),
    *("min_samples", "fdr", "window", "settle", "apart", "delay", "steady", "guardrail"),
    *("min_traffic", "min_consistency", "rechecks", "on_drift", "seed"),
)
CHECKS: Final = _fields("confirm", "verify", "each_kind")
_TYPED: Final = tuple(field.name for field in (MAX_SIZE, MEMBERS, BUDGET, *WHO, *HOW))
_TICKED: Final = tuple(field.name for field in CHECKS)
_EMPTY_MEANS_NONE: Final = tuple(name for name in _TYPED if SETTINGS[name].optional)


@router.get("/new")
async def ask(request: Request, engine: Running, db: Db, _caller: Operator) -> Response:
    """Show the form, with what the API takes by default, and what that would cost."""
    new = NewCampaign.model_validate({})
    values: dict[str, Any] = {
        name: _shown(value) for name, value in new.model_dump(mode="json").items()
    }
    values |= {"timezone": viewers_zone(request).key, "cron": "", "hours": ("", ""), "days": []}
    values |= {"name": "", "classes": [], "patterns": "", "blackouts": [], "more_kinds": ""}
    return _form(request, engine, values, {}, plan=await planned(request, new, engine, db))


@router.post("/plan")
async def cost(
    request: Request, form: Submitted, engine: Running, db: Db, _caller: Operator
) -> Response:
    """Say what it would cost; nothing is started."""
    new, problems = read_as(NewCampaign, _document(form))
    told = None if new is None else await planned(request, new, engine, db)
    shown = new is not None or "hx-request" in request.headers  # htmx puts nothing else in place
    return _form(request, engine, _again(form), problems, 200 if shown else 422, told)


@router.post("")
async def create(
    request: Request, form: Submitted, engine: Running, db: Db, caller: Operator
) -> Response:
    """Start it, or show what is wrong with the form; on a few devices first where that was asked
    for: then its budget is what one experiment needs."""
    new, problems = read_as(NewCampaign, _document(form))
    if new is None:
        return _form(request, engine, _again(form), problems, 422)
    if form.text("first"):
        few = least_members(new.settings())
        new = new.model_copy(update={"member_budget": few})
        new.model_fields_set.add("member_budget")
    started = await campaigns.start(new, request, engine, db, caller)
    return RedirectResponse(to_campaign(started.id), status_code=303)


def _document(form: Form) -> dict[str, Any]:
    """Turn the form into what the API would be asked."""
    document: dict[str, Any] = {
        "name": form.text("name"),
        "classes": [*form.every("class"), *form.lines("patterns")],
        "kinds": [*form.every("kinds"), *_typed_kinds(form)],
        **{name: form.text(name) for name in _TYPED},
        **{name: bool(form.every(name)) for name in _TICKED},
    }
    for name in _EMPTY_MEANS_NONE:
        document[name] = document[name] or None
    zone = form.text("timezone", "UTC")
    if form.text("cron"):
        document["schedule"] = {"cron": form.text("cron"), "timezone": zone}
    hours = (form.text("hours_from"), form.text("hours_to"))
    days, blackouts = form.every("days"), _blackouts(form)
    if any(hours) or days or blackouts:
        document["calendar"] = {
            "timezone": zone,
            "days": days,
            "hours": list(hours) if any(hours) else None,
            "blackouts": blackouts,
        }
    return document


def _typed_kinds(form: Form) -> list[str]:
    return [each.strip() for each in form.text("more_kinds").split(",") if each.strip()]


def _blackouts(form: Form) -> list[dict[str, str]]:
    rows = [
        {part: form.text(f"blackout_{part}_{number}") for part in ("first", "last", "why")}
        for number in range(BLACKOUTS)
    ]
    return [row for row in rows if any(row.values())]


def _again(form: Form) -> dict[str, Any]:
    """Show again what was typed, as it was typed."""
    return {
        **{name: form.text(name) for name in (*_TYPED, "name", "cron", "timezone")},
        **{name: bool(form.every(name)) for name in _TICKED},
        "kinds": form.every("kinds"),
        "more_kinds": form.text("more_kinds"),
        "classes": form.every("class"),
        "patterns": form.text("patterns"),
        "days": form.every("days"),
        "hours": (form.text("hours_from"), form.text("hours_to")),
        "blackouts": _blackouts(form),
    }


def _form(
    request: Request,
    engine: Engine,
    values: Mapping[str, Any],
    problems: Mapping[str, str],
    status: int = 200,
    plan: Planned | None = None,
) -> Response:
    blank = {"first": "", "last": "", "why": ""}
    rows = [*values["blackouts"], *[blank] * BLACKOUTS][:BLACKOUTS]
    return rendered(
        request,
        "work/new_campaign.html",
        status,
        values={**values, "blackouts": rows},
        problems=_at_fields(problems),
        planned=plan,
        classes=sorted(engine.catalogue.classes),
        max_size=MAX_SIZE,
        fault_kinds=KINDS,
        days=get_args(Day),
        members=MEMBERS,
        budget=BUDGET,
        who=WHO,
        how=HOW,
        checks=CHECKS,
    )


def _at_fields(problems: Mapping[str, str]) -> dict[str, str]:
    """Sort the problems by the field of the form that they belong to; the rest under ``""``."""
    fields = {*_TYPED, *_TICKED, "name", "kinds"}
    found: dict[str, str] = {}
    for name, what in problems.items():
        if name in fields:
            found[name] = what
        else:
            first, _, deeper = name.partition(".")
            said = f"{deeper.replace('.', ' ')}: {what}" if deeper else what
            found.setdefault(_FIELD_OF.get(first, ""), said)
    return found


_FIELD_OF: Final = {
    "kinds": "kinds",
    "classes": "patterns",
    "schedule": "cron",
    "calendar": "calendar",
}


def _shown(value: Any) -> Any:
    return "" if value is None else value if isinstance(value, bool | list) else str(value)


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, what it does in a sentence, when it may try anything, and what keeps it safe."""

    plan: Plan
    does: str
    hours: str
    safe: list[str]


async def planned(request: Request, new: NewCampaign, engine: Engine, db: Database) -> Planned:
    """Plan it by what is known now; of the busiest kinds of request where there are very many."""
    definition, now = new.definition(), clock.now()
    forecast = forecast_of(engine, definition, new)
    limit = engine.scheduler.state.limits.members_per_day
    chosen = _chosen(engine, new, now)
    with db.read() as session:
        sums = select(func.sum(TallyRow.armed), func.sum(TallyRow.hurt))
        armed, hurt = session.execute(sums).one()
        today = arming.charged_within(session, arming.DAY, now)
        evidence = evidence_kept(request).each_of(session, chosen)
    known = []
    for each in evidence:
        traffic, certificate = each.knowledge.traffic, each.certificate
        known.append(
            Known(
                each.knowledge.name,
                certificate["open"],
                bool(certificate["open_complete"]),
                traffic.topology.callees,
                sorted(traffic.usually_called()),
            )
        )
        await asyncio.sleep(0)  # the watch goes on in between
    windows = [each for each in engine.scheduler.state.windows if each.active(now)]
    past = Past(int(armed or 0), int(hurt or 0))
    made = plan(forecast, known, past, max(0, limit - today), limit, windows, now)
    settled = forecast.definition
    return Planned(made, does(settled), hours(settled.calendar), keeps_safe(settled))


def _chosen(engine: Engine, new: NewCampaign, now: float) -> list[KnownClass]:
    """Choose what a campaign would explore: fit, with traffic enough, and named if any are."""
    settings = new.settings()
    found = [
        known
        for known in engine.catalogue.classes.values()
        if (not new.classes or matching(new.classes, [known.name]) is not None)
        and known.unfit_for(settings.min_consistency) is None
        and known.traffic.good >= settings.min_traffic
    ]
    return sorted(found, key=lambda known: (-known.rate(now), known.name))[:KEPT]
