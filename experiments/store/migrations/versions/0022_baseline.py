"""All tables as of revision 0022: new databases begin here, and no older one is brought up to date.

The 21 migrations before it stand at :data:`ldfi.experiments.store.revisions.LAST_WITH_OLDER`.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables, and the row that whoever arms locks."""
    _audit()
    _balance()
    _campaign()
    _certificate_leaf()
    _checkpoint()
    _delivery()
    _experiment()
    _finding()
    _flag()
    _idempotency()
    _injector()
    _maintenance()
    _namespace()
    _notification()
    _position()
    _pruned_tally()
    _remains()
    _replay()
    _request_class()
    _run_count()
    _run_count_node()
    _run_record()
    _tally()
    _token()
    _tree_head()
    op.execute("INSERT INTO flag (name, value) VALUES ('arming', '{}')")


def downgrade() -> None:
    """Refuse: there is nothing before."""
    raise NotImplementedError("revision 0022 is the first one")


def _audit() -> None:
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
    op.create_index("audit_by_subject", "audit", ["subject", "id"], unique=False)
    op.create_index("audit_by_time", "audit", ["at"], unique=False)


def _balance() -> None:
    op.create_table(
        "balance",
        sa.Column("campaign_id", sa.String(length=32), nullable=False),
        sa.Column("request_class", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.Column("experience", sa.JSON(), nullable=False),
        sa.Column("document", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("campaign_id", "request_class"),
    )


def _campaign() -> None:
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
        sa.Column("certificates", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("held", sa.JSON(), nullable=False),
        sa.Column("ending", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_campaign_state", "campaign", ["state"], unique=False)


def _certificate_leaf() -> None:
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


def _checkpoint() -> None:
    op.create_table(
        "checkpoint",
        sa.Column("request_class", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("request_class", "version"),
    )


def _delivery() -> None:
    op.create_table(
        "delivery",
        sa.Column("notification_id", sa.Integer(), nullable=False),
        sa.Column("target", sa.String(length=64), nullable=False),
        sa.Column("ended_at", sa.Float(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("notification_id", "target"),
    )
    op.create_index("delivery_by_end", "delivery", ["ended_at", "target"], unique=False)


def _experiment() -> None:
    op.create_table(
        "experiment",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("campaign_id", sa.String(length=32), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("request_class", sa.Text(), nullable=False),
        sa.Column("active_class", sa.Text(), nullable=True),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("hypothesis", sa.JSON(), nullable=False),
        sa.Column("tried", sa.String(length=16), nullable=True),
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
        sa.Column("draft", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("open_before", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("active_class"),
    )
    op.create_index(
        "experiment_by_campaign", "experiment", ["campaign_id", "created_at"], unique=False
    )
    op.create_index(
        "experiment_by_class", "experiment", ["request_class", "ended_at"], unique=False
    )
    op.create_index("experiment_by_creation", "experiment", ["created_at"], unique=False)
    op.create_index(
        "experiment_by_run", "experiment", ["campaign_id", "run", "created_at"], unique=False
    )
    op.create_index("experiment_by_state", "experiment", ["state", "created_at"], unique=False)
    op.create_index(
        "experiment_by_tried", "experiment", ["tried", "verdict", "ended_at"], unique=False
    )
    op.create_index("experiment_by_verdict", "experiment", ["verdict", "created_at"], unique=False)
    op.create_index(
        "experiment_of_class", "experiment", ["request_class", "created_at"], unique=False
    )
    op.create_index("ix_experiment_armed_at", "experiment", ["armed_at"], unique=False)
    op.create_index("ix_experiment_ended_at", "experiment", ["ended_at"], unique=False)


def _finding() -> None:
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
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("tracker_url", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_finding_request_class", "finding", ["request_class"], unique=False)
    op.create_index("ix_finding_state", "finding", ["state"], unique=False)


def _flag() -> None:
    op.create_table(
        "flag",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )


def _idempotency() -> None:
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
    op.create_index("ix_idempotency_at", "idempotency", ["at"], unique=False)


def _injector() -> None:
    op.create_table(
        "injector",
        sa.Column("caller", sa.String(length=255), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("caller"),
    )


def _maintenance() -> None:
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
    op.create_index("ix_maintenance_until", "maintenance", ["until"], unique=False)


def _namespace() -> None:
    op.create_table(
        "namespace",
        sa.Column("name", sa.String(length=30), nullable=False),
        sa.Column("created_by", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("max_concurrent", sa.Integer(), nullable=True),
        sa.Column("members_per_hour", sa.Integer(), nullable=True),
        sa.Column("members_per_day", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )


def _notification() -> None:
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
    op.create_index("ix_notification_delivered_at", "notification", ["delivered_at"], unique=False)


def _position() -> None:
    op.create_table(
        "position",
        sa.Column("topic", sa.String(length=255), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("next_offset", sa.BigInteger(), nullable=False),
        sa.Column("read_from", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("topic", "partition"),
    )


def _pruned_tally() -> None:
    op.create_table(
        "pruned_tally",
        sa.Column("campaign_id", sa.String(length=32), nullable=False),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=False),
        sa.Column("ended", sa.Integer(), nullable=False),
        sa.Column("armed", sa.Integer(), nullable=False),
        sa.Column("hurt", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("campaign_id", "purpose", "verdict"),
    )


def _remains() -> None:
    op.create_table(
        "remains",
        sa.Column("key", sa.String(length=32), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )


def _replay() -> None:
    op.create_table(
        "replay",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("kept_at", sa.Float(), nullable=False),
        sa.Column("kept_by", sa.String(length=64), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=True),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_replay_kept_at", "replay", ["kept_at"], unique=False)


def _request_class() -> None:
    op.create_table(
        "request_class",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("updated_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )


def _run_count() -> None:
    op.create_table(
        "run_count",
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("request_class", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("place"),
    )
    op.create_index("run_count_by_class", "run_count", ["request_class", "version"], unique=True)


def _run_count_node() -> None:
    op.create_table(
        "run_count_node",
        sa.Column("level", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("hashed", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("level", "place"),
    )


def _run_record() -> None:
    op.create_table(
        "run_record",
        sa.Column("leaf", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("experiment_id", sa.String(length=32), nullable=False),
        sa.Column("request_class", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("nodes", sa.Text(), nullable=False),
        sa.Column("remains", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("leaf"),
        sa.UniqueConstraint("experiment_id"),
    )
    op.create_index(
        "run_record_by_class", "run_record", ["request_class", "version", "number"], unique=True
    )


def _tally() -> None:
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


def _token() -> None:
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


def _tree_head() -> None:
    op.create_table(
        "tree_head",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
