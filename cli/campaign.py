"""``ldfi campaign``: experiments over request classes until nothing is left to try."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from ldfi.cli import exits
from ldfi.cli.campaign_view import (
    forecast_shown,
    left_open,
    overview,
    result,
    undecided,
)
from ldfi.cli.control import (
    HERE,
    All,
    AsJson,
    Limit,
    Reason,
    Token,
    Url,
    Watch,
    connected,
    listed,
)
from ldfi.cli.experiment_view import experiment_table
from ldfi.cli.ids import HELP, path_of, posted_to
from ldfi.cli.request_names import Exact, called_by_people
from ldfi.cli.setting_options import with_settings
from ldfi.cli.settings import Set, checked, pairs, read
from ldfi.cli.terminal import columns, console, show, show_page
from ldfi.cli.watch import follow, newest_event
from ldfi.cli.words import styled, when

if TYPE_CHECKING:
    from ldfi.cli.client import Client


# When a campaign may run and when it begins, as options say it.

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


app = typer.Typer(
    help="Experiments over request classes until nothing is left to try.", no_args_is_help=True
)

Id = Annotated[str, typer.Argument(metavar="ID", help=f"The campaign's id, {HELP}.")]
WHAT: Final = "What is looked for"
OPTIONS: Final = {
    WHAT: (
        *("max_size", "kinds", "each_kind", "alike", "proxied", "strategy", "max_union"),
        *("min_traffic", "min_consistency", "on_drift"),
    ),
    "Who is exposed": (
        *("treatment", "control", "members", "member_budget", "concurrency", "approve_above"),
    ),
    "How it is judged": ("profile", "window", "delta", "confirm", "unseen"),
}
"""The settings that have an option of their own, as ``--help`` shows them; --set has the others."""

HURTING = ("killed", "open", "regressed")
"""States of a finding that hurts and that nobody has acknowledged."""


@app.command()
@with_settings(OPTIONS)
def start(
    *,
    token: Token,
    classes: Annotated[
        list[str] | None,
        typer.Option(
            "--class",
            help="A class or pattern with *; repeatable. None: every fit class.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="What people call it.")] = None,
    asked: dict[str, Any],
    cron: Cron = None,
    timezone: Timezone = None,
    days: Days = None,
    hours: Hours = None,
    blackout: Blackouts = None,
    file: Annotated[
        Path | None, typer.Option(help="Settings in YAML, TOML or JSON; options go first.")
    ] = None,
    settings: Set = None,
    watch: Watch = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it could decide, and start nothing.")
    ] = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Start a campaign, now or when its schedule says; none that could not decide anything.

    With --dry-run: exit code 3 when it may not start.

    With --watch: exit code 1 when something open was found; else 3 when something stayed undecided
    or it was stopped before its end; else 0.
    """
    given = {"name": name, "classes": classes or None, **asked}
    when_ = times(cron, timezone, days, hours, blackout)
    document = _document(read(file), given, when_, pairs(settings))
    with connected(url, token) as client:
        forecast = client.post("/forecast", document)
        if dry_run:
            show(forecast, forecast_shown(forecast), as_json=as_json)
            raise typer.Exit(exits.FINE if forecast["why_not"] is None else exits.INCONCLUSIVE)
        after = newest_event(client) if watch else None
        campaign = client.post("/campaigns", document)
        for each in forecast["classes"]:
            if each["decides"] != "both":
                console(stderr=True).print(undecided(each), soft_wrap=True)
        if watch:
            _watch(client, campaign, after, as_json=as_json)
        show(campaign, _started(campaign), as_json=as_json)


@app.command("list")
def list_campaigns(
    token: Token,
    state: Annotated[
        str | None, typer.Option(help="scheduled, running, paused, finished or stopped.")
    ] = None,
    limit: Limit = 20,
    everything: All = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """List campaigns, newest first."""
    page = listed(url, token, "/campaigns", limit, everything, state=state)
    table = columns("campaign", "name", "state", "started", "tried", "treated", "hurt", whole=0)
    for each in page["items"]:
        counts = (each["experiments"], each["devices"]["treated"], each["devices"]["hurt"])
        state_ = styled(each["state"])
        table.add_row(each["id"], each["name"], state_, when(each["created_at"]), *map(str, counts))
    show_page(page, table, "No campaign yet. `ldfi campaign start` begins one.", as_json=as_json)


@app.command("show")
def show_campaign(
    campaign_id: Id,
    token: Token,
    exact: Exact = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Show how far a campaign is, class by class."""
    with connected(url, token) as client:
        campaign = client.get(path_of(client, "campaign", campaign_id))
    called = called_by_people(url, token, exact=exact, as_json=as_json)
    show(campaign, overview(campaign, called), as_json=as_json)


@app.command("watch")
def watch_campaign(campaign_id: Id, token: Token, url: Url = HERE, as_json: AsJson = False) -> None:
    """Follow a campaign until its run is over. Exit codes as with `start --watch`."""
    with connected(url, token) as client:
        _watch(client, client.get(path_of(client, "campaign", campaign_id)), None, as_json=as_json)


@app.command()
def pause(
    campaign_id: Id, reason: Reason, token: Token, url: Url = HERE, as_json: AsJson = False
) -> None:
    """Let a campaign start nothing more for now. What is armed is disarmed at once."""
    campaign = posted_to(url, token, "campaign", campaign_id, "pause", {"reason": reason})
    show(campaign, f"Paused. `ldfi campaign resume {campaign['id']}` goes on.", as_json=as_json)


@app.command()
def resume(campaign_id: Id, token: Token, url: Url = HERE, as_json: AsJson = False) -> None:
    """Let a paused campaign go on."""
    campaign = posted_to(url, token, "campaign", campaign_id, "resume")
    show(campaign, f"Campaign {campaign['id']} goes on.", as_json=as_json)


@app.command()
def stop(
    campaign_id: Id, reason: Reason, token: Token, url: Url = HERE, as_json: AsJson = False
) -> None:
    """Stop a campaign for good. What is armed is disarmed at once."""
    campaign = posted_to(url, token, "campaign", campaign_id, "stop", {"reason": reason})
    show(campaign, f"Campaign {campaign['id']} is stopped.", as_json=as_json)


@app.command()
def release(
    campaign_id: Id,
    request_class: Annotated[str, typer.Argument(metavar="CLASS", help="The class's name.")],
    token: Token,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Let a class that is held since its lineage changed be explored again."""
    held = {"request_class": request_class}
    campaign = posted_to(url, token, "campaign", campaign_id, "release", held)
    show(campaign, f"{request_class} is explored again.", as_json=as_json)


@app.command()
def experiments(
    campaign_id: Id,
    token: Token,
    limit: Limit = 50,
    everything: All = False,
    exact: Exact = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """List a campaign's experiments, newest first, with control against treatment."""
    with connected(url, token) as client:
        path = f"{path_of(client, 'campaign', campaign_id)}/experiments"
        page = client.page(path, None if everything else limit)
    called = called_by_people(url, token, exact=exact, as_json=as_json)
    table = experiment_table(page["items"], called)
    show_page(page, table, "It has tried nothing yet.", as_json=as_json)


def findings_of(client: Client, campaign: dict[str, Any]) -> list[dict[str, Any]]:
    """List what a campaign found or found again, as it stands on record."""
    found = {(c["name"], frozenset(each)) for c in campaign["classes"] for each in c["findings"]}
    if not found:
        return []
    return [
        each
        for each in client.page("/findings", None, exact=True)["items"]
        if (each["request_class"], frozenset(each["faults"])) in found
    ]


def _watch(client: Client, campaign: dict[str, Any], after: int | None, *, as_json: bool) -> None:
    """Follow a campaign to the end of its run; never returns. People see it on stderr with JSON."""
    screen = console(stderr=as_json)
    screen.print(_started(campaign), soft_wrap=True)
    campaign = follow(client, campaign, after, screen, "with the run").campaign
    findings = findings_of(client, campaign)
    if as_json:
        show({**campaign, "found": findings}, "", as_json=True)
    else:
        screen.print(result(campaign, findings))
    if any(each["state"] in HURTING for each in findings):
        raise typer.Exit(exits.FOUND)
    undecided = campaign["state"] == "stopped" or left_open(campaign)
    raise typer.Exit(exits.INCONCLUSIVE if undecided else exits.FINE)


def _document(
    file: dict[str, Any],
    given: dict[str, Any],
    times: dict[str, dict[str, Any]],
    pairs: dict[str, Any],
) -> dict[str, Any]:
    from ldfi.experiments.api.new_campaign import NewCampaign

    document = file | {name: value for name, value in given.items() if value is not None}
    for name, part in times.items():
        document[name] = {**(document.get(name) or {}), **part}
    return checked(NewCampaign, document | pairs)


def _started(campaign: dict[str, Any]) -> Text:
    line = Text(f"Campaign {campaign['id']} ")
    line.append_text(styled(campaign["state"]))
    if campaign["state"] == "scheduled":
        line.append(f"; run {campaign['run']} begins at {when(campaign['next_run_at'])}")
    return line.append(".")
