"""Migrations make the tables that the schema describes, no more and no less."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from psycopg.rows import TupleRow
from sqlalchemy import TextClause, select, text

from deploy.stack import postgresql
from ldfi.experiments.store import notifications, revisions
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import (
    Base,
    CampaignRow,
    ExperimentRow,
    FindingRow,
    SnapshotRow,
    finding_id,
)


def test_a_migrated_database_is_the_schema(database: Database) -> None:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, Base.metadata) == []


def test_a_difference_would_be_noticed(database: Database) -> None:
    """Or the test above would be worth nothing."""
    with database.engine.connect() as connection:
        connection.exec_driver_sql("ALTER TABLE finding ADD COLUMN extra INTEGER")
        connection.exec_driver_sql("DROP INDEX audit_by_time")
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        noticed = {each[0] for each in compare_metadata(context, Base.metadata)}
        connection.rollback()

    assert noticed == {"remove_column", "add_index"}


def test_opening_it_again_changes_nothing(database_url: str) -> None:
    Database(database_url).close()
    again = Database(database_url)
    with again.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert context.get_current_revision() is not None
        assert compare_metadata(context, Base.metadata) == []
    again.close()


@pytest.fixture
def new(postgresql_server: postgresql.Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a database without tables, of which answers are waited for a second."""
    monkeypatch.setattr("ldfi.experiments.store.database._PATIENCE", 1)
    name = postgresql_server.create()
    yield postgresql_server.url(name)
    postgresql_server.drop(name)


def psql(url: str) -> psycopg.Connection[TupleRow]:
    return psycopg.connect(url.replace("+psycopg", "", 1))


@pytest.mark.servers
def test_whoever_starts_waits_for_whoever_migrates(new: str) -> None:
    with psql(new) as other, ThreadPoolExecutor() as threads:
        other.execute("SELECT pg_advisory_xact_lock(7215031)")
        opening = threads.submit(Database, new)
        with pytest.raises(TimeoutError):  # longer than a second
            opening.result(timeout=2.5)
        other.rollback()
        opening.result().close()


@pytest.mark.servers
def test_a_migration_may_take_longer_than_any_answer(new: str) -> None:
    with psql(new) as other:
        other.execute(
            "CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN"
            " IF to_regclass('audit') IS NULL THEN PERFORM pg_sleep(1.3); END IF; END $$"
        )
        other.execute(
            "CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('CREATE TABLE')"
            " EXECUTE FUNCTION slow()"
        )
        other.execute("ALTER FUNCTION slow() SET search_path = public")
    Database(new).close()


def test_whoever_opens_what_is_up_to_date_locks_nothing(database: Database) -> None:
    with database.change(0.0) as change:
        database.lock(change)
        if database.engine.dialect.name == "postgresql":
            change.session.execute(text("SELECT pg_advisory_xact_lock(7215031)"))
        Database(database.engine.url.render_as_string(hide_password=False)).close()


def test_what_was_not_delivered_before_targets_had_deliveries_of_their_own_is_dealt(
    database: Database,
) -> None:
    # Given a database of the version before, with something delivered, given up, and waiting
    step(database, command.downgrade, "0004")
    with database.engine.begin() as connection:
        for at, error in ((1.0, None), (2.0, "gone"), (None, None)):
            insert = text(
                "INSERT INTO notification (at, event, document, delivered_at, error)"
                " VALUES (1, 'finding', '{}', :at, :error)"
            )
            connection.execute(insert, {"at": at, "error": error})
    # When it is brought up to date and a process leads
    step(database, command.upgrade, "head")
    with database.change(9.0) as change:
        notifications.deal(change, ["one", "two"])
    # Then only what was waiting waits for each target
    with database.read() as session:
        waiting = {each: notifications.waiting(session, each) for each in ("one", "two")}
    assert {each: [row.id for row in rows] for each, rows in waiting.items()} == {
        "one": [3],
        "two": [3],
    }


def test_going_back_what_waits_for_any_target_is_not_delivered(database: Database) -> None:
    # Given one that both took, one that a target did not take, and one that waits for a target
    with database.change(1.0) as change:
        for _ in range(3):
            notifications.put(change, "finding", "title", "text")
    with database.change(2.0) as change:
        notifications.deal(change, ["one", "two"])
        for identity, target, error in (
            (1, "one", None),
            (1, "two", None),
            (2, "one", "gone"),
            (2, "two", None),
            (3, "one", "gone"),
        ):
            notifications.end_delivery(change, identity, target, error)
    # When the database goes back
    step(database, command.downgrade, "0004")
    # Then the version before knows as much as it can
    with database.engine.connect() as connection:
        query = text("SELECT delivered_at, error FROM notification ORDER BY id")
        assert [tuple(row) for row in connection.execute(query)] == [
            (2.0, None),
            (2.0, "gone"),
            (None, None),
        ]


def test_a_system_that_was_down_is_on_record_by_what_was_injected_then(database: Database) -> None:
    # Given findings of a time when a system over HTTP was down by errors
    step(database, command.downgrade, "0008")
    errors = ["error@api>http:GET:shop/a", "error@web>http:GET:shop/b"]
    queries = ["error@api>db:SELECT:db/marks", "error@web>db:SELECT:db/marks"]
    records = {"e1": (["down@shop"], errors), "e2": (["down@db"], queries), "e3": (errors[:1], [])}
    with database.engine.begin() as connection:
        for identity, (faults, injected) in records.items():
            connection.execute(*_finding(identity, faults))
            connection.execute(*_experiment(identity, injected))
    # When it is brought up to date
    step(database, command.upgrade, "head")
    # Then only what a system that is down does not mean any more is spelt out, under its own id
    with database.read() as session:
        found = {row.experiment_id: row for row in session.scalars(select(FindingRow))}
    assert found["e1"].faults == errors
    assert found["e1"].id == finding_id("GET /", errors)
    assert (found["e2"].id, found["e2"].faults) == ("e2", ["down@db"])
    assert (found["e3"].id, found["e3"].faults) == ("e3", errors[:1])


def _finding(identity: str, faults: list[str]) -> tuple[TextClause, dict[str, str]]:
    insert = text(
        "INSERT INTO finding (id, request_class, faults, state, found_at, campaign_id,"
        " experiment_id, traces) VALUES (:id, 'GET /', :faults, 'open', 1, 'c', :id, '[]')"
    )
    return insert, {"id": identity, "faults": json.dumps(faults)}


def _experiment(identity: str, faults: list[str]) -> tuple[TextClause, dict[str, str]]:
    insert = text(
        "INSERT INTO experiment (id, campaign_id, run, request_class, purpose, hypothesis, faults,"
        " state, reason, risk, allocation, members_reserved, members_charged, members_hurt,"
        " created_at, comparison) VALUES (:id, 'c', 1, 'GET /', 'explore', '[]', :faults, 'ended',"
        " '', 0, '{}', 0, 0, 0, 1, '{}')"
    )
    return insert, {"id": identity, "faults": json.dumps(faults)}


def step(database: Database, go: Callable[[Config, str], None], revision: str) -> None:
    """Bring the database to another revision."""
    config = revisions.alembic()
    with database.engine.execution_options(writing=True).begin() as connection:
        config.attributes["connection"] = connection
        go(config, revision)


def test_lessons_and_balances_are_small_on_sqlite_and_an_older_version_can_read_them(
    database: Database,
) -> None:
    # Given what was learned, in the same words over and over
    learned = {"graph": ["api>http:GET:popular/top"] * 200, "none": None}
    with database.change(1.0) as change:
        mine = {"campaign_id": "c", "request_class": "GET /", "faults": [], "hypothesis": []}
        rest = {"purpose": "explore", "state": "decided", "created_at": 1.0, "lease_until": 1.0}
        for number, result in enumerate((learned, None)):
            change.session.add(ExperimentRow(id=f"{number}", lesson=result, **mine, **rest))
        stored = {"version": 1, "run": 1, "until": 1.0, "experience": {}}
        change.session.add(
            SnapshotRow(campaign_id="", request_class="GET /", document=learned, **stored)
        )

        change.session.add(
            CampaignRow(
                id="c", state="finished", definition={}, created_at=1.0, certificates=[learned]
            )
        )

    def written() -> list[str | bytes | None]:
        with database.engine.connect() as connection:
            results = connection.execute(text("SELECT lesson FROM experiment ORDER BY id"))
            documents = connection.execute(text("SELECT document FROM balance"))
            certificates = connection.execute(text("SELECT certificates FROM campaign"))
            return [*results.scalars(), *documents.scalars(), *certificates.scalars()]

    def read() -> list[object]:
        with database.read() as session:
            results = session.scalars(select(ExperimentRow.lesson).order_by(ExperimentRow.id))
            certificates = session.scalars(select(CampaignRow.certificates))
            return [*results, *session.scalars(select(SnapshotRow.document)), *certificates]

    assert read() == [learned, None, learned, [learned]]
    if database.engine.dialect.name == "sqlite":
        assert max(len(each or "") for each in written()) < 200
    # When a version before is to read it
    step(database, command.downgrade, "0019")
    # Then it is text, or JSON
    texts = [json.loads(each) if isinstance(each, str) else each for each in written()]
    assert texts == [learned, None, learned, [learned]]
    # And so does this one
    step(database, command.upgrade, "head")
    assert read() == [learned, None, learned, [learned]]
