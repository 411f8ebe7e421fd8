"""``ldfi halt``, ``resume``, ``status`` and ``audit``: the kill switch, and what is going on."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from ldfi.analysis.words import length
from ldfi.cli.control import HERE, All, AsJson, Limit, Token, Url, connected
from ldfi.cli.ids import whole
from ldfi.cli.terminal import Card, columns, show, show_page
from ldfi.cli.words import when
from ldfi.errors import Unreachable

DOOR_SECONDS: Final = 3.0
"""How long an answer is waited for at a door that has nothing else to do."""


def halt(
    token: Token,
    reason: Annotated[
        str,
        typer.Argument(
            help="Why; it goes into the audit.", show_default="at a terminal asked for afterwards"
        ),
    ] = "",
    why: Annotated[str, typer.Option("--reason", help="The same, as an option.")] = "",
    url: Url = HERE,
    door: Annotated[
        str | None,
        typer.Option(
            envvar="LDFI_HALT_URL",
            help="The service's door for halting (`halt_port`), tried first.",
            show_default="the API only",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Disarm everything at once. Nothing starts again before `ldfi resume`."""
    reason = reason or why
    answer = _halted(url, door, token, reason)
    show(answer, _what_it_did(answer), as_json=as_json)
    if not reason and not as_json and sys.stdin.isatty():
        with suppress(typer.Abort):  # it is halted by then, whatever is typed
            reason = typer.prompt("Why? It goes into the audit (Enter: nothing)", default="")
        if reason := reason.strip():
            _halted(url, door, token, reason)


def resume(token: Token, url: Url = HERE, as_json: AsJson = False) -> None:
    """Let experiments start again after `ldfi halt`."""
    with connected(url, token) as client:
        answer = client.post("/resume")
    show(answer, "Experiments may start again.", as_json=as_json)


def status(token: Token, url: Url = HERE, as_json: AsJson = False) -> None:
    """Show whether anything is halted or armed, and what the budgets have left."""
    with connected(url, token) as client:
        answer = client.get("/status")
    show(answer, _status(answer), as_json=as_json)


def audit(
    token: Token,
    subject: Annotated[
        str | None, typer.Option(help="Of one campaign, experiment or finding, by id.")
    ] = None,
    limit: Limit = 50,
    everything: All = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """List who did what, to what, why and when; newest first."""
    with connected(url, token) as client:
        of = None if subject is None else whole(client, subject)
        page = client.page("/audit", None if everything else limit, subject=of)
    table = columns("when", "who", "what", "of", "why")
    for row in page["items"]:
        about = row["about"]
        said = f"\n{about['request_class']}: {about['said']}" if about else ""
        of = f"{row['subject']}{said}"
        table.add_row(when(row["at"]), row["who"], row["what"], of, row["why"])
    show_page(page, table, "Nothing has happened yet.", as_json=as_json)


def _halted(url: str, door: str | None, token: str, reason: str) -> Any:
    said = {"reason": reason} if reason else {}
    answer = None if door is None else _halted_at(door, token, said)
    if answer is None:
        with connected(url, token) as client:
            answer = client.post("/halt", said)
    return answer


def _what_it_did(answer: dict[str, Any]) -> str:
    disarmed = len(answer["disarmed"])
    lines = [f"Halted: {answer['halted']}. `ldfi resume` ends it."]
    if disarmed:
        lines.append(f"{disarmed} experiment{'s were' if disarmed > 1 else ' was'} disarmed.")
    if not answer["on_record"]:
        lines.append(
            "The database takes no writes: it holds, and is put on record as soon as it does."
        )
    return "\n".join(lines)


def _halted_at(door: str, token: str, said: dict[str, str]) -> Any:
    """Halt at a door of its own; None where nobody answers there."""
    try:
        with connected(door, token, seconds=DOOR_SECONDS, attempts=1) as client:
            return client.post("/halt", said)
    except Unreachable as error:
        typer.echo(f"{error}; trying the API", err=True)
        return None


_DECODING: Final = {"native": "ldfi-native", "python": "Python"}


def _status(status: dict[str, Any]) -> Card:
    table = Card()
    halted, breach = status["halted"], status["guardrail"]
    table.add_row("halted", Text(halted, "bold red") if halted else "no")
    table.add_row("guardrail", Text(f"breached: {breach}", "bold red") if breach else "holds")
    if status.get("not_signed"):
        table.add_row("signatures", Text(f"none: {status['not_signed']}", "bold red"))
    table.add_row("armed", ", ".join(status["armed"]) or "nothing")
    edges = status["edges"]
    table.add_row("edges", str(edges) if edges else Text("none asks for rules", "yellow"))
    for name, of in (("hour", "this hour"), ("day", "these 24 hours")):
        budget = status[name]
        table.add_row("members", f"{budget['charged']} of {budget['limit']} charged {of}")
    if status.get("clock_jumped"):
        ahead = length(status["clock_jumped"])
        table.add_row("clock", f"was set forward by {ahead}; that renews no budget")
    for window in status["maintenance"]:
        down = ", ".join(window["down"]) or "everything"
        table.add_row("maintenance", f"{down} until {when(window['until'])}: {window['reason']}")
    table.add_row("received", f"{status['spans']} spans, {status['outcomes']} outcomes")
    table.add_row("decoded by", _DECODING[status["decoding"]])
    dropped = [f"{name} {count}" for name, count in status["dropped"].items() if count]
    table.add_row("dropped", ", ".join(dropped) or "nothing")
    return table
