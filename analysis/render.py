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
    """Print what a person wants to know first."""
    for line in told(analysis):
        console.print(line, highlight=False)


def told(analysis: Analysis) -> Iterable[str]:
    """Say an analysis in lines of the console's markup."""
    gist = analysis.gist
    yield f"[bold]{escape(gist.headline)}[/]"
    if analysis.classes:
        yield escape(gist.lead)
        if gist.missing:
            yield f"[yellow]{escape(gist.missing)}[/]"
        yield from _some([f"Hidden: {escape(each.says)}." for each in gist.masked], FIRST)
        yield from _harmless(gist)
        yield from _lost(gist)
        yield from _red(gist)
        yield from _classes(gist)
    yield ""
    yield from _read(analysis)


def _harmless(gist: Summary) -> Iterable[str]:
    if gist.harmless:
        yield "[green]Your own traffic has proved harmless:[/]"
        yield from _some([f"  {escape(each.says)}" for each in gist.harmless], FIRST)


def _lost(gist: Summary) -> Iterable[str]:
    if not gist.lost and not gist.unexplained:
        return
    yield f"[bold]Requests lost, by service[/] [dim]({SEEN})[/]"
    yield from _some([f"  {escape(each.service)} {each.says}" for each in gist.lost], SHOWN)
    if gist.unexplained:
        yield f"  nothing says why: {gist.unexplained:,}"


def _red(gist: Summary) -> Iterable[str]:
    if not gist.red:
        return
    yield ""
    yield "[bold]What is red, and why[/]"
    blocks = []
    for each in gist.red:
        lines = [f"  [red]{escape(each.name)}[/]", *(f"    {escape(r)}." for r in each.reasons)]
        blocks.append("\n".join([*lines, *(f"    Do: {escape(d)}" for d in each.advice)]))
    yield from _some(blocks, SHOWN)


def _classes(gist: Summary) -> Iterable[str]:
    yield ""
    yield "[bold]By what users were doing[/]"
    lines = [
        f"  {escape(each.name)} [dim]at {escape(each.service)}[/]: {escape(each.says)}"
        for each in gist.classes
    ]
    yield from _some(lines, 2 * SHOWN)
    if gist.jobs:
        yield f"  {counted(gist.jobs, 'trace')} of jobs, consumers or start-up, no requests"


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
