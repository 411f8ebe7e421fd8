"""What hurts most: findings in order of whom they hurt, each as a sentence. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ldfi.dashboards.phrases import said_together
from ldfi.experiments.domain.campaign.lifecycle import HURTING
from ldfi.experiments.store.schema import FindingRow

SHOWN: Final = 3

CalleesOf = Callable[[str], Mapping[str, str]]
"""What the points of a request class reach."""


@dataclass(frozen=True, slots=True)
class Weakness:
    """A finding that hurts. ``share``: of all requests, those of its class; None where nobody
    asks for anything."""

    finding: FindingRow
    share: float | None

    @property
    def together(self) -> bool:
        """Whether it takes several failures at once."""
        return len(self.finding.faults) > 1


def ranked(findings: Iterable[FindingRow], rates: Mapping[str, float]) -> list[Weakness]:
    """Rank what hurts: fewer failures first, then the larger share of all requests."""
    total = sum(rates.values())
    found = [
        Weakness(row, rates.get(row.request_class, 0.0) / total if total else None)
        for row in findings
        if row.state in HURTING
    ]
    return sorted(
        found,
        key=lambda each: (
            len(each.finding.faults),
            -(each.share or 0.0),
            each.finding.found_at,
            each.finding.id,
        ),
    )


def sentence(finding: FindingRow, counts: Mapping[str, Any], callees: Mapping[str, str]) -> str:
    """Say ``GET /play is lost when api's call to license (POST /keys) fails``. ``counts``: of the
    experiment that found it; empty where they are gone."""
    treated = counts.get("treatment") or {"devices": 0, "failures": 0}
    happens = "is hurt"
    if treated["devices"]:
        all_of_them = treated["failures"] == treated["devices"]
        happens = "is lost" if all_of_them else "fails more often"
    return f"{finding.request_class} {happens} when {said_together(finding.faults, callees)}"
