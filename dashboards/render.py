"""From a template and what it shows to a page. Everything is escaped; nothing may be missing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ldfi.dashboards import curves, links, words
from ldfi.dashboards.assets import asset
from ldfi.errors import InvalidCalendar
from ldfi.experiments.api.problems import KINDS, Problem
from ldfi.experiments.cluster.tokens import Caller
from ldfi.experiments.domain.campaign.local_time import zone
from ldfi.experiments.scheduler.engine import Engine

ROOT: Final = Path(__file__).parent
TEMPLATES: Final = (ROOT / "templates", ROOT)
"""Where templates are: those that places share, and ``PLACE/NAME.html``."""
THEMES: Final = ("light", "dark")

PLACES: Final = (
    ("Now", (("/", "Now"),)),
    ("Weaknesses", (("/findings", "Weaknesses"),)),
    (
        "Map",
        (("/map", "Services"), ("/classes", "Request classes")),
    ),
    (
        "Work",
        (
            ("/campaigns", "Campaigns"),
            ("/experiments", "Experiments"),
            ("/calendar", "Calendar"),
            ("/maintenance", "Maintenance"),
            ("/replays", "Replays"),
        ),
    ),
    ("Proof", (("/certificates", "Certificates"), ("/audit", "Audit log"))),
)
"""Where every page leads: five places, each with its pages, of which the first opens."""


_MISSING: Final = {"not-found", "no-such-route", "method-not-allowed"}
_MEANINGS: Final[Mapping[str, str]] = {
    **dict.fromkeys(_MISSING, "It may be gone, or the address may be mistyped or cut off."),
    "forbidden": "",
    "invalid": "The address or the form says something that this page does not take.",
    "invalid-cursor": "This list cannot go on from there: begin at its first page.",
}
"""What a problem means to people, where the table of the API speaks to programs."""

_COMMAND: Final = re.compile(r"; `ldfi [^`]+` [\w ]+$")
"""A way out at the command line, at the end of what was wrong."""


@cache
def environment() -> Environment:
    """Make the environment of our templates, with the filters of :mod:`ldfi.dashboards.words`
    and the links."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(words.FILTERS)
    made.globals.update(
        asset=asset,
        to_campaign=links.to_campaign,
        to_class=links.to_class,
        to_experiment=links.to_experiment,
        to_finding=links.to_finding,
        to_certificate=links.to_certificate,
        to_trace=links.to_trace,
        web=links.web,
        interval_bar=curves.interval_bar,
        to_subject=links.to_subject,
        to_was_it_us=links.to_was_it_us,
    )
    return made


def rendered(request: Request, template: str, status: int = 200, **shown: Any) -> HTMLResponse:
    """Render a page. Besides what is ``shown`` it has what every page shows: see ``base.html``.

    Whether anything is halted or armed only the process with the engine can say; so a page asks for
    it (``Running``), and is made where it is. Login and errors do without.
    """
    text = environment().get_template(template).render(**_everywhere(request), **shown)
    return HTMLResponse(text, status)


def error_page(request: Request, problem: Problem) -> HTMLResponse:
    """Render a problem for people: what was wrong, and where to go from here."""
    missing = problem.kind in _MISSING
    response = rendered(
        request,
        "error.html",
        problem.status,
        title="not found" if missing else problem.kind.replace("-", " "),
        detail=_COMMAND.sub("", problem.detail) if missing else problem.detail,
        meaning=_MEANINGS.get(problem.kind, KINDS[problem.kind].meaning),
    )
    response.headers.update(problem.headers or {})
    return response


def _everywhere(request: Request) -> dict[str, Any]:
    caller: Caller | None = getattr(request.state, "caller", None)
    session = getattr(request.state, "session", None)
    theme = request.cookies.get("ldfi_theme", "")
    return {
        "caller": caller,
        "acts": caller is not None and caller.may("operator"),
        "rules": caller is not None and caller.may("admin"),
        "csrf": session.csrf if session is not None else "",
        "theme": theme if theme in THEMES else "",
        "path": request.url.path,
        "here": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        "places": PLACES,
        "called": request.app.state.called,
        **_going_on(request.app.state.engine),
    }


def _going_on(engine: Engine | None) -> dict[str, Any]:
    """Tell what is halted, breached, armed and under maintenance. ``state_seen`` tells two such
    apart: whoever has seen one need not be shown it again."""
    state: dict[str, Any] = {"halted": None, "breach": None, "armed_now": 0, "windows": []}
    if engine is not None:
        scheduler = engine.scheduler
        state = {
            "halted": scheduler.state.halted,
            "breach": scheduler.state.breach,
            "armed_now": len(engine.board.armed()),
            "windows": scheduler.state.windows,
        }
    seen = hashlib.sha256(repr(sorted(state.items())).encode()).hexdigest()[:16]
    return {**state, "state_seen": seen}


def state_seen(engine: Engine) -> str:
    """Tell what a page that is up to date has as its ``state_seen``."""
    seen: str = _going_on(engine)["state_seen"]
    return seen


def viewers_zone(request: Request) -> ZoneInfo:
    """Return the viewer's time zone, as the cookie of ``static/page.js`` has it: days begin there.

    UTC without the script, or where the cookie names none.
    """
    try:
        return zone(unquote(request.cookies.get("ldfi_zone", "UTC")))
    except InvalidCalendar:
        return zone("UTC")
