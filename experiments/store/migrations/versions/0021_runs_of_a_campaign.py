"""The experiments of one run are read in their order: of a run that has just begun there are none,
and all of its campaign were gone over to see that."""

from __future__ import annotations

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

NAME = "experiment_by_run"


def upgrade() -> None:
    op.drop_index(NAME, table_name="experiment")
    op.create_index(NAME, "experiment", ["campaign_id", "run", "created_at"])


def downgrade() -> None:
    op.drop_index(NAME, table_name="experiment")
    op.create_index(NAME, "experiment", ["campaign_id", "run"])
