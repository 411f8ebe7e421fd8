"""Migrations make the tables that the schema describes, no more and no less."""

from __future__ import annotations

from collections.abc import Callable

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import text

from ldfi.experiments.store import notifications
from ldfi.experiments.store.database import MIGRATIONS, Database
from ldfi.experiments.store.schema import Base


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


def step(database: Database, go: Callable[[Config, str], None], revision: str) -> None:
    """Bring the database to another revision."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with database.engine.execution_options(writing=True).begin() as connection:
        config.attributes["connection"] = connection
        go(config, revision)
