"""Asking the gate until it lets a step through, and watching a step that was let through."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from ldfi.experiments.cli.terminal import console
from ldfi.experiments.errors import Unreachable

if TYPE_CHECKING:
    from ldfi.experiments.cli.client import Client

LOOK_SECONDS: Final = 2.0


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


def _first(why: list[str]) -> str:
    more = f" (and {len(why) - 1} more)" if len(why) > 1 else ""
    return f"{why[0]}{more}"
