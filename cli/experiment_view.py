"""What a person sees of an experiment: control against treatment, side by side."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from ldfi.analysis.repairs.called import BY_THEIR_NAMES, Called
from ldfi.analysis.words import NOTHING, length, percent
from ldfi.cli.terminal import Card, columns
from ldfi.cli.words import devices_line, interval, milliseconds, outcome, styled, when
from ldfi.experiments.domain.judging.shares import BY_ADDRESS

ARMS = ("control", "treatment")
FAULTS = 4
"""Faults of one experiment that a list shows."""


def experiment_table(experiments: list[dict[str, Any]], called: Called = BY_THEIR_NAMES) -> Table:
    """Make a row for each experiment: failures of devices in either arm."""
    table = columns("experiment", "verdict", *ARMS, "request class", "faults", whole=4)
    for each in experiments:
        counts, faults = each["counts"], each["hypothesis"]
        shown = [f"and {len(faults) - FAULTS} more"] if len(faults) > FAULTS else []
        table.add_row(
            each["id"],
            styled(outcome(each)),
            *(_failed(counts[arm]) if counts else NOTHING for arm in ARMS),
            called.name(each["request_class"]),
            "\n".join([*faults[:FAULTS], *shown]),
        )
    return table


def side_by_side(experiment: dict[str, Any]) -> RenderableType:
    """One experiment: what was tried, control against treatment, and why it ended."""
    counts = experiment["counts"]
    facts = _facts(experiment)
    if not counts:
        return facts
    edges = [_edges(counts["edges"])] if counts.get("edges") else []
    return Group(facts, _arms(counts), _weighed(counts), *edges)


def _facts(experiment: dict[str, Any]) -> Card:
    facts = Card()
    facts.add_row("experiment", f"{experiment['id']}, to {experiment['purpose']}")
    facts.add_row("campaign", f"{experiment['campaign_id']}, run {experiment['run']}")
    facts.add_row("request class", experiment["request_class"])
    facts.add_row("hypothesis", "\n".join(experiment["hypothesis"]))
    if experiment["faults"] != experiment["hypothesis"]:
        facts.add_row("injected", "\n".join(experiment["faults"]))
    verdict = styled(outcome(experiment))
    if experiment["reason"]:
        verdict.append(f", {experiment['reason']}", "default")
    facts.add_row("verdict", verdict)
    armed, ended = experiment["armed_at"], experiment["ended_at"]
    lasted = f", for {length(ended - armed)}" if armed and ended else ""
    facts.add_row("armed", f"{when(armed)}{lasted}" if armed else "never")
    if experiment["approved_by"]:
        facts.add_row("approved by", experiment["approved_by"])
    facts.add_row("risk", f"{experiment['risk']:.0f} members, as told beforehand")
    facts.add_row("devices", devices_line(experiment["devices"]))
    return facts


def _arms(counts: dict[str, Any]) -> Table:
    table = columns("", *ARMS)
    for column in table.columns[1:]:
        column.justify = "right"
    for name in ("devices", "failures"):
        table.add_row(name, *(str(counts[arm][name]) for arm in ARMS))
    rates = (
        _rate(counts[arm]["failure_rate"], counts[arm]["failure_rate_interval"]) for arm in ARMS
    )
    table.add_row("failure rate", *rates)
    for name in ("p50", "p95", "p99"):
        latencies = (counts[arm]["latency"] for arm in ARMS)
        shown = (milliseconds(each[name]) if each else NOTHING for each in latencies)
        table.add_row(f"latency {name}", *shown)
    return table


def _edges(shares: list[dict[str, Any]]) -> Table:
    table = columns("edge", "token", "given", "used", whole=1)
    for column in table.columns[2:]:
        column.justify = "right"
    for each in shares:
        behind = "" if each["behind"] == 1 else f" with {each['behind']} behind it"
        table.add_row(each["edge"] + behind, each["token"], str(each["given"]), str(each["used"]))
    if any(each.get("by_address") for each in shares):
        table.caption, table.caption_justify = BY_ADDRESS, "left"
    return table


def _weighed(counts: dict[str, Any]) -> Card:
    facts = Card()
    difference = _rate(counts["difference"], counts["difference_interval"])
    facts.add_row("difference", f"{difference}, treatment less control")
    others = counts.get("others") or {"met": 0, "most": 0}
    if others["met"]:
        met = f"{others['met']} devices, {others['hurt']} of them failed"
        facts.add_row("not drawn, and met it", met)
    if others["most"] > 1:
        facts.add_row("most often in one request", str(others["most"]))
    facts.add_row("intervals", f"{percent(counts['confidence'])} each")
    if counts["curve"]:
        pairs, worse, not_worse = counts["curve"][-1]
        facts.add_row(
            "evidence",
            f"worse 10^{worse:.1f}, not worse 10^{not_worse:.1f}, after {pairs} treated",
        )
    facts.add_row("passed by", f"{counts['passed_by']} treated devices in which none did")
    return facts


def _failed(arm: dict[str, Any]) -> str:
    return f"{arm['failures']}/{arm['devices']}" if arm["devices"] else NOTHING


def _rate(share: float | None, bounds: list[float] | None) -> str:
    return f"{percent(share)} {interval(bounds)}".rstrip()
