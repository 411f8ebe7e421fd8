"""What hurts most: findings in order of whom they hurt. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ldfi.experiments.domain.campaign.lifecycle import SERIOUS
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
    """Rank what hurts: what killed a process first, then fewer failures, then the larger share of
    all requests."""
    hurting = [row for row in findings if row.state in SERIOUS]
    found = [Weakness(row, share_of(row.request_class, rates)) for row in hurting]
    return sorted(found, key=lambda each: severity(each.finding, each.share))


def share_of(request_class: str, rates: Mapping[str, float]) -> float | None:
    """Tell which part of all requests a class is; None where nobody asks for anything."""
    total = sum(rates.values())
    return rates.get(request_class, 0.0) / total if total else None


def severity(finding: FindingRow, share: float | None) -> tuple[bool, int, float, float, str]:
    """Order findings by whom they hurt, the worst first: a process is lost to everybody."""
    spares = finding.state != "killed"
    return (spares, len(finding.faults), -(share or 0.0), finding.found_at, finding.id)
