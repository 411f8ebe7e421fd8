"""``python -m benchmarks.years [--json]``: three years of 500 experiments a day, and what is left.

The database is filled by the store's own functions (:mod:`benchmarks.years_filled`) with what
campaigns in a small world put on record of thirty classes of 8, 24 and 60 points
(:mod:`benchmarks.years_lived`), and ``ldfi prune`` runs in between with what it keeps by default.
Then a service starts from it, and pages, lists, metrics and ticks are asked for, each statement
timed (:mod:`benchmarks.years_asked`). Clocks are told what time it is: the last day ends now.

SQLite, in a file; ``--database URL`` for an empty database of PostgreSQL. ``--days 30``: a month.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, event, text

from benchmarks.outcome import Row, Target, at_least, at_most, say
from benchmarks.years_asked import visit, watched
from benchmarks.years_filled import DAY, Years
from benchmarks.years_lived import lived
from ldfi.experiments.cluster.config import Config
from ldfi.experiments.cluster.garbage import short_collections
from ldfi.experiments.scheduler import compaction
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store import checkpoints, prune_experiments
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.retention import Retention, planned, prune

A_DAY: Final = 500
CLASSES: Final = (8, 24, 8, 24, 60) * 6
"""Points of each class."""
PRUNED: Final = 30
"""Days from one prune to the next, but for the last days: then it runs each day."""
DAILY: Final = 5
"""So many last days."""
KEPT: Final = Config.model_fields


def prune_all(database: Database, now: float) -> dict[str, float]:
    """Prune with the defaults, as the command does; the seconds of each part."""

    def days(name: str) -> float:
        return float(KEPT[name].default) * DAY

    keep = Retention(audit=days("keep_audit_days"), details=days("keep_details_days"))
    times = [time.perf_counter()]
    with database.read() as session:
        plan = planned(session, keep, now)
    compaction.compact(database, now - days("keep_lessons_days"), now, "ldfi prune")
    times.append(time.perf_counter())
    prune(database, keep, now, "ldfi prune", plan=plan)
    times.append(time.perf_counter())
    checkpoints.prune(database, now - days("keep_runs_days"), now, "ldfi prune")
    times.append(time.perf_counter())
    prune_experiments.prune(database, now - days("keep_experiments_days"), now, "ldfi prune")
    times.append(time.perf_counter())
    database.shrink()
    times.append(time.perf_counter())
    parts = ("lessons", "what is old", "records of runs", "experiments", "free pages")
    return {name: end - begin for name, (begin, end) in zip(parts, pairwise(times), strict=True)}


@dataclass(slots=True)
class Longest:
    """The longest transaction so far that writes (seconds)."""

    seconds: float = 0.0


@contextmanager
def transactions(database: Database) -> Iterator[Longest]:
    """Time transactions that write: others wait for them."""
    longest, began = Longest(), dict[int, float]()

    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get("writing"):
            began[id(connection)] = time.perf_counter()

    def end(connection: Connection) -> None:
        if (at := began.pop(id(connection), None)) is not None:
            longest.seconds = max(longest.seconds, time.perf_counter() - at)

    event.listen(database.engine, "begin", begin)
    event.listen(database.engine, "commit", end)
    try:
        yield longest
    finally:
        event.remove(database.engine, "begin", begin)
        event.remove(database.engine, "commit", end)


def known(database: Database, now: float) -> list[Any]:
    """List what whoever starts from here knows and would try next, and the certificates."""
    engine = Engine(database, now=now)
    campaigns = list(engine.scheduler.state.campaigns.values())
    return [
        *(engine.scheduler.certificates(each) for each in campaigns),
        *(
            (name, each.plan(), each.states, each.knowledge.hurt, each.to_verify)
            for campaign in campaigns
            for name, each in sorted(campaign.explorations.items())
        ),
    ]


def megabytes(database: Database) -> float:
    """Return how large it is, what is free within included."""
    with database.read() as session:
        if database.engine.dialect.name == "postgresql":
            size = session.scalar(text("SELECT pg_database_size(current_database())"))
        else:
            pages = session.scalar(text("PRAGMA page_count"))
            size = int(pages or 0) * int(session.scalar(text("PRAGMA page_size")) or 0)
    return int(size or 0) / 1e6


def tables(database: Database) -> list[Row]:
    """Return which tables and indices take the most; nothing where the database does not tell."""
    if database.engine.dialect.name == "postgresql":
        query = (
            "SELECT relname, pg_relation_size(oid) + coalesce(pg_relation_size(reltoastrelid), 0) "
            "AS bytes FROM pg_class WHERE relkind IN ('r', 'i') ORDER BY bytes DESC LIMIT 12"
        )
    else:
        query = "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 12"
    with database.read() as session:
        return [
            {"table or index": name, "megabytes": size / 1e6}
            for name, size in session.execute(text(query))
        ]


def filled(database: Database, days: int, a_day: int, sizes: Sequence[int]) -> tuple[Years, Row]:
    """Fill a database and prune it now and then; what that took."""
    began = time.perf_counter()
    patterns = {points: lived(points) for points in sorted(set(sizes))}
    years = Years(database, [patterns[each] for each in sizes], a_day, time.time() - days * DAY)
    pruned = 0.0
    with short_collections():
        while years.days < days:
            years.day()
            if years.days % PRUNED == 0 or days - DAILY <= years.days < days:
                at = time.perf_counter()
                prune_all(database, years.now)
                pruned += time.perf_counter() - at
    took = time.perf_counter() - began
    return years, {"experiments": years.experiments, "filled in (s)": took, "pruned (s)": pruned}


def measure(
    url: str, days: int, a_day: int = A_DAY, sizes: Sequence[int] = CLASSES
) -> tuple[dict[str, list[Row]], dict[str, Target]]:
    """Fill a database and ask it; what was measured, and held against the targets."""
    database = Database(url)
    try:
        years, filling = filled(database, days, a_day, sizes)
        before = known(database, years.now)
        with transactions(database) as longest:
            parts = prune_all(database, years.now)
        same = known(database, years.now) == before
        size, largest = megabytes(database), tables(database)
    finally:
        database.close()
    with watched() as watch:
        watch.what = "start"
        at = time.perf_counter()
        database = Database(url)
        engine = Engine(database, now=years.now)
        start = time.perf_counter() - at
        explored = sum(len(each.explorations) for each in engine.scheduler.state.campaigns.values())
        took = visit(url, watch)
    slowest = watch.slowest(database)
    database.close()
    worst = max(slowest.values(), key=lambda each: each.milliseconds)
    tables_of: dict[str, list[Row]] = {
        "filled": [{**filling, "kB an experiment": 1e3 * size / years.experiments}],
        "tables": largest,
        "the last prune": [{"part": name, "seconds": each} for name, each in parts.items()],
        "asked": [
            {
                "what": what,
                "seconds": took.get(what),
                "slowest statement (ms)": each.milliseconds,
                "statement": each.statement,
            }
            for what, each in sorted(slowest.items(), key=lambda item: -item[1].milliseconds)
        ],
    }
    return tables_of, {
        "experiments": at_least(years.experiments, days * a_day),
        "database (MB)": at_most(size, 500.0),
        "start of the service (s)": at_most(start, 3.0),
        f"slowest query (ms), of {worst.what}": at_most(worst.milliseconds, 50.0),
        "classes explored after the start": at_least(explored, len(sizes)),
        "known after folding and a restart is what was known before": at_least(int(same), 1),
        "a prune's longest transaction (s)": at_most(longest.seconds, 1.0),
    }


def main() -> None:
    """Measure, and say so; exit code 1 where a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.years", description=__doc__)
    parser.add_argument("--json", action="store_true", help="say it as JSON")
    parser.add_argument("--days", type=int, default=3 * 365)
    parser.add_argument("--database", metavar="URL", help="an empty database")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.database or f"sqlite:///{Path(folder) / 'years.sqlite3'}"
        found, targets = measure(url, given.days)
    raise SystemExit(0 if say(found, targets, as_json=given.json) else 1)


if __name__ == "__main__":
    main()
