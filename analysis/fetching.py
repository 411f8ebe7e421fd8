"""Progress of fetching, for the terminal: shown only where it takes long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ldfi.analysis.trace_api import Progress as Callback

LATE = 2.0
"""Seconds after which whoever waits wants to see something."""


@contextmanager
def fetching_on(console: Console, late: float = LATE) -> Iterator[Callback]:
    """Show, after ``late`` seconds, what is being fetched; gone when that is over."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task("asking", total=None)

    def update(what: str, done: float, of: float | None) -> None:
        bar.update(task, description=what, completed=done, total=of)

    shown = Timer(late, bar.start)  # also where nothing has come yet
    shown.daemon = True
    shown.start()
    try:
        yield update
    finally:
        shown.cancel()
        shown.join()
        if bar.live.is_started:
            bar.stop()
