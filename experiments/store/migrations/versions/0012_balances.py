"""What was learned up to some moment, in one row, so that a start need not read every lesson.

The experiments of a run of a campaign are found by an index of their own: it is asked whenever one
is armed, and had to read all that a campaign ever made.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "balance",
        sa.Column("campaign_id", sa.String(length=32), nullable=False),
        sa.Column("request_class", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.Column("experience", sa.JSON(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("campaign_id", "request_class"),
    )
    op.create_index("experiment_by_run", "experiment", ["campaign_id", "run"])
    op.drop_index("ix_experiment_campaign_id", table_name="experiment")


def downgrade() -> None:
    op.create_index("ix_experiment_campaign_id", "experiment", ["campaign_id"])
    op.drop_index("experiment_by_run", table_name="experiment")
    op.drop_table("balance")
