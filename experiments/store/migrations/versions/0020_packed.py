"""Lessons, balances and certificates are held compressed on SQLite, from when they are next
written on."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

from ldfi.experiments.store.compressed import unpack

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

AT_ONCE = 500


def upgrade() -> None:
    """Text is read as well; a version before cannot read what is packed, so it must not start."""


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _unpack(sa.table("experiment", sa.column("lesson")))
        _unpack(sa.table("campaign", sa.column("certificates")))
        _unpack(sa.table("balance", sa.column("document")))


def _unpack(table: sa.TableClause) -> None:
    connection = op.get_bind()
    rowid: sa.ColumnElement[int] = sa.literal_column("rowid")
    (packed,) = table.c
    query = sa.select(rowid, packed).where(sa.func.typeof(packed) == "blob").limit(AT_ONCE)
    while rows := connection.execute(query).all():
        changed = [{"its": row, "text": json.dumps(unpack(held))} for row, held in rows]
        one = sa.update(table).where(rowid == sa.bindparam("its"))
        connection.execute(one.values({packed: sa.bindparam("text")}), changed)
