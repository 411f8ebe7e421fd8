"""How many hypotheses of its campaign were open when an experiment was proposed: what a campaign's
page draws its burn-down of. Nobody knows it of the experiments of before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("experiment", sa.Column("open_before", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.drop_column("experiment", "open_before")
