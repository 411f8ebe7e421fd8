"""Reads findings as every face shows them: one sentence each, the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from ldfi.analysis.repairs.advice import sentence
from ldfi.analysis.repairs.called import BY_THEIR_NAMES, Called
from ldfi.experiments.queries.experiment_summary import Compared
from ldfi.experiments.store.findings import proofs
from ldfi.experiments.store.schema import FindingRow

CalleesOf = Callable[[str], Mapping[str, str]]
"""What the points of a request class reach."""


def share_of(request_class: str, rates: Mapping[str, float]) -> float | None:
    """Return which part of all requests a class is; None where nobody asks for anything."""
    total = sum(rates.values())
    return rates.get(request_class, 0.0) / total if total else None


@dataclass(frozen=True, slots=True)
class FindingSummary:
    """One finding. ``sentence``: what it is, without a full stop. ``compared``: treated devices of
    the experiment that shows best that it hurts; None where there is none. ``found_at``: Unix
    seconds."""

    id: str
    request_class: str
    faults: tuple[str, ...]
    state: str
    sentence: str
    found_at: float
    compared: Compared | None


def finding_summaries(
    session: Session,
    rows: Sequence[FindingRow],
    callees_of: CalleesOf,
    called: Called = BY_THEIR_NAMES,
) -> list[FindingSummary]:
    """Read findings: one question, however many there are."""
    shown = proofs(session, rows)
    found = []
    for row in rows:
        counts = shown[row.id].counts if row.id in shown else {}
        said = sentence(
            row.request_class, row.faults, row.state, counts, callees_of(row.request_class), called
        )
        arm = counts.get("treatment")
        found.append(
            FindingSummary(
                id=row.id,
                request_class=row.request_class,
                faults=tuple(row.faults),
                state=row.state,
                sentence=said,
                found_at=row.found_at,
                compared=Compared(arm["devices"], arm["failures"]) if arm else None,
            )
        )
    return found
