"""Findings as several pages show them: what hurts most comes first, said in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

from sqlalchemy.orm import Session

from ldfi.analysis.repairs.request_names import Called
from ldfi.dashboards.words import devices
from ldfi.experiments.domain.campaign.lifecycle import SERIOUS, FindingState, severity
from ldfi.experiments.queries.experiment_summary import Compared
from ldfi.experiments.queries.finding_summary import CalleesOf, finding_summaries, share_of
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.schema import FindingRow

SHOWN: Final = 3

Which = FindingState | Literal["new", "hurting", "all"]

STATES: Final[Mapping[Which | None, str]] = {
    None: "Needs somebody",
    "new": "New",
    "killed": "Killed the process",
    "open": "Open",
    "regressed": "Back again",
    "suspected": "Suspected",
    "acknowledged": "Being repaired",
    "fixed": "Fixed",
    "refuted": "Refuted",
    "superseded": "Explained by less",
    "hurting": "All that hurt",
    "all": "All",
}
"""What may be looked at, and how it is called. None: what the page opens on."""


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


@dataclass(frozen=True, slots=True)
class Hurting:
    """A weakness as a sentence, and what came of it when it was tried."""

    weakness: Weakness
    sentence: str
    of: str


def ranked(findings: Iterable[FindingRow], rates: Mapping[str, float]) -> list[Weakness]:
    """Rank what hurts: what killed a process first, then fewer failures, then the larger share of
    all requests."""
    hurting = [row for row in findings if row.state in SERIOUS]
    found = [Weakness(row, share_of(row.request_class, rates)) for row in hurting]
    return sorted(found, key=lambda each: harm(each.finding, each.share))


def harm(finding: FindingRow, share: float | None) -> tuple[int, int, float, float, str]:
    """Return by what findings are ordered, the worst first."""
    state = cast(FindingState, finding.state)
    return severity(state, len(finding.faults), share, finding.found_at, finding.id)


def callees(engine: Engine) -> CalleesOf:
    """Tell what the points of a class reach, while the class is known."""

    def of(request_class: str) -> Mapping[str, str]:
        known = engine.catalogue.classes.get(request_class)
        return known.traffic.topology.callees if known is not None else {}

    return of


def hurting(
    session: Session, weak: Sequence[Weakness], callees_of: CalleesOf, called: Called
) -> list[Hurting]:
    """Say what hurts, and of how many devices when it was tried. One question to the database."""
    rows = [each.finding for each in weak]
    found = finding_summaries(session, rows, callees_of, called)
    return [
        Hurting(one, each.sentence, _met(each.compared))
        for one, each in zip(weak, found, strict=True)
    ]


def _met(compared: Compared | None) -> str:
    if compared is None or not compared.devices:
        return ""
    return f"{compared.failures:,} of {devices(compared.devices)} that met it"
