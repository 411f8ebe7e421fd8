"""Certificates are leaves of a tree of their own, whose root the head signs.

Those on record stay as they are, unsigned, until their campaigns write them again.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "certificate_leaf",
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("campaign_id", sa.String(length=32), nullable=False),
        sa.Column("request_class", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("signed_with", sa.Text(), nullable=False),
        sa.Column("hashed", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("place"),
    )
    op.create_index(
        "certificate_leaf_by_class",
        "certificate_leaf",
        ["campaign_id", "request_class"],
        unique=True,
    )


def downgrade() -> None:
    op.drop_table("certificate_leaf")
