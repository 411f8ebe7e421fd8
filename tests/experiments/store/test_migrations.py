"""Migrations make the tables that the schema describes, no more and no less."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from psycopg.rows import TupleRow
from sqlalchemy import inspect, select, text

from deploy.stack import postgresql
from ldfi.errors import Invalid
from ldfi.experiments.store import halts, revisions
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import (
    Base,
    CampaignRow,
    ExperimentRow,
    SnapshotRow,
)
from tests.kit.rows import campaign_row, experiment_row

OF_BEFORE = Path(__file__).parent / "revision-0022.sql"


def test_a_migrated_database_is_the_schema(database: Database) -> None:
    """It was made once, and is opened again."""
    with database.engine.connect() as connection:
        opts = {"compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=opts)
        assert context.get_current_revision() is not None
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


def test_a_database_of_the_migrations_before_goes_on_as_it_is(tmp_path: Path) -> None:
    """The file is what they made of an empty one, with some rows."""
    file = tmp_path / "x.sqlite3"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(OF_BEFORE.read_text(encoding="utf-8"))
        before = list(connection.iterdump())

    database = Database(f"sqlite:///{file}")
    with database.read() as session:
        assert halts.halted(session) == "of before"
        assert session.scalars(select(CampaignRow.certificates)).all() == [[{"class": "GET /"}]]
        differs = compare_metadata(MigrationContext.configure(session.connection()), Base.metadata)
    database.close()

    assert differs == []
    with closing(sqlite3.connect(file)) as connection:
        assert list(connection.iterdump()) == before


@pytest.mark.parametrize("revision", ["0001", "0021"])
def test_an_older_database_is_refused(database: Database, database_url: str, revision: str) -> None:
    def found() -> tuple[str | None, list[str]]:
        with database.engine.connect() as connection:
            return revisions.of(connection), sorted(inspect(connection).get_table_names())

    with database.engine.execution_options(writing=True).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :it"), {"it": revision})
        connection.execute(text("DROP TABLE certificate_leaf"))
    before = found()

    way_out = f"revision {revision},.* older than 0022.*commit {revisions.LAST_WITH_OLDER}"
    with pytest.raises(Invalid, match=way_out):
        Database(database_url)

    assert found() == before


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


def test_lessons_and_balances_are_small_on_sqlite(database: Database) -> None:
    # Given what was learned, in the same words over and over
    learned = {"graph": ["api>http:GET:popular/top"] * 200, "none": None}
    with database.change(1.0) as change:
        for number, result in enumerate((learned, None)):
            change.session.add(experiment_row(f"{number}", lesson=result))
        stored = {"version": 1, "run": 1, "until": 1.0, "experience": {}}
        change.session.add(
            SnapshotRow(campaign_id="", request_class="GET /", document=learned, **stored)
        )

        change.session.add(campaign_row(certificates=[learned]))

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
