"""Reads the database of a service, through a connection of its own, at one instant."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from ldfi.experiments.store.database import Database
from ldfi.experiments.store.schema import (
    AuditRow,
    CampaignRow,
    ExperimentRow,
    FindingRow,
    NotificationRow,
)


@dataclass(slots=True)
class Record:
    """All rows that matter. ``audit`` and ``notifications`` in their order."""

    at: float
    experiments: dict[str, ExperimentRow] = field(default_factory=dict)
    findings: dict[str, FindingRow] = field(default_factory=dict)
    campaigns: dict[str, CampaignRow] = field(default_factory=dict)
    audit: list[AuditRow] = field(default_factory=list)
    notifications: list[NotificationRow] = field(default_factory=list)


class Reader:
    """Reads the service's database, and writes nothing to it."""

    def __init__(self, url: str) -> None:
        self._database = Database(url)
        self._engine: Engine = self._database.engine
        if self._engine.dialect.name == "postgresql":  # one snapshot for all that is read at once
            self._engine = self._engine.execution_options(isolation_level="REPEATABLE READ")

    def close(self) -> None:
        """Close the connections."""
        self._database.close()

    def record(self) -> Record:
        """Return everything, as of one instant."""
        with Session(self._engine) as session:
            return Record(
                at=time.time(),
                experiments={row.id: row for row in session.scalars(select(ExperimentRow))},
                findings={row.id: row for row in session.scalars(select(FindingRow))},
                campaigns={row.id: row for row in session.scalars(select(CampaignRow))},
                audit=list(session.scalars(select(AuditRow).order_by(AuditRow.id))),
                notifications=list(
                    session.scalars(select(NotificationRow).order_by(NotificationRow.id))
                ),
            )

    def last_audit(self) -> int:
        """Return the number of the last row of the audit."""
        with Session(self._engine) as session:
            return session.scalar(select(func.max(AuditRow.id))) or 0

    def audited_since(self, number: int) -> list[str]:
        """Return what was audited after this row."""
        with Session(self._engine) as session:
            query = select(AuditRow.what).where(AuditRow.id > number)
            return list(session.scalars(query))
