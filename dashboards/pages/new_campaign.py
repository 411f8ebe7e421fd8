"""Creating a campaign: a form for the API's own document, checked by its rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from ldfi.dashboards.documents import read_as
from ldfi.dashboards.forms import Form, Submitted
from ldfi.dashboards.links import to_campaign
from ldfi.dashboards.render import rendered
from ldfi.dashboards.route import PageRoute
from ldfi.dashboards.zones import viewers_zone
from ldfi.experiments.api import campaigns
from ldfi.experiments.api.auth import Operator
from ldfi.experiments.api.new_campaign import Day, NewCampaign, Strategy
from ldfi.experiments.api.service import Db, Running
from ldfi.experiments.control.engine import Engine
from ldfi.experiments.domain.settings import OnDrift, VerdictRule
from ldfi.fit.faults import KINDS

router = APIRouter(prefix="/campaigns", route_class=PageRoute)

BLACKOUTS: Final = 3
"""Rows for blackouts that the form has."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the form. ``name`` is that of the document. ``choices``: empty for a number."""

    name: str
    label: str
    hint: str = ""
    choices: tuple[str, ...] = ()


WHO: Final = (
    Field("members", "Members per experiment", "One experiment exposes no more devices than this."),
    Field("member_budget", "Members per run", "All experiments of one run together."),
    Field("treatment", "Share treated", "Of all devices; 0.05 is one in twenty."),
    Field("control", "Share in control", "Compared with them; nothing is injected."),
    Field("concurrency", "Experiments at once", "Each on a request class of its own."),
    Field(
        "approve_above",
        "Ask for approval above",
        "Members that an experiment may hurt without being approved first. Empty: never ask.",
    ),
)
HOW: Final = (
    Field("strategy", "Strategy", "Smallest is the most cautious.", get_args(Strategy)),
    Field("max_union", "Faults united at most", "By the strategy union. Empty: no cap."),
    Field("rule", "Verdict by", "", get_args(VerdictRule)),
    Field("delta", "Rise that matters", "In the failure rate, as a share."),
    Field("alpha_harmful", "Chance of a false “harmful”"),
    Field("alpha_tolerated", "Chance of a false “tolerated”"),
    Field("min_samples", "Pairs before a verdict"),
    Field("fdr", "False findings, share", "Over the whole run."),
    Field("window", "Observe for", "Seconds at most; then it is inconclusive."),
    Field("settle", "Wait for late devices", "Seconds."),
    Field("delay", "A delay hangs for", "Seconds, where the caller sets no timeout."),
    Field("guardrail", "Control may fail", "Share of devices; more calls the experiment off."),
    Field("min_traffic", "Good requests first", "A class needs so many."),
    Field("min_consistency", "Consistency", "Share of a class's requests that do the same."),
    Field("rechecks", "Rechecks per class", "Sets inferred to be safe that are tried."),
    Field("on_drift", "When a lineage changes", "", get_args(OnDrift)),
    Field("seed", "Seed", "The same seed makes the same choices."),
)
CHECKS: Final = (
    Field("confirm", "Announce only what has hurt twice"),
    Field("verify", "Try known findings again in every run"),
)
_EMPTY_MEANS_NONE: Final = frozenset({"max_union", "approve_above"})


@router.get("/new")
async def ask(request: Request, engine: Running, _caller: Operator) -> Response:
    """Show the form, with what the API takes by default."""
    defaults = NewCampaign.model_validate({}).model_dump(mode="json")
    values: dict[str, Any] = {name: _shown(value) for name, value in defaults.items()}
    values |= {"timezone": viewers_zone(request).key, "cron": "", "hours": ("", ""), "days": []}
    values |= {"name": "", "classes": [], "patterns": "", "blackouts": []}
    return _form(request, engine, values, {})


@router.post("")
async def create(
    request: Request, form: Submitted, engine: Running, db: Db, caller: Operator
) -> Response:
    """Start it, or show what is wrong with the form."""
    new, problems = read_as(NewCampaign, _document(form))
    if new is None:
        return _form(request, engine, _again(form), problems, 422)
    started = await campaigns.start(new, request, engine, db, caller)
    return RedirectResponse(to_campaign(started.id), status_code=303)


def _document(form: Form) -> dict[str, Any]:
    """Turn the form into what the API would be asked."""
    document: dict[str, Any] = {
        "name": form.text("name"),
        "classes": [*form.every("class"), *form.lines("patterns")],
        "kinds": form.every("kinds"),
        "max_size": form.text("max_size"),
        **{field.name: form.text(field.name) for field in (*WHO, *HOW)},
        **{field.name: bool(form.every(field.name)) for field in CHECKS},
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


def _blackouts(form: Form) -> list[dict[str, str]]:
    rows = [
        {part: form.text(f"blackout_{part}_{number}") for part in ("first", "last", "why")}
        for number in range(BLACKOUTS)
    ]
    return [row for row in rows if any(row.values())]


def _again(form: Form) -> dict[str, Any]:
    """Show again what was typed, as it was typed."""
    names = [field.name for field in (*WHO, *HOW)]
    return {
        **{name: form.text(name) for name in (*names, "name", "max_size", "cron", "timezone")},
        **{field.name: bool(form.every(field.name)) for field in CHECKS},
        "kinds": form.every("kinds"),
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
) -> Response:
    blank = {"first": "", "last": "", "why": ""}
    rows = [*values["blackouts"], *[blank] * BLACKOUTS][:BLACKOUTS]
    return rendered(
        request,
        "new_campaign.html",
        status,
        values={**values, "blackouts": rows},
        problems=_at_fields(problems),
        classes=sorted(engine.catalogue.classes),
        kinds=KINDS,
        days=get_args(Day),
        who=WHO,
        how=HOW,
        checks=CHECKS,
    )


def _at_fields(problems: Mapping[str, str]) -> dict[str, str]:
    """Sort the problems by the field of the form that they belong to; the rest under ``""``."""
    fields = {field.name for field in (*WHO, *HOW, *CHECKS)} | {"name", "max_size", "kinds"}
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
