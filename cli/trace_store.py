"""Where ``ldfi analyze`` fetches traces from, as it was typed."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from ldfi.analysis.jaeger_api import fetch_from_jaeger
from ldfi.analysis.progress import fetching_on
from ldfi.analysis.report import Analysis
from ldfi.analysis.tempo_api import fetch_from_tempo
from ldfi.analysis.trace_api import TraceApi, TraceQuery
from ldfi.cli.durations import seconds
from ldfi.cli.reproduce_run import headers_of
from ldfi.cli.terminal import console
from ldfi.errors import Invalid


@dataclass(frozen=True, slots=True)
class TraceStore:
    """What was typed of it."""

    jaeger: str | None
    tempo: str | None
    service: str
    lookback: str
    limit: int
    header: tuple[str, ...]
    token: str | None


@contextmanager
def fetched(store: TraceStore) -> Iterator[dict[Path, str]]:
    """Fetch what a store has, into a file for as long as it is needed, with the store's name; none
    where none was typed.

    Raises Unreachable, Invalid and NotFound.
    """
    if store.jaeger is None and store.tempo is None:
        if store.service:
            raise Invalid("--service is of --jaeger or --tempo: files are read whole")
        yield {}
        return
    if store.jaeger is not None and store.tempo is not None:
        raise Invalid("give --jaeger or --tempo, not both")
    past = seconds(store.lookback, "--lookback")
    now = time.time()
    query = TraceQuery(store.service, now - past, now, store.limit)
    with tempfile.TemporaryDirectory(prefix="ldfi-") as folder:
        path = Path(folder) / ("jaeger.json" if store.jaeger is not None else "tempo.jsonl")
        yield {path: _fetch(store, query, path)}


def _fetch(store: TraceStore, query: TraceQuery, path: Path) -> str:
    headers = headers_of(list(store.header))
    if store.token:
        headers.setdefault("authorization", f"Bearer {store.token.strip()}")
    at = console(stderr=True)
    url = store.jaeger if store.jaeger is not None else store.tempo or ""
    with (
        fetching_on(at) as progress,
        TraceApi(url, headers, progress) as api,
        path.open("wb") as file,
    ):
        if store.jaeger is not None:
            fetch_from_jaeger(api, query, file)
            return api.name
        left_out = fetch_from_tempo(api, query, file)
    if left_out:
        at.print(f"{left_out} traces left out: Tempo had lost them, or cut them.", style="yellow")
    return api.name


def with_names(analysis: Analysis, names: Mapping[Path, str]) -> Analysis:
    """Call what was fetched by the name of its store, for nobody knows the file."""
    known = {str(path): name for path, name in names.items()}
    return replace(
        analysis,
        files={known.get(each, each): spans for each, spans in analysis.files.items()},
        unread={known.get(each, each): reason for each, reason in analysis.unread.items()},
    )


def warn_of_limits(store: TraceStore, traces: int) -> None:
    """Say where there was nothing, or where there may be more."""
    if store.jaeger is None and store.tempo is None:
        return
    if not traces:
        whose = f" of {store.service}" if store.service else ""
        typer.echo(f"No traces{whose} in the last {store.lookback}.", err=True)
    elif traces >= store.limit:
        typer.echo(
            f"There may be more: {store.limit} traces were asked for (--limit, --lookback).",
            err=True,
        )
