"""Rows of the audit with what they are about: which request class, and which failures."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.analysis.phrases import said_shortly
from ldfi.experiments.api.audit_view import AuditSubject, AuditView
from ldfi.experiments.store.schema import AuditRow, ExperimentRow, FindingRow


def audited(session: Session, rows: Sequence[AuditRow]) -> list[AuditView]:
    """Show rows: two questions, however many there are; none for no row."""
    about = _about(session, {row.subject for row in rows}) if rows else {}
    return [AuditView.of(row, about.get(row.subject)) for row in rows]


def _about(session: Session, subjects: Collection[str]) -> dict[str, AuditSubject]:
    """Return which class and which failures these experiments and findings are about."""
    experiments = select(ExperimentRow.id, ExperimentRow.request_class, ExperimentRow.hypothesis)
    findings = select(FindingRow.id, FindingRow.request_class, FindingRow.faults)
    return {
        subject: AuditSubject(request_class=name, faults=faults, said=said_shortly(faults))
        for query in (
            experiments.where(ExperimentRow.id.in_(subjects)),
            findings.where(FindingRow.id.in_(subjects)),
        )
        for subject, name, faults in session.execute(query)
    }
