"""``ldfi maintenance``: windows in which what is down is left alone."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer
from rich.text import Text

from ldfi.cli import exits
from ldfi.cli.control import (
    HERE,
    All,
    AsJson,
    Limit,
    Reason,
    Token,
    Url,
    connected,
    segment,
)
from ldfi.cli.durations import seconds
from ldfi.cli.ids import HELP, path_of, whole
from ldfi.cli.terminal import columns, console, show, show_page
from ldfi.cli.words import styled, when
from ldfi.errors import Unreachable

if TYPE_CHECKING:
    from ldfi.cli.client import Client


app = typer.Typer(help="Windows in which what is down is left alone.", no_args_is_help=True)

EVERYTHING = "everything"


class IfUnknown(StrEnum):
    """What a pipeline makes of not knowing."""

    INCONCLUSIVE = "inconclusive"
    REFUSE = "refuse"
    ALLOW = "allow"


UNKNOWN = {
    IfUnknown.INCONCLUSIVE: exits.INCONCLUSIVE,
    IfUnknown.REFUSE: exits.FOUND,
    IfUnknown.ALLOW: exits.FINE,
}


@app.command("open")
def open_window(
    reason: Reason,
    token: Token,
    down: Annotated[
        list[str] | None,
        typer.Option(help="A point, service or system, with *; repeatable. None: everything."),
    ] = None,
    duration: Annotated[
        str, typer.Option("--for", help="It ends by itself after so long: 90s, 15m, 2h, 1d.")
    ] = "2h",
    owner: Annotated[str | None, typer.Option(help="Whose it is; you by default.")] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Watch those that it touches until it is over.")
    ] = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Open a window. What it touches is disarmed at once; nothing that does starts within it.

    With --watch: exit code 1 as soon as a request class suffers that calls what is down, or a
    guardrail does not hold; 0 when the window is over and none did. The window stays as it is.
    """
    wanted = {"down": down or [], "seconds": seconds(duration, "--for"), "reason": reason}
    if owner is not None:
        wanted["owner"] = owner
    with connected(url, token) as client:
        window = client.post("/maintenance", wanted)
        names = ", ".join(window["down"]) or EVERYTHING
        said = f"Window {window['id']} on {names} is open until {when(window['until'])}."
        if watch:
            console(stderr=True).print(said, soft_wrap=True)
            _watch(client, window["id"], as_json=as_json)
    show(window, said, as_json=as_json)


@app.command("watch")
def watch_window(
    window_id: Annotated[str, typer.Argument(metavar="ID", help=f"The window's id, {HELP}.")],
    token: Token,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Watch those that a window touches until it is over. Exit codes as with `open --watch`."""
    with connected(url, token) as client:
        _watch(client, whole(client, window_id, "maintenance"), as_json=as_json)


@app.command("list")
def list_windows(
    token: Token,
    limit: Limit = 50,
    everything: All = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """List windows, newest first, those that are over as well."""
    with connected(url, token) as client:
        page = client.page("/maintenance", None if everything else limit)
    table = columns("window", "state", "down", "until", "owner", "reason", whole=2)
    for window in page["items"]:
        table.add_row(
            window["id"],
            styled(_state(window, time.time())),
            "\n".join(window["down"]) or EVERYTHING,
            when(window["closed_at"] or window["until"]),
            window["owner"],
            window["reason"],
        )
    show_page(page, table, "There has been no maintenance window.", as_json=as_json)


@app.command()
def close(
    window_id: Annotated[str, typer.Argument(metavar="ID", help=f"The window's id, {HELP}.")],
    token: Token,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Close a window before its time."""
    with connected(url, token) as client:
        window = client.post(f"{path_of(client, 'maintenance', window_id)}/close")
    show(window, f"Window {window['id']} is closed.", as_json=as_json)


@app.command()
def gate(
    down: Annotated[
        list[str], typer.Option(help="What the step takes down: point, service or system.")
    ],
    token: Token,
    spare: Annotated[
        int,
        typer.Option(min=0, max=1, help="Failures that must be survived on top of the step."),
    ] = 1,
    if_unknown: Annotated[
        IfUnknown, typer.Option(help="What to answer when nobody knows: 3, 1 or 0.")
    ] = IfUnknown.INCONCLUSIVE,
    wait: Annotated[
        str | None,
        typer.Option(help="Ask again until it is safe, for so long at most: 90s, 10m."),
    ] = None,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Ask whether a step of an upgrade may be taken now.

    With all that open windows say is down, and all that traces of the last minute show to fail.
    Exit code 0 when it is proved safe; 1 when it would hurt, or leave any request class one failure
    from pain, or while such a class is not well; 3 when nobody knows, unless --if-unknown says
    otherwise.
    """
    patience = 0.0 if wait is None else seconds(wait, "--wait")
    with connected(url, token) as client:
        answer = until_safe(client, {"down": down, "spare": spare}, patience)
    show(answer, verdict(answer), as_json=as_json)
    codes = {"safe": exits.FINE, "refused": exits.FOUND, "unknown": UNKNOWN[if_unknown]}
    raise typer.Exit(codes[answer["verdict"]])


def _watch(client: Client, window_id: str, *, as_json: bool) -> NoReturn:
    report = watched(client, window_id)
    show(report, step(report), as_json=as_json)
    raise typer.Exit(exits.FOUND if report["suffers"] else exits.FINE)


def _state(window: dict[str, Any], now: float) -> str:
    if window["closed_at"] is not None:
        return "closed"
    return "now" if now < window["until"] else "over"


# Asking the gate until it lets a step through, and watching a step that was let through.

LOOK_SECONDS: Final = 2.0
LOST_SECONDS: Final = 120.0
"""How long the service may be gone until watching ends."""


def until_safe(client: Client, wanted: dict[str, Any], wait: float) -> dict[str, Any]:
    """Ask the gate, again and again for so many seconds, until it answers safe.

    Why it is not yet is told on standard error, as it changes. Returns the last answer. Raises
    Unreachable where the service is gone when the time is over.
    """
    end, told = time.monotonic() + wait, ""
    while True:
        try:
            answer: dict[str, Any] = client.get("/maintenance/gate", **wanted)
        except Unreachable as error:
            if time.monotonic() >= end:
                raise
            news = f"Trying again: {error}"
        else:
            if answer["verdict"] == "safe" or time.monotonic() >= end:
                return answer
            news = f"Waiting: {answer['verdict']}: {_first(answer['why'])}"
        if news != told:
            console(stderr=True).print(news, soft_wrap=True)
            told = news
        time.sleep(min(LOOK_SECONDS, max(0.0, end - time.monotonic())))


def verdict(answer: dict[str, Any]) -> Text:
    """Show what the gate says, why, and what it saw."""
    headline = {
        "safe": ("Go: proved safe", "bold green"),
        "refused": ("Stop", "bold red"),
        "unknown": ("Nobody knows", "bold yellow"),
    }
    said = Text().append(*headline[answer["verdict"]])
    said.append(f", with {', '.join(answer['down'])} down.", "default")
    for reason in answer["why"]:
        said.append(f"\n  {reason}", "default")
    for sign in answer["signs"]:
        said.append(f"\n  {sign['words']}", "yellow")
    anyway = {(each["request_class"], p) for each in answer["classes"] for p in each["anyway"]}
    for name, point in sorted(anyway) if answer["verdict"] != "refused" else ():
        said.append(f"\n  {name}: hurts with or without this step: {point}", "dim")
    return said


def watched(client: Client, window_id: str) -> dict[str, Any]:
    """Follow a step until its window is over, or somebody suffers; what fails is told as it does.

    Returns the last report. Raises Unreachable when the service stays gone, typer.Exit when
    interrupted.
    """
    told, patience, suffered = list[str](), time.monotonic() + LOST_SECONDS, False
    try:
        while True:
            try:
                report: dict[str, Any] = client.get(f"/maintenance/{segment(window_id)}/watch")
                patience, news = time.monotonic() + LOST_SECONDS, _news(report)
            except Unreachable as error:
                if time.monotonic() > patience:
                    raise
                report, news = {"suffers": [], "open": True}, [f"Trying again: {error}"]
            for line in news:
                if line not in told:
                    console(stderr=True).print(line, soft_wrap=True)
            told = news
            if suffered or not report["open"]:
                return report
            suffered = bool(report["suffers"])  # one look more tells what it is that fails
            time.sleep(LOOK_SECONDS)
    except KeyboardInterrupt:
        console(stderr=True).print(f"Window {window_id} stays open.", soft_wrap=True)
        raise typer.Exit(exits.INTERRUPTED) from None


def step(report: dict[str, Any]) -> Text:
    """Show how a step went, or goes."""
    suffers = report["suffers"]
    over = "goes on" if report["open"] else "is over"
    said = Text()
    if suffers:
        said.append("Stop: the step hurts", "bold red")
    else:
        said.append(f"The step {over}, nobody suffered", "bold green")
    for line in (*suffers, *(each["words"] for each in report["signs"])):
        said.append(f"\n  {line}", "default")
    for each in report["classes"]:
        said.append(f"\n  {_fares(each)}", "dim")
    return said


def _news(report: dict[str, Any]) -> list[str]:
    """List what is told while it goes on: which classes are watched, and what ails."""
    classes = ", ".join(each["request_class"] for each in report["classes"])
    watching = [f"Watching {classes}"] if classes else ["Waiting for requests that it touches"]
    return watching + [f"{each['name']}: {each['state']} now" for each in report["signs"]]


def _fares(each: dict[str, Any]) -> str:
    return f"{each['request_class']}: {each['requests']} requests, {each['failures']} failed"


def _first(why: list[str]) -> str:
    more = f" (and {len(why) - 1} more)" if len(why) > 1 else ""
    return f"{why[0]}{more}"
