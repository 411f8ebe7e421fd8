"""Lists of experiments, newest first, are read in their order, whatever they are cut down to."""

from __future__ import annotations

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

INDICES = {
    "experiment_by_creation": ["created_at"],
    "experiment_by_campaign": ["campaign_id", "created_at"],
    "experiment_by_state": ["state", "created_at"],
    "experiment_by_verdict": ["verdict", "created_at"],
    "experiment_of_class": ["request_class", "created_at"],
}


def upgrade() -> None:
    for name, columns in INDICES.items():
        op.create_index(name, "experiment", columns)
    op.drop_index("ix_experiment_state", table_name="experiment")


def downgrade() -> None:
    op.create_index("ix_experiment_state", "experiment", ["state"])
    for name in INDICES:
        op.drop_index(name, table_name="experiment")
