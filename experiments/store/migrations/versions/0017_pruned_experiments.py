"""Rows of experiments are dropped by age, and counted; what many pruned runs came to is written
down once; experiments are found by what they tried."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

RUN = sa.table(
    "run_record",
    sa.column("leaf", sa.Integer),
    sa.column("number", sa.Integer),
    sa.column("nodes", sa.Text),
    sa.column("remains", sa.Text),
)
REMAINS = sa.table("remains", sa.column("key", sa.String), sa.column("document", sa.Text))
EXPERIMENT = sa.table(
    "experiment",
    sa.column("id", sa.String),
    sa.column("request_class", sa.Text),
    sa.column("hypothesis", sa.JSON),
    sa.column("tried", sa.String),
)
LOT = 1_000


def upgrade() -> None:
    op.create_table(
        "pruned_tally",
        sa.Column("campaign_id", sa.String(length=32), nullable=False),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=False),
        sa.Column("ended", sa.Integer(), nullable=False),
        sa.Column("armed", sa.Integer(), nullable=False),
        sa.Column("hurt", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("campaign_id", "purpose", "verdict"),
    )
    op.create_table(
        "remains",
        sa.Column("key", sa.String(length=32), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.add_column("experiment", sa.Column("tried", sa.String(length=16), nullable=True))
    _note_what_was_tried()
    op.create_index("experiment_by_tried", "experiment", ["tried", "verdict", "ended_at"])
    _write_down_once()


def downgrade() -> None:
    _write_down_each()
    op.drop_index("experiment_by_tried", table_name="experiment")
    with op.batch_alter_table("experiment") as batch_op:
        batch_op.drop_column("tried")
    op.drop_table("remains")
    op.drop_table("pruned_tally")


def _note_what_was_tried() -> None:
    connection = op.get_bind()
    row = EXPERIMENT.c
    _update_each(
        connection,
        EXPERIMENT.update().where(row.id == sa.bindparam("of")).values(tried=sa.bindparam("new")),
        [
            {"of": identity, "new": _finding_id(name, faults)}
            for identity, name, faults in connection.execute(
                sa.select(row.id, row.request_class, row.hypothesis)
            )
        ],
    )


def _finding_id(request_class: str, faults: list[str]) -> str:
    text = "\n".join([request_class, *sorted(faults)])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _write_down_once() -> None:
    connection, row = op.get_bind(), RUN.c
    written: dict[str, str] = {}
    changed = []
    for leaf, remains in connection.execute(
        sa.select(row.leaf, row.remains).where(row.remains.is_not(None))
    ):
        said = json.loads(remains)
        names = "verdict", "hypothesis", "fired"
        document = json.dumps({name: said[name] for name in names})
        key = hashlib.sha256(document.encode()).hexdigest()[:32]
        written[key] = document
        changed.append({"of": leaf, "new": key})
    if written:
        values = [{"key": key, "document": document} for key, document in written.items()]
        connection.execute(REMAINS.insert(), values)
    _update_each(connection, _remains(), changed)


def _write_down_each() -> None:
    connection, row = op.get_bind(), RUN.c
    query = sa.select(row.leaf, row.number, row.nodes, REMAINS.c.document)
    changed = [
        {
            "of": leaf,
            "new": json.dumps(
                {"index": leaf, "number": number, "leaf": nodes[:64], **json.loads(document)}
            ),
        }
        for leaf, number, nodes, document in connection.execute(
            query.join_from(RUN, REMAINS, REMAINS.c.key == row.remains)
        )
    ]
    _update_each(connection, _remains(), changed)


def _remains() -> sa.Update:
    chosen = RUN.update().where(RUN.c.leaf == sa.bindparam("of"))
    return chosen.values(remains=sa.bindparam("new"))


def _update_each(connection: sa.Connection, update: sa.Update, rows: list[Any]) -> None:
    for start in range(0, len(rows), LOT):
        connection.execute(update, rows[start : start + LOT])
