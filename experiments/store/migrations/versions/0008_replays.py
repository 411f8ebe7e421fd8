"""What came of replays is kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "replay",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("kept_at", sa.Float(), nullable=False),
        sa.Column("kept_by", sa.String(length=64), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=True),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_replay_kept_at", "replay", ["kept_at"])


def downgrade() -> None:
    op.drop_index("ix_replay_kept_at", table_name="replay")
    op.drop_table("replay")
