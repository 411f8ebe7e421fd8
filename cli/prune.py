"""``ldfi prune``: what is old goes, so that the database does not grow for ever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from ldfi.cli.control import AsJson
from ldfi.cli.terminal import columns, console, show
from ldfi.cli.words import when

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from ldfi.experiments.cluster.config import Config
    from ldfi.experiments.store.database import Database
    from ldfi.experiments.store.retention import Pruned, Retention, Told

WHO: Final = "ldfi prune"
"""Who the audit names."""
DAY: Final = 86_400.0

Days = Annotated[
    int | None, typer.Option(min=1, help="Days, instead of what the configuration says.")
]


def prune(
    keep_audit_days: Days = None,
    keep_details_days: Days = None,
    keep_lessons_days: Days = None,
    keep_runs_days: Days = None,
    keep_experiments_days: Days = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would go.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete old records that no finding or certificate needs.

    That is audit, notifications, details of experiments and at last their rows, which stay
    counted. Results are folded into what they came to; of records of runs their hashes stay.
    """
    from ldfi.experiments.cluster.config import Config
    from ldfi.experiments.store.database_errors import explained
    from ldfi.experiments.telemetry import clock

    config = Config.load(
        keep_audit_days=keep_audit_days,
        keep_details_days=keep_details_days,
        keep_lessons_days=keep_lessons_days,
        keep_runs_days=keep_runs_days,
        keep_experiments_days=keep_experiments_days,
    )
    _need_driver(config)
    now = clock.now()
    results, runs, experiments = (
        now - days * DAY
        for days in (config.keep_lessons_days, config.keep_runs_days, config.keep_experiments_days)
    )
    bounds = _Bounds(now, results, runs, experiments)
    with explained(config.database_url.get_secret_value()):
        found = _foreseen(config, bounds) if dry_run else _done(config, bounds)
    _show(_summed(found), dry_run=dry_run, as_json=as_json)


class _Bounds(NamedTuple):
    """Which moment it is, and before which details go (Unix seconds)."""

    now: float
    results: float
    runs: float
    experiments: float


def _foreseen(config: Config, bounds: _Bounds) -> list[Pruned]:
    """Count what would go, in all namespaces."""
    from ldfi.experiments.store import namespaces
    from ldfi.experiments.store.readonly import as_it_is

    url = config.database_url.get_secret_value()
    with as_it_is(url) as session:
        found = _due(session, config, bounds)
        others = [each.name for each in namespaces.listed(session)]
    for name in others:
        with as_it_is(*namespaces.place(url, name)) as session:
            found += _due(session, config, bounds, name)
    return found


def _due(session: Session, config: Config, bounds: _Bounds, namespace: str = "") -> list[Pruned]:
    from ldfi.cli.signing import signing
    from ldfi.experiments.scheduler import compaction
    from ldfi.experiments.store import checkpoints, prune_experiments, retention
    from ldfi.experiments.store.retention import Pruned

    found = retention.due(session, _retention(config, namespace), bounds.now)
    compacted = compaction.foreseen(session, bounds.results, bounds.now)
    records = checkpoints.going(
        session, signing(config), bounds.runs, compacted.going, compacted.stands
    )
    gone = prune_experiments.old(session, bounds.experiments, compacted.going, {*records})
    return [
        *found,
        compacted.results,
        Pruned(checkpoints.WHAT, len(records), bounds.runs),
        Pruned(prune_experiments.WHAT, len(gone), bounds.experiments),
    ]


def _done(config: Config, bounds: _Bounds) -> list[Pruned]:
    """Have it go, in all namespaces."""
    from ldfi.cli.signing import signing
    from ldfi.experiments.store import namespaces
    from ldfi.experiments.store.database import Database
    from ldfi.experiments.store.readonly import must_be_there

    url = config.database_url.get_secret_value()
    must_be_there(url)
    database = Database(url, signing(config))
    try:
        found = _pruned(database, config, bounds)
        with database.read() as session:
            others = namespaces.listed(session)
        for each in others:
            store = namespaces.opened(url, database, each.name)
            try:
                found += _pruned(store, config, bounds)
            finally:
                store.close()
    finally:
        database.close()
    return found


def _pruned(database: Database, config: Config, bounds: _Bounds) -> list[Pruned]:
    from ldfi.experiments.cluster.garbage_collection import short_collections
    from ldfi.experiments.scheduler import compaction
    from ldfi.experiments.store import checkpoints, prune_experiments, retention

    keep, now = _retention(config, database.namespace), bounds.now
    with _progress() as told, short_collections():
        with database.read() as session:
            plan = retention.planned(session, keep, now)
        # first, or details would be taken out of results that go at once
        compacted = compaction.compact(database, bounds.results, now, WHO, told)
        found = [
            *retention.prune(database, keep, now, WHO, told, plan),
            compacted,
            checkpoints.prune(database, bounds.runs, now, WHO, told),
            prune_experiments.prune(database, bounds.experiments, now, WHO, told),
        ]
    database.shrink()
    return found


def _summed(found: list[Pruned]) -> list[Pruned]:
    """Add up what went of each sort, whichever namespace it was of."""
    total: dict[str, Pruned] = {}
    for each in found:
        before = total.get(each.what)
        total[each.what] = each if before is None else replace(each, rows=each.rows + before.rows)
    return list(total.values())


def _need_driver(config: Config) -> None:
    from ldfi.cli.extras import need

    if config.database_url.get_secret_value().startswith("postgresql"):
        need("postgresql")


def _retention(config: Config, namespace: str) -> Retention:
    from ldfi.experiments.store.retention import Retention
    from ldfi.experiments.streams.stream import Topics

    topics = Topics(config.kafka_prefix).of_namespace(namespace)
    return Retention(
        audit=config.keep_audit_days * DAY,
        details=config.keep_details_days * DAY,
        events=topics.events if config.kafka else "",
    )


@contextmanager
def _progress() -> Iterator[Told]:
    """Show on the terminal how far it is; gone when it is over."""
    from rich.progress import Progress

    with Progress(console=console(stderr=True), transient=True) as bar:
        tasks = {}

        def told(found: Pruned, gone: int) -> None:
            if found.what not in tasks:
                tasks[found.what] = bar.add_task(found.what, total=found.rows)
            bar.update(tasks[found.what], completed=gone)

        yield told


def _show(found: list[Pruned], *, dry_run: bool, as_json: bool) -> None:
    table = columns("what", "would go" if dry_run else "gone", "older than")
    for each in found:
        table.add_row(each.what, str(each.rows), when(each.before))
    document = {
        "dry_run": dry_run,
        "pruned": [{"what": e.what, "rows": e.rows, "before": e.before} for e in found],
    }
    show(document, table, as_json=as_json)
