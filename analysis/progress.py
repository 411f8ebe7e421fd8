"""Progress of reading, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ldfi.analysis.collect import Progress as Callback

EVERY = 0.1
"""Seconds between two updates."""


@contextmanager
def progress_on(console: Console) -> Iterator[Callback]:
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
