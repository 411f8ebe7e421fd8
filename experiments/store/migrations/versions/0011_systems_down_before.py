"""Findings of systems that were down say what was injected: errors, which over HTTP are now others.

A system that is down has its connections refused. Before, its points over HTTP had an ``error``,
for most libraries an answer 503. So that nobody takes the one for the other, such a finding lists
the faults that its experiment injected.
"""

from __future__ import annotations

import hashlib
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

FINDING = sa.table(
    "finding",
    sa.column("id", sa.String),
    sa.column("request_class", sa.Text),
    sa.column("faults", sa.JSON),
    sa.column("experiment_id", sa.String),
)
EXPERIMENT = sa.table("experiment", sa.column("id", sa.String), sa.column("faults", sa.JSON))


def upgrade() -> None:
    connection = op.get_bind()
    known = {row.id for row in connection.execute(sa.select(FINDING.c.id))}
    for row in connection.execute(sa.select(FINDING)).all():
        if not any(each.startswith("down@") for each in row.faults):
            continue
        query = sa.select(EXPERIMENT.c.faults).where(EXPERIMENT.c.id == row.experiment_id)
        injected: list[str] | None = connection.execute(query).scalar()
        if not injected or not any(map(_former, injected)):
            continue
        identity = _id(row.request_class, injected)
        if identity in known:
            continue
        known.add(identity)
        values: dict[str, Any] = {"id": identity, "faults": sorted(injected)}
        connection.execute(sa.update(FINDING).where(FINDING.c.id == row.id).values(**values))


def downgrade() -> None:
    """Leave them: they say the same."""


def _former(fault: str) -> bool:
    kind, _, point = fault.partition("@")
    return kind == "error" and point.partition(">")[2].startswith("http:")


def _id(request_class: str, faults: list[str]) -> str:
    text = "\n".join([request_class, *sorted(faults)])
    return hashlib.sha256(text.encode()).hexdigest()[:12]
