"""One campaign of the demo, shown while it runs: it ends by itself, or at the limit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ldfi.cli.campaign_view import class_lines, waiting_lines
from ldfi.cli.demo_view import foot, missing, traffic_line, verdict_line

if TYPE_CHECKING:
    from rich.console import Console

    from ldfi.cli.client import Client
    from ldfi.cli.processes import Processes

LOOK_SECONDS: Final = 0.6
"""Between two looks: the edge asks the same process for each device, and waits 20 ms at most."""
SAY_SECONDS: Final = 15.0
"""Between two lines that say what is waited for, where no screen is drawn anew."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A campaign that is over. ``left``: what it left undecided, in words; empty where nothing."""

    campaign: dict[str, Any]
    experiments: list[dict[str, Any]]
    left: list[str] = field(default_factory=list)


def run(
    client: Client,
    processes: Processes,
    definition: Mapping[str, Any],
    limit: float,
    console: Console,
) -> Ran:
    """Run one campaign and show it. After ``limit`` seconds it is stopped, with what it has found
    by then. Raises ExperimentsError where a process dies."""
    from rich.live import Live

    began, end = time.time(), time.monotonic() + limit
    campaign: dict[str, Any] = client.post("/campaigns", {"settings": dict(definition)})
    needed, due = definition["min_traffic"], time.monotonic() + SAY_SECONDS
    ended: list[dict[str, Any]] = []
    running: set[str] = set()
    shared: set[str] = set()
    taken_up = False
    drawn = console.is_terminal
    live = Live(console=console, refresh_per_second=4, transient=True) if drawn else nullcontext()
    with live as screen:
        while campaign["state"] == "running" and time.monotonic() < end:
            time.sleep(LOOK_SECONDS)
            processes.check()
            campaign = client.get(f"/campaigns/{campaign['id']}")
            if not taken_up:
                good = _good(client.get_all("/classes"))
                now = traffic_line(good, needed, time.time() - began)
                taken_up = bool(campaign["classes"])
                if taken_up:
                    console.print(now)
            else:
                now = foot(campaign, len(ended), shared)
            before, running = running, _running(campaign)
            if before - running:
                shared = _shared(client)
                known, ended = len(ended), _ended(client, campaign["id"])
                for each in ended[known:]:
                    console.print(verdict_line(each, began, shared))
                due = time.monotonic() + SAY_SECONDS
            if screen is not None:
                screen.update(now)
            elif time.monotonic() > due:
                _say(console, campaign, now)
                due = time.monotonic() + SAY_SECONDS
    if campaign["state"] != "running":
        known, ended = len(ended), _ended(client, campaign["id"])
        for each in ended[known:]:
            console.print(verdict_line(each, began, _shared(client)))
        return Ran(campaign, ended)
    left = missing(campaign, needed, _good(client.get_all("/classes")))
    client.post(f"/campaigns/{campaign['id']}/stop", {"reason": "the demo's time is over"})
    return Ran(client.get(f"/campaigns/{campaign['id']}"), _ended(client, campaign["id"]), left)


def _say(console: Console, campaign: dict[str, Any], now: Any) -> None:
    """Say what is waited for, where nothing has ended for a while."""
    console.print(now)
    for line in class_lines(campaign) if campaign["classes"] else waiting_lines(campaign)[:1]:
        console.print(f"  {line}", soft_wrap=True)


def _running(campaign: dict[str, Any]) -> set[str]:
    """Name the experiments that run."""
    return {each["running"]["id"] for each in campaign["classes"] if each["running"]}


def _shared(client: Client) -> set[str]:
    """Name the systems that a class asks several things."""
    return {system for each in client.get_all("/classes") for system in each["shared"]}


def _good(classes: list[dict[str, Any]]) -> dict[str, int]:
    """Count requests that went well, by class."""
    return {each["name"]: each["good"] for each in classes}


def _ended(client: Client, campaign_id: str) -> list[dict[str, Any]]:
    """List the experiments that have ended, in the order in which they did."""
    tried = client.page(f"/campaigns/{campaign_id}/experiments", None)["items"]
    ended = [each for each in tried if each["ended_at"] and each["armed_at"]]
    return sorted(ended, key=lambda each: float(each["ended_at"]))
