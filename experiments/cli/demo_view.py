"""What a person sees of the demo: how the campaign goes, and what it found."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ldfi.experiments.cli.campaign_view import class_lines, waiting_lines
from ldfi.experiments.cli.demo_pace import Asking
from ldfi.experiments.cli.terminal import Card, columns

LATEST = 8
"""Verdicts shown while the campaign runs."""

ENOUGH_WELL: Final = 0.5
"""Share of requests that go well where nothing is injected; with fewer the demo is not itself."""


def verdict_line(experiment: dict[str, Any]) -> str:
    """Show what was tried on which class, for how long, and what came of it."""
    faults = experiment["hypothesis"]
    shown = ", ".join(faults[:3]) + (f" and {len(faults) - 3} more" if len(faults) > 3 else "")
    verdict = experiment["verdict"] or experiment["state"]
    seconds = experiment["ended_at"] - experiment["armed_at"]
    return f"{experiment['request_class']:12} {verdict:12} {seconds:4.1f} s  {shown}"


@dataclass(frozen=True, slots=True)
class Machine:
    """How busy the machine is: processes that want to run, as of late, and its processors."""

    load: float
    cores: int

    @classmethod
    def now(cls) -> Machine:
        """Look at this machine."""
        return cls(os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0, os.cpu_count() or 1)

    @property
    def busy(self) -> bool:
        """Whether more wants to run than can."""
        return self.load > self.cores

    def __str__(self) -> str:
        cores = "core" if self.cores == 1 else "cores"
        return f"load {self.load:.1f} on {self.cores} {cores}"


def traffic_so_far(
    classes: list[dict[str, Any]],
    status: dict[str, Any],
    needed: int,
    machine: Machine,
    asking: Asking | None = None,
) -> str:
    """Say what was seen, how much of it went well, how much is needed, and what is in the way."""
    seen, well = status["outcomes"], status["went_well"]
    said = f"Watching traffic: seen {seen}, went well {well}, needed {needed} of a class"
    each_class = [
        f"{each['name']} has {min(each['good'], needed)}"
        + (f" ({each['success_rate']:.0%} of the newest go well)" if _ails(each) else "")
        for each in sorted(classes, key=lambda each: str(each["name"]))
    ]
    said += f": {', '.join(each_class)}." if each_class else "."
    why = slowed(asking, machine) or _in_the_way(status, machine)
    return f"{said} {why}" if why else said


def slowed(asking: Asking | None, machine: Machine) -> str:
    """Say that the devices ask for less than was wanted, and how much; mostly empty."""
    if asking is None or not asking.fewer:
        return ""
    return f"This machine is too slow ({machine}), going on with fewer devices: {asking}."


def why_not_done(
    campaign: dict[str, Any], traffic: str, machine: Machine, asking: Asking | None = None
) -> str:
    """Say what a campaign still waits for, what it has found, and what it has not tried."""
    said = [traffic] if traffic else waiting_lines(campaign)
    said += class_lines(campaign)
    for each in campaign["classes"]:
        said += [
            f"Found on {each['name']}: {', '.join(found)}" for found in each.get("findings", ())
        ]
    left = [f"{each['open']} on {each['name']}" for each in campaign["classes"] if each["open"]]
    if left:
        said.append(f"Hypotheses left open: {', '.join(left)}")
    if not traffic and (slow := slowed(asking, machine)):
        said.append(slow)
    elif machine.busy and str(machine) not in traffic:
        said.append(f"This machine is busy: {machine}")
    return "\n".join(f"  {each}" for each in said)


def _ails(each: dict[str, Any]) -> bool:
    return bool(each["success_rate"] < 1)


def _in_the_way(status: dict[str, Any], machine: Machine) -> str:
    """Name what keeps requests from being good, where that can be seen; mostly empty."""
    seen, well = status["outcomes"], status["went_well"]
    if not status["spans"]:
        return "No span of a service has come yet."
    if not seen:
        return "No device has said yet how a request went."
    if well < ENOUGH_WELL * seen and machine.busy:
        return (
            f"This machine is too slow for it ({machine}): answers come late, and devices count "
            "what is late as failed."
        )
    if well < ENOUGH_WELL * seen:
        return "Most requests fail although nothing is injected."
    return ""


def progress(
    campaign: dict[str, Any], verdicts: list[str], waiting: str = "", slow: str = ""
) -> RenderableType:
    """Draw some lines for each request class, again and again while the campaign runs.

    ``waiting``: what is waited for as long as there is none. ``slow``: why there are few requests.
    """
    if not campaign["classes"]:
        return Text(waiting)
    card = Card()
    for item in campaign["classes"]:
        card.add_row(item["name"], _stands(item).append("\n").append_text(_now(item)))
    foot = Text(
        f"{campaign['experiments']} experiments, {campaign['exposed_members']} members exposed, "
        f"{campaign['failed_members']} of them hurt"
    )
    latest = Text("\n".join(verdicts[-LATEST:]), overflow="fold", style="dim")
    return Group(card, "", foot, *([Text(slow, "yellow")] if slow else []), latest)


def report(console: Console, campaign: dict[str, Any], result: dict[str, Any]) -> None:
    """Draw the table at the end: findings against the weaknesses that were written down."""
    table = columns("request class", "planted as", "found", "faults together", whole=3)
    for row in result["comparison"]:
        found, planted = row["found"], row["weakness"]
        mark = Text("yes", "green") if found and planted else Text("NO", "bold red")
        planted = planted or Text("not planted", "bold red")
        table.add_row(row["class"], planted, mark, "\n".join(row["faults"]))
    console.print(Text("What hurts", "bold"), table, "", sep="\n")
    console.print(
        f"{result['experiments']} experiments in {result['seconds']} s; "
        f"{result['exposed_members']} members exposed, {result['failed_members']} of them hurt."
    )
    said = Text("Findings equal the planted weaknesses.")
    if not result["matched"]:
        said = Text("Findings differ from the planted weaknesses", "bold red")
        said.append(f" ({campaign['reason']}).", "default")
    console.print(said)


def _stands(item: dict[str, Any]) -> Text:
    """Say how far a class is, and how the experiment goes that runs on it."""
    said = f"{item['open']} open, {len(item['findings'])} found"
    counts = item["running"]["counts"] if item["running"] else None
    if counts:
        control, treated = (_failures(counts[arm]) for arm in ("control", "treatment"))
        said += f"; control {control} failed, treated {treated}"
    return Text(said)


def _now(item: dict[str, Any]) -> Text:
    if item["finished"]:
        return Text("nothing left to try", "green")
    if item["waiting"]:
        return Text(item["waiting"], "yellow")
    if not item["running"]:
        return Text("…")
    faults = item["running"]["hypothesis"]
    return Text(faults[0] if len(faults) == 1 else f"{len(faults)} faults at once, {faults[0]} …")


def _failures(arm: dict[str, int]) -> str:
    return f"{arm['failures']}/{arm['devices']}"
