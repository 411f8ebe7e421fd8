"""Asking the gate until it lets a step through, and watching a step that was let through."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.text import Text

from ldfi.cli import exits
from ldfi.cli.control import segment
from ldfi.cli.terminal import console
from ldfi.errors import Unreachable

if TYPE_CHECKING:
    from ldfi.cli.client import Client

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
