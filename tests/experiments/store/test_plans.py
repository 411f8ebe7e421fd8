"""What is asked again and again costs the same after years: SQLite says how it goes about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, select

from ldfi.experiments.api.pagination import page
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.store import Database, experiments, measured
from ldfi.experiments.store.schema import ExperimentRow


@pytest.fixture
def database() -> Iterator[Database]:
    opened = Database("sqlite://")
    yield opened
    opened.close()


@contextmanager
def planned(database: Database) -> Iterator[list[str]]:
    """How everything would be gone about that is asked in the block."""
    sent: list[tuple[str, Any]] = []
    plans: list[str] = []

    def note(_c: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        sent.append((statement, parameters))

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield plans
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
    with database.engine.connect() as connection:
        for statement, parameters in sent:
            if statement.startswith("SELECT"):
                how = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                plans += [row[3] for row in how]


def test_metrics_and_a_start_do_not_read_all_experiments_there_are(database: Database) -> None:
    with planned(database) as plans, database.read() as session:
        measured.of_database(database, Limits(), 0.0)
        experiments.levels(session)

    assert any("experiment" in each for each in plans)
    assert not [each for each in plans if each.startswith("SCAN experiment")]


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"campaign_id": "c"},
        {"state": "decided"},
        {"verdict": "harmful"},
        {"request_class": "GET /"},
        {"request_class": "GET /", "verdict": "harmful"},
        {"request_class": "GET /", "state": "decided", "verdict": "harmful"},
    ],
    ids=lambda wanted: ",".join(wanted) or "all",
)
def test_a_page_of_experiments_is_read_in_its_order(
    database: Database, wanted: dict[str, str]
) -> None:
    """And not by sorting all that there are."""
    query = select(ExperimentRow).filter_by(**wanted)
    with planned(database) as plans, database.read() as session:
        page(session, query, ExperimentRow.created_at, ExperimentRow.id)

    assert any("USING INDEX experiment_" in each for each in plans)
    assert "USE TEMP B-TREE FOR ORDER BY" not in plans
