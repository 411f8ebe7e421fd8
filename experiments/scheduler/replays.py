"""Lineages of requests that engineers replayed: kept a while, so that they can be looked at.

Their experiment is the scenario of a device (:mod:`ldfi.fit.protocol.scenario`), no campaign's.
They are no evidence of anything: nobody reports their outcome, and what they meet may be half
repaired.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from ldfi.fit.protocol.scenario import PREFIX
from ldfi.lineage.lineage import Lineage

KEPT: Final = 1_000
SECONDS: Final = 600.0
"""How long one is kept, if so many do not come after it."""


class Replays:
    """The newest lineages of replayed requests, by trace id."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[float, Lineage]] = OrderedDict()

    def take(self, lineage: Lineage, now: float) -> bool:
        """Keep a lineage, if it is of a replayed request; whether it is."""
        if not lineage.experiment.startswith(PREFIX):
            return False
        self._kept[lineage.trace_id] = (now, lineage)
        while self._kept and (len(self._kept) > KEPT or self._oldest() < now - SECONDS):
            self._kept.popitem(last=False)
        return True

    def get(self, trace_id: str) -> Lineage | None:
        """Find the lineage of a replayed request, while it is kept."""
        found = self._kept.get(trace_id)
        return found[1] if found else None

    def _oldest(self) -> float:
        return next(iter(self._kept.values()))[0]
