"""What is known of a class, worked out once and kept until something new is known.

Teaching an explorer all results of a class takes a while, and a page must not. So the knowledge and
its certificate are kept until another experiment of the class has taught something; what traffic
shows meanwhile is taken in every :data:`FRESH` seconds.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.scheduler.evidence import knowledge_from
from ldfi.experiments.store import snapshots
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.experiments.store.snapshots import Taught

FRESH: Final = 30.0
KEPT: Final = 100
"""Classes of which this is kept."""

RESULTS: Final = 500
"""Results of one class that a page looks at besides what earlier ones came to, the newest: all of
them would hold up the service. What only older ones had proved shows as untested, until they are
folded (``ldfi prune``) or it is tried again."""


@dataclass(slots=True)
class Evidence:
    """``taught_at``: when the newest of its experiments ended; ``at``: as of when, monotonic."""

    knowledge: Knowledge
    certificate: dict[str, Any]
    taught_at: float | None
    at: float


class EvidenceKept:
    """The evidence of the classes looked at lately."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int], Evidence] = OrderedDict()

    def of(self, session: Session, known: KnownClass) -> Evidence:
        """Read everything known of a class: one query, and two more where it has to be worked
        out."""
        (evidence,) = self.each_of(session, [known])
        return evidence

    def each_of(self, session: Session, classes: Sequence[KnownClass]) -> Iterator[Evidence]:
        """Read the same of many classes, with no more queries; each is worked out when it is asked
        for, so that a page can let the watch go on in between."""
        names = [known.name for known in classes]
        newest = (
            select(ExperimentRow.request_class, func.max(ExperimentRow.ended_at))
            .where(ExperimentRow.request_class.in_(names))
            .group_by(ExperimentRow.request_class)
        )
        taught_at = dict(session.execute(newest).tuples().all())
        new = [known.name for known in classes if not self._current(known, taught_at)]
        taught = snapshots.of_classes(session, new, RESULTS) if new else {}
        return (
            self._kept_of(known, taught.get(known.name), taught_at.get(known.name))
            for known in classes
        )

    def _current(self, known: KnownClass, taught_at: Mapping[str, float | None]) -> bool:
        kept = self._kept.get((known.name, known.version))
        return kept is not None and kept.taught_at == taught_at.get(known.name)

    def _kept_of(
        self, known: KnownClass, taught: Taught | None, taught_at: float | None
    ) -> Evidence:
        key, now = (known.name, known.version), time.monotonic()
        kept = self._kept.pop(key, None)
        if taught is not None or kept is None:
            knowledge = knowledge_from(known, taught or Taught(None, ()))
            kept = Evidence(knowledge, _certificate(knowledge), taught_at, now)
        elif now - kept.at > FRESH:
            kept.knowledge.study_traffic()
            kept.certificate, kept.at = _certificate(kept.knowledge), now
        self._kept[key] = kept
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return kept


def evidence_kept(request: Request) -> EvidenceKept:
    """Return the kept evidence of this application."""
    kept: EvidenceKept = request.app.state.evidence_kept
    return kept


def _certificate(knowledge: Knowledge) -> dict[str, Any]:
    data: dict[str, Any] = knowledge.certificate()["certificate"]
    return data
