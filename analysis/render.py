"""An analysis for the terminal: the gist, the worst first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape

from ldfi.analysis.report import Analysis
from ldfi.analysis.summary import Summary
from ldfi.analysis.words import counted

SHOWN = 8
"""Lines of one kind; the rest is counted."""

FIRST = 3
"""Lines of one kind among the first ten."""

SEEN = "seen: nothing else failed; suspected: something else did, or in doubt"


def render(analysis: Analysis, console: Console) -> None:
    """Print the summary, the most important first."""
    for line in told(analysis):
        console.print(line, highlight=False)


def told(analysis: Analysis) -> Iterable[str]:
    """Say an analysis in lines of the console's markup."""
    summary = analysis.gist
    yield f"[bold]{escape(summary.headline)}[/]"
    if analysis.classes:
        yield escape(summary.lead)
        if summary.missing:
            yield f"[yellow]{escape(summary.missing)}[/]"
        yield from _some([f"Hidden: {escape(each.says)}." for each in summary.masked], FIRST)
        yield from _harmless(summary)
        yield from _lost(summary)
        yield from _red(summary)
        yield from _classes(summary)
    yield ""
    yield from _read(analysis)


def _harmless(summary: Summary) -> Iterable[str]:
    if summary.harmless:
        yield "[green]Your own traffic has proved harmless:[/]"
        yield from _some([f"  {escape(each.says)}" for each in summary.harmless], FIRST)


def _lost(summary: Summary) -> Iterable[str]:
    if not summary.lost and not summary.unexplained:
        return
    yield f"[bold]Requests lost, by service[/] [dim]({SEEN})[/]"
    yield from _some([f"  {escape(each.service)} {each.says}" for each in summary.lost], SHOWN)
    if summary.unexplained:
        yield f"  nothing says why: {summary.unexplained:,}"


def _red(summary: Summary) -> Iterable[str]:
    if not summary.red:
        return
    yield ""
    yield "[bold]What is red, and why[/]"
    blocks = []
    for each in summary.red:
        lines = [f"  [red]{escape(each.name)}[/]", *(f"    {escape(r)}." for r in each.reasons)]
        blocks.append("\n".join([*lines, *(f"    Do: {escape(d)}" for d in each.advice)]))
    yield from _some(blocks, SHOWN)


def _classes(summary: Summary) -> Iterable[str]:
    yield ""
    yield "[bold]By what users were doing[/]"
    lines = [
        f"  {escape(each.name)} [dim]at {escape(each.service)}[/]: {escape(each.says)}"
        for each in summary.classes
    ]
    yield from _some(lines, 2 * SHOWN)
    if summary.jobs:
        yield f"  {counted(summary.jobs, 'trace')} of jobs, consumers or start-up, no requests"


def _read(analysis: Analysis) -> Iterable[str]:
    yield (
        f"{counted(analysis.spans, 'span')} in {counted(analysis.traces, 'trace')}"
        f" from {counted(sum(map(bool, analysis.files.values())), 'file')};"
        f" outcomes known of {counted(analysis.outcomes, 'request')}"
    )
    for path, reason in analysis.unread.items():
        yield f"[yellow]not read[/] {escape(path)}: {escape(reason)}"
    for what, count in analysis.skipped.items():
        yield f"[yellow]left out[/] {count:,} × {escape(what)}"
    for note in analysis.notes:
        yield f"[dim]{escape(note)}[/]"


def _some(lines: Sequence[str], most: int) -> Iterable[str]:
    yield from lines[:most]
    if len(lines) > most:
        yield f"  [dim]and {len(lines) - most:,} more[/]"
