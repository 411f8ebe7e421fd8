"""Runs leave records, chained as a Merkle tree, which has a head. What ended before has none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "run_record",
        sa.Column("leaf", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("experiment_id", sa.String(length=32), nullable=False),
        sa.Column("request_class", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("nodes", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("leaf"),
        sa.UniqueConstraint("experiment_id"),
    )
    op.create_index(
        "run_record_by_class", "run_record", ["request_class", "version", "number"], unique=True
    )
    op.create_table(
        "tree_head",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )


def downgrade() -> None:
    op.drop_table("tree_head")
    op.drop_index("run_record_by_class", table_name="run_record")
    op.drop_table("run_record")
