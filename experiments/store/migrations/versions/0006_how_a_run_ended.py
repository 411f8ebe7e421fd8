"""A campaign's record says how its last run ended, and what that left open."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("campaign", sa.Column("ending", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("campaign", "ending")
