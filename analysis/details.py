"""Everything known of each class, for the terminal, under exact names."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table

from ldfi.analysis.report import Analysis, ClassReport
from ldfi.analysis.words import counted, fault_in_words, faults_in_words

LINE = 100
"""Columns of a line between classes, at most: a pipe has no width."""

SHOWN = 8
"""Lines of one kind shown for a class; the rest is counted."""


def render_details(analysis: Analysis, console: Console) -> None:
    """Print what each class relies on, survives and fails with; ``--json`` has the rest."""
    requests = [each for each in analysis.classes if "operation" not in _features(each)]
    for each in requests:
        _class(each, analysis.max_size, console)
    others = [each for each in analysis.classes if each not in requests]
    if others:
        _others(others, console)


def _class(each: ClassReport, max_size: int, console: Console) -> None:
    console.print()
    rule = Rule(f"[bold]{escape(each.name)}[/] [dim]at {escape(each.service)}[/]", align="left")
    console.print(rule, width=min(console.width, LINE))
    counts = [counted(each.traces, "request"), f"{each.good:,} good"]
    counts += [f"{each.failed:,} failed"] if each.failed else []
    counts += [f"{each.refused:,} refused (4xx)"] if each.refused else []
    console.print(
        f"{', '.join(counts)}; {each.consistency:.0%} rely on the same points", highlight=False
    )
    if each.unfit:
        console.print(f"[yellow]not fit for exploration:[/] {escape(each.unfit)}", highlight=False)
    _supports(each, console)
    _hypotheses(each, max_size, console)
    _tolerated(each, console)
    _failures(each, console)
    if each.retried:
        _list(console, "failed and yet succeeded (retried, or called several times)", each.retried)


def _supports(each: ClassReport, console: Console) -> None:
    if not any(support.points for support in each.supports):
        console.print("No calls are recorded in the good requests of this class.")
        return
    table = Table("requests", box=None, padding=(0, 2, 0, 0))
    for name in ("rely on", "without"):
        table.add_column(name, overflow="fold")
    for support in each.supports[:SHOWN]:
        table.add_row(
            f"{support.requests:,}",
            escape("\n".join(support.points) or "nothing"),
            escape("\n".join(support.failed)),
        )
    console.print(table)
    _rest(console, len(each.supports), "supports")


def _hypotheses(each: ClassReport, max_size: int, console: Console) -> None:
    seen: Counter[str] = Counter()
    for failure in each.failures:
        if len(failure.suspects) == 1:
            seen[f"error@{failure.suspects[0]}"] += failure.requests
    lines = [
        fault_in_words(fault, each.callees)
        + (f" (suspected in {counted(seen[fault], 'failed request')})" if seen[fault] else "")
        for fault in each.single_points
    ]
    if lines:
        _list(console, "[bold]single points of failure, as far as these traces know[/]", lines)
    larger = [h for h in each.hypotheses if len(h) > 1]
    if larger:
        _list(
            console,
            f"together they might hurt (at most {max_size})",
            [faults_in_words(h, each.callees) for h in larger],
        )
    if each.more_hypotheses:
        console.print(f"[dim]There are more than {len(each.hypotheses)} such sets.[/]")


def _tolerated(each: ClassReport, console: Console) -> None:
    lines = []
    for tolerated in each.tolerated:
        instead = f", {', '.join(tolerated.instead)} stood in" if tolerated.instead else ""
        origin = {"observed": "by itself", "injected": "injected", "told": "as told"}
        faults = faults_in_words(tolerated.faults, each.callees)
        lines.append(f"{faults} ({tolerated.requests:,} ×, {origin[tolerated.origin]}{instead})")
    if lines:
        _list(console, "survived, as far as is known", lines)


def _failures(each: ClassReport, console: Console) -> None:
    lines = []
    for failure in each.failures:
        suspects = " and ".join(failure.suspects) or "nothing in the trace"
        hidden = "; the root span says all was well" if failure.hidden else ""
        told = f"; told: {', '.join(failure.told)}" if failure.told else ""
        lines.append(f"{failure.requests:,} × {suspects}{hidden}{told}")
    if lines:
        _list(console, "[red]failed, and what the trace points at[/]", lines)


def _others(others: list[ClassReport], console: Console) -> None:
    traces = sum(each.traces for each in others)
    console.print()
    console.print(
        f"{traces:,} traces are not requests that an edge sees arrive (jobs, consumers, start-up):",
        highlight=False,
    )
    for each in others[:SHOWN]:
        points = ", ".join(fault.partition("@")[2] for fault in each.single_points[:SHOWN])
        relying = f", relying on {points}" if points else ""
        console.print(
            f"  {each.traces:,} × {escape(each.service)}: {escape(each.name + relying)}",
            highlight=False,
        )
    _rest(console, len(others), "kinds")


def _list(console: Console, title: str, lines: list[str] | tuple[str, ...]) -> None:
    console.print(f"{title}:", highlight=False)
    for line in lines[:SHOWN]:
        console.print(f"  {escape(line)}", highlight=False)
    _rest(console, len(lines), "")


def _rest(console: Console, total: int, what: str) -> None:
    if total > SHOWN:
        console.print(f"  [dim]and {total - SHOWN} more {what}[/]".rstrip(), highlight=False)


def _features(each: ClassReport) -> set[str]:
    return {str(condition["feature"]) for condition in each.predicate}
