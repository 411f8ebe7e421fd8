"""Migrations make the tables that the schema describes, no more and no less."""

from __future__ import annotations

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from ldfi.experiments.store.database import Database
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
