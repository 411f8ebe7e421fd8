"""How experiments of campaigns have ended, counted as they end."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tally",
        sa.Column("campaign_id", sa.String(length=32), nullable=False),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=False),
        sa.Column("ended", sa.Integer(), nullable=False),
        sa.Column("armed", sa.Integer(), nullable=False),
        sa.Column("hurt", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("campaign_id", "purpose", "verdict"),
    )
    op.execute(
        "INSERT INTO tally (campaign_id, purpose, verdict, ended, armed, hurt)"
        " SELECT campaign_id, purpose, coalesce(verdict, ''), count(*), count(armed_at),"
        " sum(members_hurt) FROM experiment WHERE ended_at IS NOT NULL"
        " GROUP BY campaign_id, purpose, coalesce(verdict, '')"
    )


def downgrade() -> None:
    op.drop_table("tally")
