"""What people see: a console that takes every name as it is, and plain tables."""

from __future__ import annotations

import json
from typing import Any

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table


def console(*, stderr: bool = False) -> Console:
    """Names hold brackets and colons: they are neither markup nor emoji, and keep one colour."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def columns(*names: str, whole: int = 1) -> Table:
    """Make a table without frames: long names fold instead of being cut, for people copy them.

    The first ``whole`` columns keep their words in one piece.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
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
