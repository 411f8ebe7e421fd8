"""The namespaces beside the default one. Everything that is there already is the default one's."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "namespace",
        sa.Column("name", sa.String(30), primary_key=True),
        sa.Column("created_by", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("max_concurrent", sa.Integer(), nullable=True),
        sa.Column("members_per_hour", sa.Integer(), nullable=True),
        sa.Column("members_per_day", sa.Integer(), nullable=True),
    )


def downgrade() -> None:
    op.drop_table("namespace")
