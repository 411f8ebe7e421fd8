"""How many runs there are of each class version, and the tree over these counts.

Both are filled when the next run ends, from the head that is on record.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "run_count",
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("request_class", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("place"),
    )
    op.create_index("run_count_by_class", "run_count", ["request_class", "version"], unique=True)
    op.create_table(
        "run_count_node",
        sa.Column("level", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("hashed", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("level", "place"),
    )


def downgrade() -> None:
    op.drop_table("run_count_node")
    op.drop_index("run_count_by_class", table_name="run_count")
    op.drop_table("run_count")
