"""Findings have a note and a place where people work on them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("finding", sa.Column("note", sa.Text(), nullable=True))
    op.add_column("finding", sa.Column("tracker_url", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("finding", "tracker_url")
    op.drop_column("finding", "note")
