"""What is asked again and again costs the same after years: SQLite says how it goes about it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, select

from ldfi.checker import merkle
from ldfi.experiments.api.pagination import page
from ldfi.experiments.api.was_it_us import armed
from ldfi.experiments.domain.campaign.fault_history import Experience
from ldfi.experiments.domain.campaign.snapshot import Snapshot
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.store import Database, experiments, findings, metrics, snapshots
from ldfi.experiments.store.certificates import CampaignCertificate
from ldfi.experiments.store.evidence_file import evidence_file
from ldfi.experiments.store.schema import ExperimentRow, FindingRow
from tests.checker.chain import chain as made_of
from tests.experiments.store.evidence import append


@pytest.fixture
def database() -> Iterator[Database]:
    opened = Database("sqlite://")
    yield opened
    opened.close()


@contextmanager
def asked(database: Database) -> Iterator[list[tuple[str, Any]]]:
    """Every statement of the block, with its parameters."""
    sent: list[tuple[str, Any]] = []

    def note(_c: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        sent.append((statement, parameters))

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(database.engine, "before_cursor_execute", note)


@contextmanager
def planned(database: Database) -> Iterator[list[str]]:
    """How everything would be gone about that is asked in the block."""
    plans: list[str] = []
    with asked(database) as sent:
        yield plans
    with database.engine.connect() as connection:
        for statement, parameters in sent:
            if statement.startswith("SELECT"):
                how = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                plans += [row[3] for row in how]


def test_metrics_and_a_start_do_not_read_all_experiments_there_are(database: Database) -> None:
    with planned(database) as plans, database.read() as session:
        metrics.of_database(database, Limits(), 0.0)
        experiments.levels(session)

    assert any("experiment" in each for each in plans)
    assert not [each for each in plans if each.startswith("SCAN experiment")]


@pytest.mark.parametrize("name", [None, "GET /boot"])
def test_what_was_armed_in_a_window_is_not_sorted(database: Database, name: str | None) -> None:
    with planned(database) as plans, database.read() as session:
        armed(session, 0.0, 1e12, name, None, 25)

    assert plans[0].startswith("SEARCH experiment USING INDEX ix_experiment_armed_at")
    assert "USE TEMP B-TREE FOR ORDER BY" not in plans


@pytest.mark.parametrize("most", [None, 20])
def test_what_was_taught_is_looked_up_by_class(database: Database, most: int | None) -> None:
    with database.change(1.0) as change:
        for name in ("GET /a", "GET /b"):
            stored = snapshots.StoredSnapshot(1, 0, 100.0, Experience(), Snapshot())
            snapshots.save(change, snapshots.ALL, {name: stored})
    with planned(database) as plans, database.read() as session:
        snapshots.of_classes(session, ["GET /a", "GET /b", "GET /new"], most)

    assert any("experiment_by_class (request_class=? AND ended_at>?" in each for each in plans)
    assert not [each for each in plans if each.startswith("SCAN experiment")]
    assert not [each for each in plans if "experiment_by_state" in each]


def test_experiments_of_a_run_without_any_are_not_sought_among_all(database: Database) -> None:
    row = ExperimentRow
    mine = select(row).where(row.campaign_id == "c", row.run == 7)
    with planned(database) as plans, database.read() as session:
        session.scalars(mine.order_by(row.created_at.desc(), row.id.desc()).limit(50)).all()

    assert any("experiment_by_run (campaign_id=? AND run=?)" in each for each in plans)


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
def test_a_page_of_experiments_is_read_in_order(database: Database, wanted: dict[str, str]) -> None:
    """And not by sorting all that there are."""
    query = select(ExperimentRow).filter_by(**wanted)
    with planned(database) as plans, database.read() as session:
        page(session, query, ExperimentRow.created_at, ExperimentRow.id)

    assert any("USING INDEX experiment_" in each for each in plans)
    assert "USE TEMP B-TREE FOR ORDER BY" not in plans


def test_what_shows_a_finding_best_is_found_without_reading_all(database: Database) -> None:
    finding = FindingRow(id="f", request_class="GET /", faults=["error@a"], experiment_id="e")
    with planned(database) as plans, database.read() as session:
        findings.proofs(session, [finding])

    assert any("INDEX experiment_by_tried (tried=? AND verdict=?)" in each for each in plans)
    assert not [each for each in plans if each.startswith("SCAN experiment")]
    assert not [each for each in plans if "experiment_by_verdict" in each]


def test_proofs_of_many_runs_are_looked_up_in_one_question(database: Database) -> None:
    made = made_of(random.Random(4), 37)
    with database.change(made.head().time) as change:
        append(change, made.records)
    certified = [CampaignCertificate("c", name, version, {}) for name, version in made.head().runs]
    with asked(database) as sent, database.read() as session:
        document = evidence_file(session, certified, (), made.head().time)

    assert sum(each.startswith("SELECT run_record.leaf, run_record.nodes") for each, _ in sent) == 1
    proved = [each for one in document["classes"] for each in one["runs"]]
    assert len(proved) == len(made.records)
    root = made.head().root
    for each in proved:
        path, hashed = map(bytes.fromhex, each["path"]), made.records[each["index"]].leaf
        assert merkle.included(hashed, each["index"], len(proved), list(path), root)
