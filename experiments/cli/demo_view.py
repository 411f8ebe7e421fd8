"""What a person sees of the demo: how the campaign goes, and what it found."""

from __future__ import annotations

from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ldfi.experiments.cli.terminal import columns

LATEST = 8
"""Verdicts shown while the campaign runs."""


def verdict_line(experiment: dict[str, Any]) -> str:
    """Show what was tried on which class, for how long, and what came of it."""
    faults = experiment["hypothesis"]
    shown = ", ".join(faults[:3]) + (f" and {len(faults) - 3} more" if len(faults) > 3 else "")
    verdict = experiment["verdict"] or experiment["state"]
    seconds = experiment["ended_at"] - experiment["armed_at"]
    return f"{experiment['request_class']:12} {verdict:12} {seconds:4.1f} s  {shown}"


def traffic_so_far(classes: list[dict[str, Any]], needed: int) -> str:
    """Say how many have come of the ``needed`` good requests that a class must have shown."""
    if not classes:
        return "Watching traffic: no whole trace of a request has come yet."
    seen = (
        f"{each['name']} {min(each['good'], needed)} of {needed} good requests"
        + (f", {each['success_rate']:.0%} of all go well" if each["success_rate"] < 1 else "")
        for each in sorted(classes, key=lambda each: str(each["name"]))
    )
    return f"Watching traffic: {'; '.join(seen)}."


def progress(campaign: dict[str, Any], verdicts: list[str], waiting: str = "") -> RenderableType:
    """One row for each request class, drawn again and again while the campaign runs.

    ``waiting``: what is waited for as long as there is no row.
    """
    table = Table("request class", "trying now", "control", "treated", "open", "found", expand=True)
    for item in campaign["classes"]:
        running = item["running"]
        counts = running["counts"] if running else None
        table.add_row(
            item["name"],
            _now(item),
            _failures(counts["control"]) if counts else "",
            _failures(counts["treatment"]) if counts else "",
            str(item["open"]),
            str(len(item["findings"])),
        )
    foot = Text(
        f"{campaign['experiments']} experiments, {campaign['exposed_members']} members exposed, "
        f"{campaign['failed_members']} of them hurt"
    )
    if not campaign["classes"]:
        foot = Text(waiting)
    latest = Text("\n".join(verdicts[-LATEST:]), no_wrap=True, overflow="ellipsis", style="dim")
    return Group(table, foot, latest)


def report(console: Console, campaign: dict[str, Any], result: dict[str, Any]) -> None:
    """Draw the table at the end: findings against the weaknesses that were written down."""
    table = columns("request class", "planted as", "found", "faults together", whole=3)
    for row in result["comparison"]:
        found, planted = row["found"], row["weakness"]
        mark = Text("yes", "green") if found and planted else Text("NO", "bold red")
        planted = planted or Text("not planted", "bold red")
        table.add_row(row["class"], planted, mark, "\n".join(row["faults"]))
    console.print(Text("What hurts", "bold"), table, sep="\n")
    console.print(
        f"{result['experiments']} experiments in {result['seconds']} s; "
        f"{result['exposed_members']} members exposed, {result['failed_members']} of them hurt."
    )
    said = Text("Findings equal the planted weaknesses.")
    if not result["matched"]:
        said = Text("Findings differ from the planted weaknesses", "bold red")
        said.append(f" ({campaign['reason']}).", "default")
    console.print(said)


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
