"""What people see: a console that takes every name as it is, and plain tables."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from typing import Any, Final

import typer
from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from ldfi.cli.output import last_words

NARROW: Final = 90
"""Columns of a terminal below which a table that does not fit becomes a card for each row: squeezed
columns cut words every few letters."""

GAP: Final = 2
"""Columns between the name and the value on a line of a card."""

_ENDLESS: Final = 100_000
"""Columns of a pipe or a file: names are whole there and lines never break, or two points that
differ at their ends would look alike."""


def console(
    *, stderr: bool = False, markup: bool = False, quiet: bool = False, width: int | None = None
) -> Console:
    """Make the console that every command prints on, ``width`` columns wide if not as its terminal.

    Names hold brackets and colons: they are neither markup nor emoji, and keep one colour. With
    ``markup`` whoever prints has to escape them; colons mean nothing there, either.
    """
    to = sys.stderr if stderr else sys.stdout
    if width is None and not to.isatty() and "COLUMNS" not in os.environ:
        width = _ENDLESS
    return Console(
        stderr=stderr, markup=markup, emoji=False, highlight=False, width=width, quiet=quiet
    )


class Columns(Table):
    """A table, or a card for each of its rows where the terminal is too narrow for it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Print whichever of the two there is room for."""
        endless = options.update(max_width=_ENDLESS)
        needs = [_need(console, endless, column) for column in self.columns]
        most = [need.maximum for need in needs]
        between = self.__rich_measure__(console, endless).maximum - sum(most)
        room = options.max_width - between
        if room < sum(most) and (
            options.max_width < NARROW or room < sum(need.minimum for need in needs)
        ):
            for number in range(self.row_count):
                if number:
                    yield ""
                yield self._card(number)
            return
        for column, width in zip(self.columns, _shared(needs, room), strict=True):
            column.width = width
        yield from super().__rich_console__(console, options)

    def _card(self, number: int) -> Card:
        return Card([(str(each.header), [*each.cells][number]) for each in self.columns])


@dataclass(frozen=True, slots=True)
class Card:
    """A name and its value on each line; what does not fit beside its name stands below it."""

    rows: list[tuple[str, RenderableType]] = field(default_factory=list)

    def add_row(self, name: str, value: RenderableType) -> None:
        """Add a line."""
        self.rows.append((name, value))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Print what has a value."""
        rows = [(name, value) for name, value in self.rows if str(value)]
        beside = max((len(name) for name, _ in rows), default=0) + GAP
        for name, value in rows:
            need = console.measure(value, options=options.update(max_width=_ENDLESS))
            room = options.max_width - beside
            if need.minimum > room or room < need.maximum <= options.max_width - GAP:
                yield Text(name, "dim")
                yield Padding(value, (0, 0, 0, GAP))
                continue
            line = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
            line.add_column(style="dim", no_wrap=True, width=beside - GAP)
            line.add_column(overflow="fold")
            line.add_row(Text(name), value)
            yield line


def _need(console: Console, endless: ConsoleOptions, column: Column) -> Measurement:
    """Measure what a column takes: at least its longest word, at most all on one line."""
    cells = (column.header, *column.cells)
    needs = [console.measure(cell, options=endless) for cell in cells]
    most = max(need.maximum for need in needs)
    return Measurement(most if column.no_wrap else max(need.minimum for need in needs), most)


def _shared(needs: list[Measurement], room: int) -> list[int]:
    """Share the room: each column has its longest word, then whoever lacks least is served."""
    widths = [need.minimum for need in needs]
    left = room - sum(widths)
    order = sorted(range(len(needs)), key=lambda index: needs[index].span)
    for done, index in enumerate(order):
        more = min(needs[index].span, left // (len(order) - done))
        widths[index] += more
        left -= more
    return widths


def columns(*names: str, whole: int = 1, cards: bool = True) -> Table:
    """Make a table without frames: long names fold instead of being cut, for people copy them.

    The first ``whole`` columns keep their words in one piece. ``cards``: on a narrow terminal a
    card for each row takes its place; not for what is drawn over and over in a few lines.
    """
    table = (Columns if cards else Table)(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, name in enumerate(names):
        table.add_column(name, overflow="fold", no_wrap=index < whole)
    return table


def show(document: Any, picture: RenderableType, *, as_json: bool) -> None:
    """Print a document for programs, or its picture for people: the last that a command prints."""
    with last_words():
        if as_json:
            typer.echo(json.dumps(document))
        else:
            console().print(picture, soft_wrap=isinstance(picture, str))


def show_page(page: dict[str, Any], picture: RenderableType, empty: str, *, as_json: bool) -> None:
    """Part of a list; where it goes on, that is said, and how to see more."""
    show(page, picture if page["items"] else empty, as_json=as_json)
    if page["cursor"] is not None and not as_json:
        console(stderr=True).print(f"The first {len(page['items'])}; --limit or --all show more.")
