"""What a person sees of a campaign: how far it is, what happens, what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ldfi.analysis.phrases import said_shortly
from ldfi.analysis.repairs.request_names import BY_THEIR_NAMES, Called
from ldfi.analysis.words import NOTHING, length, percent
from ldfi.cli.estimate import so_far
from ldfi.cli.terminal import Card, columns
from ldfi.cli.words import STYLES, clock, devices_line, failures, styled, when
from ldfi.experiments.domain.campaign.lifecycle import severity

if TYPE_CHECKING:
    from ldfi.cli.stream import Event

_DECIDES: Final = {
    "both": ("decides", "green"),
    "harm": ("can find harm, but not that there is none", "yellow"),
    "nothing": ("cannot decide anything", "yellow"),
}
HEAD: Final = 5
"""Lines around the table of classes."""


def overview(campaign: dict[str, Any], called: Called = BY_THEIR_NAMES) -> RenderableType:
    """One campaign: what it is, where it stands, and each of its classes."""
    facts = Card()
    state = styled(campaign["state"])
    if campaign["reason"]:
        state.append(f": {campaign['reason']}", "default")
    facts.add_row("campaign", campaign["id"])
    if campaign["name"]:
        facts.add_row("name", campaign["name"])
    facts.add_row("state", state)
    if campaign["waiting"]:
        facts.add_row("waiting", Text(campaign["waiting"], "yellow"))
    facts.add_row("started", f"{when(campaign['created_at'])} by {campaign['created_by']}")
    if campaign["next_run_at"]:
        facts.add_row("next run", f"{when(campaign['next_run_at'])}, run {campaign['run']}")
    facts.add_row("this run", _totals(campaign))
    for left in (campaign["ending"] or {}).get("left", ()):
        said = f"{called.name(left['request_class'])}: {left['words']}"
        facts.add_row("left open", Text(said, "yellow"))
    for name, why in campaign["not_yet"].items():
        facts.add_row("not yet", f"{called.name(name)}: {why}")
    classes = campaign["classes"]
    return Group(facts, "", class_table(classes, called, cards=True)) if classes else facts


def forecast_shown(forecast: dict[str, Any]) -> RenderableType:
    """Tell what a campaign could decide on each class, before it starts."""
    settings = forecast["settings"]
    shares = f"{percent(settings['treatment'])} treated, {percent(settings['control'])} in control"
    line = Text(f"{shares}, {settings['window']:g} s for each experiment.")
    table = columns("request class", "a minute", "treated", "harmful", "tolerated", "takes", "it")
    for each in forecast["classes"]:
        table.add_row(
            each["request_class"],
            f"{each['per_minute']:,.0f}",
            f"{each['expected']:,.1f}",
            *(str(each[verdict] or NOTHING) for verdict in ("harmful", "tolerated")),
            length(each["seconds"]),
            Text(*_DECIDES[each["decides"]]),
        )
        rarest = each.get("rarest")
        if rarest:
            table.add_row(
                Text(f"  at the point that {percent(rarest['share'])} of them call", "dim"),
                f"{rarest['share'] * each['per_minute']:,.0f}",
                f"{rarest['expected']:,.1f}",
                *("", "", length(rarest["seconds"])),
                Text(*_DECIDES[rarest["decides"]]),
            )
    seen = table if forecast["classes"] else Text("No class has been seen for long enough.")
    why = forecast["why_not"]
    last = Text(f"It would not start: {why}", "yellow") if why else Text("It may start.", "green")
    return Group(line, seen, last)


def undecided(estimate: dict[str, Any]) -> Text:
    """Tell of one class that it can decide little or nothing."""
    return Text(f"{_DECIDES[estimate['decides']][0]}: {estimate['words']}", "yellow")


def class_table(
    classes: list[dict[str, Any]], called: Called = BY_THEIR_NAMES, *, cards: bool = False
) -> Table:
    """Make a row for each request class, with what is tried on it now."""
    table = columns(
        "request class", "now", "control", "treatment", "left to try", "found", whole=0, cards=cards
    )
    for name in ("left to try", "found"):
        column = next(each for each in table.columns if each.header == name)
        column.justify = "right"
    for each in classes:
        counts = (each["running"] or {}).get("counts")
        table.add_row(
            called.name(each["name"]),
            _now(each),
            *(failures(counts[arm], "\n") if counts else "" for arm in ("control", "treatment")),
            str(each["open"]),
            Text(str(len(each["findings"])), STYLES["harmful"] if each["findings"] else ""),
        )
    return table


def progress(
    campaign: dict[str, Any], height: int, now: float, called: Called = BY_THEIR_NAMES
) -> RenderableType:
    """Draw what is drawn again and again while the campaign runs, on a screen of so many lines."""
    busy = sorted(
        campaign["classes"], key=lambda each: (not each["running"], each["finished"], each["name"])
    )
    room = max(1, (height - HEAD) // 2)
    foot = Text(f"{_title(campaign)}: {so_far(campaign, now)}", "dim")
    if len(busy) > room:
        foot.append(f"; {len(busy) - room} more classes")
    waiting = [Text(line, "yellow") for line in waiting_lines(campaign, called)[:3]]
    return Group(*([class_table(busy[:room], called)] if busy else []), *waiting, foot)


def waiting_lines(campaign: dict[str, Any], called: Called = BY_THEIR_NAMES) -> list[str]:
    """Why nothing is tried just now, where that is so."""
    lines = []
    if campaign["state"] == "scheduled":
        lines.append(f"Run {campaign['run']} begins at {when(campaign['next_run_at'])}.")
    if campaign["state"] == "paused":
        lines.append(f"Paused: {campaign['reason']}")
    if campaign["waiting"]:
        lines.append(f"Waiting: {campaign['waiting']}")
    lines += [f"{called.name(each)}: {why}" for each, why in campaign["not_yet"].items()]
    if campaign["state"] == "running" and not (campaign["classes"] or lines):
        lines.append("Waiting: no request class has been taken up yet")
    return lines


def class_lines(campaign: dict[str, Any]) -> list[str]:
    """Why nothing is tried on the classes that were taken up, where that is so."""
    return [f"{each['name']}: {each['waiting']}" for each in campaign["classes"] if each["waiting"]]


def event_line(event: Event, about: dict[str, Any] | None, called: Called = BY_THEIR_NAMES) -> Text:
    """One line: when, of what, what, and of an experiment that has ended how it went.

    ``about``: the experiment or the finding that it happened to, if it was one.
    """
    kind, _, news = event.what.partition(" ")
    line = Text(f"{clock(event.at)} ", "dim")
    if about is None:
        line.append(event.what, STYLES.get(news, "bold"))
        return line.append(f": {event.why}" if event.why else "", "default")
    line.append(f"{called.name(about['request_class'])} ", "default")
    line.append(f"finding {news} " if kind == "finding" else f"{news} ", STYLES.get(news, "bold"))
    if kind == "finding":
        return line.append(said_shortly(about["faults"]), "default")
    line.append(said_shortly(about["hypothesis"]), "default")
    return line.append(_how(event, news, about), "dim")


def result(campaign: dict[str, Any], findings: list[dict[str, Any]]) -> RenderableType:
    """Tell people what a run came to."""
    line = Text(f"{_title(campaign)} {campaign['state']}", "bold")
    if campaign["reason"]:
        line.append(f": {campaign['reason']}", "default")
    line.append(f". {_totals(campaign)}.", "default")
    if findings:
        return Group(line, finding_table(by_harm(findings)))
    if campaign["state"] == "stopped":
        return Group(line, Text("Nothing was found until then.", "yellow"))
    if left_open(campaign):
        return Group(line, Text("Nothing was found in what was decided.", "yellow"))
    return Group(line, Text("Nothing was found that hurts.", "green"))


def left_open(campaign: dict[str, Any]) -> bool:
    """Say whether a run that is over left something undecided.

    Records from before runs said so tell it by what their certificates list.
    """
    if campaign["ending"] is None:
        return any(each["open"] for each in campaign["classes"])
    return bool(campaign["ending"]["kind"] != "complete")


def finding_table(findings: list[dict[str, Any]], called: Called = BY_THEIR_NAMES) -> Table:
    """List findings in their order: what each is in a sentence, whose it is, and its faults below
    one another."""
    names = ("finding", "state", "what", "owner", "found", "request class", "faults together")
    table = columns(*names, whole=2)
    for each in findings:
        faults, owners = "\n".join(each["faults"]), ", ".join(each["owners"]) or "nobody"
        found, name = when(each["found_at"]), called.name(each["request_class"])
        state = styled(each["state"])
        table.add_row(each["id"], state, each["sentence"], owners, found, name, faults)
    return table


def by_harm(findings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Order findings as the pages do, the worst first."""

    def harm(each: dict[str, Any]) -> tuple[Any, ...]:
        failures = len(each["faults"])
        return severity(each["state"], failures, each["share"], each["found_at"], each["id"])

    return sorted(findings, key=harm)


def _now(item: dict[str, Any]) -> Text:
    running = item["running"]
    if running:
        shown = styled(running["state"])
        return shown.append(f" {said_shortly(running['hypothesis'], most=1)}", "default")
    if item["waiting"]:
        return Text(item["waiting"], "yellow")
    if not item["finished"]:
        return Text("…")
    return Text("stays open", "yellow") if item["open"] else Text("nothing left to try", "green")


def _how(event: Event, news: str, experiment: dict[str, Any]) -> str:
    if news == "waiting":
        return f"; {event.why}: `ldfi experiment approve {experiment['id']}`"
    if news == "armed":
        return "" if experiment["purpose"] == "explore" else f" to {experiment['purpose']}"
    said = [event.why] if event.why and news in {"aborted", "inconclusive"} else []
    counts = experiment["counts"]
    if counts and counts["treatment"]["devices"]:
        said += [f"{arm} {failures(counts[arm])}" for arm in ("treatment", "control")]
    if experiment["armed_at"]:
        said.append(length((experiment["ended_at"] or event.at) - experiment["armed_at"]))
    return f"; {', '.join(said)}" if said else ""


def _title(campaign: dict[str, Any]) -> str:
    return f"Campaign {campaign['id']}"


def _totals(campaign: dict[str, Any]) -> str:
    return f"{campaign['experiments']} experiments, {devices_line(campaign['devices'])}"
