"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("who", sa.String(length=64), nullable=False),
        sa.Column("what", sa.String(length=64), nullable=False),
        sa.Column("subject", sa.String(length=64), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("audit", schema=None) as batch_op:
        batch_op.create_index("audit_by_time", ["at"], unique=False)

    op.create_table(
        "campaign",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("created_by", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("run_started_at", sa.Float(), nullable=True),
        sa.Column("next_run_at", sa.Float(), nullable=True),
        sa.Column("ended_at", sa.Float(), nullable=True),
        sa.Column("certificates", sa.JSON(), nullable=False),
        sa.Column("held", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("campaign", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_campaign_state"), ["state"], unique=False)

    op.create_table(
        "experiment",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("campaign_id", sa.String(length=32), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("request_class", sa.Text(), nullable=False),
        sa.Column("active_class", sa.Text(), nullable=True),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("hypothesis", sa.JSON(), nullable=False),
        sa.Column("faults", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("risk", sa.Float(), nullable=False),
        sa.Column("approved_by", sa.String(length=64), nullable=True),
        sa.Column("level", sa.Float(), nullable=True),
        sa.Column("allocation", sa.JSON(), nullable=False),
        sa.Column("members_reserved", sa.Integer(), nullable=False),
        sa.Column("members_charged", sa.Integer(), nullable=False),
        sa.Column("members_hurt", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("armed_at", sa.Float(), nullable=True),
        sa.Column("lease_until", sa.Float(), nullable=True),
        sa.Column("ended_at", sa.Float(), nullable=True),
        sa.Column("comparison", sa.JSON(), nullable=False),
        sa.Column("lesson", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("active_class"),
    )
    with op.batch_alter_table("experiment", schema=None) as batch_op:
        batch_op.create_index("experiment_by_class", ["request_class", "ended_at"], unique=False)
        batch_op.create_index(batch_op.f("ix_experiment_armed_at"), ["armed_at"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_experiment_campaign_id"), ["campaign_id"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_experiment_ended_at"), ["ended_at"], unique=False)
        batch_op.create_index(batch_op.f("ix_experiment_state"), ["state"], unique=False)

    op.create_table(
        "finding",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("request_class", sa.Text(), nullable=False),
        sa.Column("faults", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("found_at", sa.Float(), nullable=False),
        sa.Column("verified_at", sa.Float(), nullable=True),
        sa.Column("campaign_id", sa.String(length=32), nullable=False),
        sa.Column("experiment_id", sa.String(length=32), nullable=False),
        sa.Column("traces", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("finding", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_finding_request_class"), ["request_class"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_finding_state"), ["state"], unique=False)

    op.create_table(
        "flag",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "idempotency",
        sa.Column("caller", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=128), nullable=False),
        sa.Column("request", sa.String(length=64), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("answer", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("caller", "key"),
    )
    with op.batch_alter_table("idempotency", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_idempotency_at"), ["at"], unique=False)

    op.create_table(
        "maintenance",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("down", sa.JSON(), nullable=False),
        sa.Column("opened_at", sa.Float(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.Column("closed_at", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("maintenance", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_maintenance_until"), ["until"], unique=False)

    op.create_table(
        "notification",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("event", sa.String(length=32), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("delivered_at", sa.Float(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("notification", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_notification_delivered_at"), ["delivered_at"], unique=False
        )

    op.create_table(
        "request_class",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("updated_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "token",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("created_by", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("expires_at", sa.Float(), nullable=True),
        sa.Column("revoked", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    op.execute("INSERT INTO flag (name, value) VALUES ('arming', '{}')")


def downgrade() -> None:
    op.drop_table("token")
    op.drop_table("request_class")
    with op.batch_alter_table("notification", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_notification_delivered_at"))

    op.drop_table("notification")
    with op.batch_alter_table("maintenance", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_maintenance_until"))

    op.drop_table("maintenance")
    with op.batch_alter_table("idempotency", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_idempotency_at"))

    op.drop_table("idempotency")
    op.drop_table("flag")
    with op.batch_alter_table("finding", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_finding_state"))
        batch_op.drop_index(batch_op.f("ix_finding_request_class"))

    op.drop_table("finding")
    with op.batch_alter_table("experiment", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_experiment_state"))
        batch_op.drop_index(batch_op.f("ix_experiment_ended_at"))
        batch_op.drop_index(batch_op.f("ix_experiment_campaign_id"))
        batch_op.drop_index(batch_op.f("ix_experiment_armed_at"))
        batch_op.drop_index("experiment_by_class")

    op.drop_table("experiment")
    with op.batch_alter_table("campaign", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_campaign_state"))

    op.drop_table("campaign")
    with op.batch_alter_table("audit", schema=None) as batch_op:
        batch_op.drop_index("audit_by_time")

    op.drop_table("audit")
