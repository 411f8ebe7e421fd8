"""``ldfi prune``: what is old goes, so that the database does not grow for ever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ldfi.experiments.cli.control import AsJson
from ldfi.experiments.cli.terminal import columns, console, show
from ldfi.experiments.cli.words import when

if TYPE_CHECKING:
    from ldfi.experiments.process.config import Config
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
    """Drop what is old, and nothing that anything rests on.

    That is audit, notifications, details of experiments and at last their rows, which stay
    counted. Lessons are folded into what they came to; of records of runs their hashes stay.
    """
    from ldfi.experiments.cli.signing import signing
    from ldfi.experiments.control import folding
    from ldfi.experiments.process.config import Config
    from ldfi.experiments.store import bygone, checkpoints, retention
    from ldfi.experiments.store.database import Database
    from ldfi.experiments.store.found import as_it_is, must_be_there
    from ldfi.experiments.store.retention import Pruned
    from ldfi.experiments.telemetry import clock

    config = Config.load(
        keep_audit_days=keep_audit_days,
        keep_details_days=keep_details_days,
        keep_lessons_days=keep_lessons_days,
        keep_runs_days=keep_runs_days,
        keep_experiments_days=keep_experiments_days,
    )
    keep, now = _retention(config), clock.now()
    lessons, runs, experiments = (
        now - days * DAY
        for days in (config.keep_lessons_days, config.keep_runs_days, config.keep_experiments_days)
    )
    url, keys = config.database_url.get_secret_value(), signing(config)
    if dry_run:
        with as_it_is(url) as session:
            found = retention.due(session, keep, now)
            folded = folding.foreseen(session, lessons, now)
            records = checkpoints.going(session, keys, runs, folded.going, folded.stands)
            gone = bygone.old(session, experiments, folded.going, {*records})
        found += [
            folded.lessons,
            Pruned(checkpoints.WHAT, len(records), runs),
            Pruned(bygone.WHAT, len(gone), experiments),
        ]
    else:
        must_be_there(url)
        database = Database(url, keys)
        try:
            with _progress() as told:
                found = retention.prune(database, keep, now, WHO, told)
                found.append(folding.fold(database, lessons, now, WHO, told))
                found.append(checkpoints.prune(database, runs, now, WHO, told))
                found.append(bygone.prune(database, experiments, now, WHO, told))
            database.shrink()
        finally:
            database.close()
    _show(found, dry_run=dry_run, as_json=as_json)


def _retention(config: Config) -> Retention:
    from ldfi.experiments.cli.extras import need
    from ldfi.experiments.store.retention import Retention
    from ldfi.experiments.streams.stream import Topics

    if config.database_url.get_secret_value().startswith("postgresql"):
        need("postgresql")
    return Retention(
        audit=config.keep_audit_days * DAY,
        details=config.keep_details_days * DAY,
        events=Topics(config.kafka_prefix).events if config.kafka else "",
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
    table = columns("what", "would go" if dry_run else "gone", "older than (UTC)")
    for each in found:
        table.add_row(each.what, str(each.rows), when(each.before))
    document = {
        "dry_run": dry_run,
        "pruned": [{"what": e.what, "rows": e.rows, "before": e.before} for e in found],
    }
    show(document, table, as_json=as_json)
