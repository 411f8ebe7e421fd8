"""A short form of :mod:`benchmarks.years`; and its days are what the store's functions make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from benchmarks.years import measure
from benchmarks.years_filled import Years
from benchmarks.years_lived import Pattern, lived
from ldfi.experiments.store import Database
from ldfi.experiments.store.schema import Base

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def pattern() -> Pattern:
    return lived(8)


def left(database: Database) -> dict[str, list[Any]]:
    """Every row of every table."""
    with database.read() as session:
        return {
            name: sorted(map(str, session.execute(select(table)).all()))
            for name, table in Base.metadata.tables.items()
        }


def test_a_day_that_is_repeated_leaves_what_the_functions_leave(
    tmp_path: Path, pattern: Pattern
) -> None:
    databases = [Database(f"sqlite:///{tmp_path / name}") for name in ("one", "other")]
    one, other = (Years(each, [pattern], len(pattern.later), 1.7e9) for each in databases)
    for years in (one, other):
        years.day()
        years.day()
    one.quiet_day()
    one.quiet_day()
    other.day()
    other.day()

    assert left(one.database) == left(other.database)
    assert one.experiments == other.experiments
    for each in databases:
        each.close()


def test_a_month_is_filled_pruned_started_from_and_looked_at(tmp_path: Path) -> None:
    found, targets = measure(f"sqlite:///{tmp_path / 'years.sqlite3'}", 30, 5, (8,))

    by_the_clock = {"start of the service (s)", "a prune's longest transaction (s)"}
    others = {
        name: each["met"]
        for name, each in targets.items()
        if name not in by_the_clock and "(ms)" not in name
    }
    assert len(others) == len(targets) - 3
    assert all(others.values()), others
    asked = {str(row["what"]) for row in found["asked"]}
    assert {"start", "ticks", "metrics", "page experiments", "API audit", "page audit"} <= asked
