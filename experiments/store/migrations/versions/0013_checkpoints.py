"""What is left of runs whose records were dropped by age, and who signed that they were."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("run_record", sa.Column("remains", sa.Text(), nullable=True))
    op.create_table(
        "checkpoint",
        sa.Column("request_class", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("request_class", "version"),
    )


def downgrade() -> None:
    op.drop_table("checkpoint")
    with op.batch_alter_table("run_record") as batch_op:
        batch_op.drop_column("remains")
