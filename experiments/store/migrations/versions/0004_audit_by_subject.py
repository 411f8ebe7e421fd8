"""What was done to one thing is found without reading all of the audit."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("audit_by_subject", "audit", ["subject", "id"])


def downgrade() -> None:
    op.drop_index("audit_by_subject", table_name="audit")
