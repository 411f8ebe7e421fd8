"""When a campaign may run and when it begins, as options say it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer

_PANEL = "When"

Cron = Annotated[
    str | None, typer.Option(help='Begin at these times: "0 9 * * mon".', rich_help_panel=_PANEL)
]
Timezone = Annotated[
    str | None, typer.Option(help="Of cron, days and hours; UTC.", rich_help_panel=_PANEL)
]
Days = Annotated[str | None, typer.Option(help="Only on these: mon,tue.", rich_help_panel=_PANEL)]
Hours = Annotated[str | None, typer.Option(help="Only then: 09:00-16:00.", rich_help_panel=_PANEL)]
Blackouts = Annotated[
    list[str] | None,
    typer.Option(
        help="Never then: FIRST..LAST=WHY; repeatable.", metavar="DATES", rich_help_panel=_PANEL
    ),
]


def times(
    cron: str | None,
    timezone: str | None,
    days: str | None,
    hours: str | None,
    blackouts: Sequence[str] | None,
) -> dict[str, dict[str, Any]]:
    """Return what was given of all of them, by the names that the API has for it.

    Raises typer.BadParameter for a time zone of nothing.
    """
    parts = {
        "calendar": calendar(timezone, days, hours, blackouts or ()),
        "schedule": schedule(timezone, cron),
    }
    given = {name: part for name, part in parts.items() if part}
    if timezone is not None and not given:
        raise typer.BadParameter(
            "it goes with --cron, --days, --hours or --blackout", param_hint="--timezone"
        )
    return given


def calendar(
    timezone: str | None, days: str | None, hours: str | None, blackouts: Sequence[str]
) -> dict[str, Any]:
    """Collect ``--days``, ``--hours`` and ``--blackout``; empty when nothing was."""
    given: dict[str, Any] = {}
    if days is not None:
        given["days"] = [day.strip().lower() for day in days.split(",")]
    if hours is not None:
        given["hours"] = _hours(hours)
    if blackouts:
        given["blackouts"] = [_blackout(text) for text in blackouts]
    if given and timezone is not None:
        given["timezone"] = timezone
    return given


def schedule(timezone: str | None, cron: str | None) -> dict[str, Any]:
    """Collect what was given of ``--cron``; empty when nothing was."""
    if cron is None:
        return {}
    return {"cron": cron} if timezone is None else {"cron": cron, "timezone": timezone}


def _hours(text: str) -> list[str]:
    start, dash, end = text.partition("-")
    if not dash:
        raise typer.BadParameter(f"{text!r} are no hours: write 09:00-16:00", param_hint="--hours")
    return [start.strip(), end.strip()]


def _blackout(text: str) -> dict[str, str]:
    found = re.fullmatch(r"(\S+?)\.\.(\S+?)=(.+)", text)
    if found is None:
        raise typer.BadParameter(
            f"{text!r} is no blackout: write FIRST..LAST=WHY, as 2026-12-18..2027-01-04=holidays",
            param_hint="--blackout",
        )
    return {"first": found[1], "last": found[2], "why": found[3]}
