"""Every change of state is one transaction, with its audit row."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Engine, create_engine, event, select
from sqlalchemy.orm import Session

from experiments.domain.campaign import Campaign
from experiments.domain.experiment import Experiment
from experiments.store.schema import (
    AuditRow,
    Base,
    CampaignRow,
    ExperimentRow,
    FindingRow,
    FlagRow,
)

SERVICE = "ldfi"
"""Who the audit names for what the service does by itself."""


def finding_id(request_class: str, faults: Iterable[str]) -> str:
    """The same failing set of the same class has the same id, whoever finds it, and when."""
    text = "\n".join([request_class, *sorted(faults)])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Store:
    """``url`` is SQLAlchemy's, for instance ``sqlite:///ldfi.sqlite3``."""

    def __init__(self, url: str) -> None:
        self._engine = create_engine(url)
        if self._engine.dialect.name == "sqlite":
            _tune_sqlite(self._engine)
        Base.metadata.create_all(self._engine)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def campaign_started(self, campaign: Campaign, who: str, now: float) -> None:
        """A campaign begins."""
        with Session(self._engine) as session, session.begin():
            session.add(
                CampaignRow(
                    id=campaign.id,
                    state=campaign.state,
                    settings=asdict(campaign.settings),
                    started_at=now,
                )
            )
            session.add(_audit(now, who, "campaign started", campaign.id))

    def campaign_ended(
        self, campaign: Campaign, certificates: Sequence[dict[str, Any]], who: str, now: float
    ) -> None:
        """A campaign is finished or stopped."""
        with Session(self._engine) as session, session.begin():
            row = session.get_one(CampaignRow, campaign.id)
            row.state, row.reason = campaign.state, campaign.reason
            row.certificates = list(certificates)
            what = f"campaign {campaign.state}"
            session.add(_audit(now, who, what, campaign.id, campaign.reason))

    def experiment_armed(self, campaign: Campaign, experiment: Experiment, now: float) -> None:
        """An experiment is about to be armed; written down before any edge hears of it."""
        with Session(self._engine) as session, session.begin():
            session.add(
                ExperimentRow(
                    id=experiment.id,
                    campaign_id=campaign.id,
                    request_class=experiment.request_class.name,
                    hypothesis=sorted(experiment.hypothesis),
                    faults=[str(fault) for fault in experiment.faults],
                    state="armed",
                    armed_at=now,
                )
            )
            session.add(_audit(now, SERVICE, "experiment armed", experiment.id))

    def experiment_ended(
        self,
        campaign: Campaign,
        experiment: Experiment,
        findings: Iterable[tuple[frozenset[str], tuple[str, ...]]],
        now: float,
    ) -> None:
        """An experiment ended; ``findings`` are those of its class as they stand now."""
        with Session(self._engine) as session, session.begin():
            row = session.get_one(ExperimentRow, experiment.id)
            row.state, row.verdict = experiment.state, experiment.verdict
            row.reason, row.ended_at = experiment.reason, now
            row.counts = counts_of(experiment)
            what = f"experiment {experiment.verdict or experiment.state}"
            session.add(_audit(now, SERVICE, what, experiment.id, experiment.reason))
            for faults, traces in findings:
                self._add_finding(session, campaign, experiment, faults, traces, now)

    def _add_finding(
        self,
        session: Session,
        campaign: Campaign,
        experiment: Experiment,
        faults: frozenset[str],
        traces: tuple[str, ...],
        now: float,
    ) -> None:
        name = experiment.request_class.name
        identity = finding_id(name, faults)
        if session.get(FindingRow, identity) is not None:
            return
        session.add(
            FindingRow(
                id=identity,
                request_class=name,
                faults=sorted(faults),
                found_at=now,
                campaign_id=campaign.id,
                experiment_id=experiment.id,
                traces=list(traces),
            )
        )
        session.add(_audit(now, SERVICE, "finding", identity, ", ".join(sorted(faults))))

    def close_leftovers(self, now: float) -> int:
        """After a crash: what was running is over, since no lease outlives the service."""
        with Session(self._engine) as session, session.begin():
            left = session.scalars(select(ExperimentRow).where(ExperimentRow.state == "armed"))
            experiments = list(left)
            for row in experiments:
                row.state, row.reason, row.ended_at = "aborted", "the service was restarted", now
                session.add(_audit(now, SERVICE, "experiment aborted", row.id, row.reason))
            running = session.scalars(select(CampaignRow).where(CampaignRow.state == "running"))
            for campaign in running:
                campaign.state, campaign.reason = "stopped", "the service was restarted"
                session.add(_audit(now, SERVICE, "campaign stopped", campaign.id, campaign.reason))
            return len(experiments)

    def set_halted(self, reason: str | None, who: str, now: float) -> None:
        """Halt everything, or with None resume."""
        with Session(self._engine) as session, session.begin():
            session.merge(FlagRow(name="halted", value={"reason": reason}))
            session.add(_audit(now, who, "halt" if reason is not None else "resume", why=reason))

    def halted(self) -> str | None:
        """Why everything is halted; None when nothing is."""
        with Session(self._engine) as session:
            row = session.get(FlagRow, "halted")
            return row.value["reason"] if row else None

    def findings(self) -> list[dict[str, Any]]:
        """Every finding, oldest first."""
        with Session(self._engine) as session:
            rows = session.scalars(select(FindingRow).order_by(FindingRow.found_at, FindingRow.id))
            return [_as_dict(row) for row in rows]

    def experiments(self, campaign_id: str) -> list[dict[str, Any]]:
        """The experiments of a campaign, oldest first."""
        query = select(ExperimentRow).where(ExperimentRow.campaign_id == campaign_id)
        with Session(self._engine) as session:
            rows = session.scalars(query.order_by(ExperimentRow.armed_at, ExperimentRow.id))
            return [_as_dict(row) for row in rows]

    def audit(self, limit: int = 100) -> list[dict[str, Any]]:
        """The newest audit rows, newest first."""
        query = select(AuditRow).order_by(AuditRow.id.desc()).limit(limit)
        with Session(self._engine) as session:
            return [_as_dict(row) for row in session.scalars(query)]


def counts_of(experiment: Experiment) -> dict[str, Any]:
    """Control against treatment, for the record and for people."""
    arms: dict[str, Any] = {
        str(name): {"devices": len(arm.devices), "failures": arm.failures}
        for name, arm in experiment.arms.items()
    }
    return {
        **arms,
        "exposed": len(experiment.exposed),
        "hurt": len(experiment.hurt),
        "passed_by": len(experiment.passed_by),
    }


def _audit(now: float, who: str, what: str, subject: str = "", why: str | None = None) -> AuditRow:
    return AuditRow(at=now, who=who, what=what, subject=subject, why=why or "")


def _as_dict(row: Base) -> dict[str, Any]:
    return {column.name: getattr(row, column.name) for column in row.__table__.columns}


def _tune_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def pragmas(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA busy_timeout=5000")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()
