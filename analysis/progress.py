"""Progress of reading, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ldfi.analysis.collect import Progress as ReadingProgress
from ldfi.analysis.trace_api import Progress as FetchingProgress

EVERY = 0.1
"""Seconds between two updates."""


@contextmanager
def progress_on(console: Console) -> Iterator[ReadingProgress]:
    """Show the file being read, the spans so far and their rate; gone when reading is over."""
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading", total=None)
        begin = latest = monotonic()

        def update(path: Path, spans: int) -> None:
            nonlocal latest
            now = monotonic()
            if now - latest >= EVERY:
                latest = now
                rate = spans / (now - begin)
                text = f"{path.name}: {spans:,} spans, {rate:,.0f} spans/s"
                bar.update(task, description=text)

        yield update


# Progress of fetching, for the terminal: shown only where it takes long.

LATE = 2.0
"""Seconds after which whoever waits wants to see something."""


@contextmanager
def fetching_on(console: Console, late: float = LATE) -> Iterator[FetchingProgress]:
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
