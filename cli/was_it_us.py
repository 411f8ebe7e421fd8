"""``ldfi was-it-us``: what was armed in a window of time, what came of it, and who intervened."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from ldfi.analysis.phrases import said_shortly
from ldfi.analysis.words import NOTHING
from ldfi.cli import exits
from ldfi.cli.control import HERE, AsJson, Limit, Token, Url, connected
from ldfi.cli.durations import seconds
from ldfi.cli.local_time import shown_zone
from ldfi.cli.request_names import Exact, called_by_people
from ldfi.cli.terminal import columns, show
from ldfi.cli.words import styled, when
from ldfi.errors import Invalid
from ldfi.experiments.domain.campaign.windows import Window, window_of

LAST = 900.0
"""Seconds that are looked back where nobody says how far, as the page does."""


def _moment(param: typer.CallbackParam, text: str) -> str:
    """Check a time before a token is asked for. Raises Invalid."""
    try:
        window_of(text, "", shown_zone(), time.time(), LAST)
    except ValueError as error:
        if "ends before" not in str(error):  # only both together tell
            raise Invalid(f"{param.opts[0]}: {error}") from error
    return text


def _length(text: str | None) -> str | None:
    """Check a length of time before a token is asked for. Raises Invalid."""
    if text is not None:
        seconds(text, "--last")
    return text


def was_it_us(
    token: Token,
    since: Annotated[
        str,
        typer.Option(
            "--from",
            callback=_moment,
            help="From when: 02:10, '2026-11-23 02:10', 2026-11-23T02:10Z; local time.",
        ),
    ] = "",
    until: Annotated[str, typer.Option("--to", callback=_moment, help="Until when; now.")] = "",
    last: Annotated[
        str | None,
        typer.Option(callback=_length, help="Instead: so long until now, as in 15m or 2h."),
    ] = None,
    request_class: Annotated[
        str | None, typer.Option("--class", help="Only on this request class.")
    ] = None,
    limit: Limit = 10,
    exact: Exact = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Say whether anything was injected in a window of time, and what came of it.

    Without a window: the last 15 minutes. Exit code 0: no, certainly. 1: perhaps.
    """
    window = _window(since, until, last, time.time())
    asked = {"since": window.since, "until": window.until, "request_class": request_class}
    with connected(url, token) as client:
        answer = client.get("/was-it-us", limit=min(limit, 200), **asked)
    called = called_by_people(url, token, exact=exact, as_json=as_json)
    show(answer, _picture(answer, called), as_json=as_json)
    raise typer.Exit(exits.FINE if answer["answer"] == "no" else exits.FOUND)


def _window(since: str, until: str, last: str | None, now: float) -> Window:
    """Read the window. Raises Invalid."""
    if last is not None:
        if since or until:
            raise Invalid("--last ends now: give it alone, or --from and --to")
        return Window(now - seconds(last, "--last"), now)
    try:
        return window_of(since, until, shown_zone(), now, LAST)
    except ValueError as error:
        raise Invalid(f"--from and --to: {error}") from error


def _picture(answer: dict[str, Any], called: Any) -> RenderableType:
    style = "green" if answer["answer"] == "no" else "bold red"
    lines: list[RenderableType] = [
        Text(answer["words"], style),
        Text(f"From {when(answer['since'])} to {when(answer['until'])}.", "dim"),
    ]
    if answer["items"]:
        lines.append(_table(answer["items"], called))
    left = answer["experiments"] - len(answer["items"])
    if left > 0:
        lines.append(Text(f"and {left} more; --limit shows more of them.", "dim"))
    for each in answer["done"]:
        why = f": {each['why']}" if each["why"] else ""
        lines.append(Text(f"{when(each['at'])} {each['what']} by {each['who']}{why}"))
    return Group(*lines)


def _table(items: list[dict[str, Any]], called: Any) -> RenderableType:
    table = columns("experiment", "it", "hurt", "from", "to", "request class", "faults")
    for each in items:
        table.add_row(
            each["id"],
            styled(each["verdict"] or each["state"]),
            _hurt(each["devices"]),
            when(each["since"]),
            when(each["until"]) if each["until"] else NOTHING,
            called.name(each["request_class"]),
            said_shortly(each["hypothesis"]),
        )
    return table


def _hurt(devices: dict[str, int]) -> str:
    if devices["unknown"]:
        return f"unknown, of {devices['unknown']} at most"
    beside = devices["bystanders_hurt"]
    more = f", and {beside} bystander{'' if beside == 1 else 's'}" if beside else ""
    return f"{devices['hurt']} of {devices['treated']}{more}"
