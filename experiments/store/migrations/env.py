"""How Alembic runs our migrations: on the connection it is given, in that transaction."""

from __future__ import annotations

from alembic import context

from ldfi.experiments.store.schema import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
    compare_type=True,
)
context.run_migrations()
