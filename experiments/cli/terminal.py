"""What people see: a console that takes every name as it is, and plain tables."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Final

import typer
from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table

NARROW: Final = 90
"""Columns of a terminal below which a table that does not fit becomes a card for each row: squeezed
columns cut words every few letters."""

_ENDLESS: Final = 100_000
"""Columns of a pipe or a file: names are whole there and lines never break, or two points that
differ at their ends would look alike."""


def console(*, stderr: bool = False) -> Console:
    """Names hold brackets and colons: they are neither markup nor emoji, and keep one colour."""
    to = sys.stderr if stderr else sys.stdout
    width = None if to.isatty() or "COLUMNS" in os.environ else _ENDLESS
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, width=width)


class Columns(Table):
    """A table, or a card for each of its rows where the terminal is too narrow for it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Print whichever of the two there is room for."""
        needed = self.__rich_measure__(console, options.update(max_width=_ENDLESS)).maximum
        if options.max_width >= min(NARROW, needed):
            yield from super().__rich_console__(console, options)
            return
        for number in range(self.row_count):
            if number:
                yield ""
            yield self._card(number)

    def _card(self, number: int) -> Table:
        card = Table.grid(padding=(0, 2, 0, 0))
        card.add_column(style="dim", no_wrap=True)
        card.add_column(overflow="fold")
        for column in self.columns:
            card.add_row(column.header, [*column.cells][number])
        return card


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
    """Print a document for programs, or its picture for people."""
    if as_json:
        typer.echo(json.dumps(document))
    else:
        console().print(picture, soft_wrap=isinstance(picture, str))


def show_page(page: dict[str, Any], picture: RenderableType, empty: str, *, as_json: bool) -> None:
    """Part of a list; where it goes on, that is said, and how to see more."""
    show(page, picture if page["items"] else empty, as_json=as_json)
    if page["next"] is not None and not as_json:
        console(stderr=True).print(f"The first {len(page['items'])}; --limit or --all show more.")
