"""Each target has a delivery of its own of each notification.

What has not been delivered is dealt to the targets as soon as a process leads. Going back, what
still waits for any target is not delivered, and goes to all of them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "delivery",
        sa.Column("notification_id", sa.Integer(), nullable=False),
        sa.Column("target", sa.String(length=64), nullable=False),
        sa.Column("ended_at", sa.Float(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("notification_id", "target"),
    )
    op.create_index("delivery_by_end", "delivery", ["ended_at", "target"])


def downgrade() -> None:
    op.execute(
        "UPDATE notification SET error = (SELECT min(delivery.error) FROM delivery"
        " WHERE delivery.notification_id = notification.id)"
        " WHERE id IN (SELECT notification_id FROM delivery WHERE error IS NOT NULL)"
    )
    op.execute(
        "UPDATE notification SET delivered_at = NULL, error = NULL"
        " WHERE id IN (SELECT notification_id FROM delivery WHERE ended_at IS NULL)"
    )
    op.drop_index("delivery_by_end", table_name="delivery")
    op.drop_table("delivery")
