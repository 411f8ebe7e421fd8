"""Who answers at an address, learned from the calls that were answered.

Some spans have no other half: the callee was down, or never exported it. All that is known then is
the address the caller used. Where other calls to the same address were answered, the service that
answered them is the callee of these as well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from ldfi.fit.protocol.points import Point


@dataclass(slots=True)
class AddressBook:
    """Peer (host, or address and port) → the services that answered there, with counts."""

    _answers: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def learn(self, callees: Mapping[str, str], count: int = 1) -> None:
        """Take the callees of one lineage (or of ``count`` alike)."""
        for point, callee in callees.items():
            peer = Point.parse(point).peer
            if peer:
                self._answers[peer][callee] += count

    def callee(self, point: str) -> str:
        """Name the service behind a point's address; empty where nobody ever answered there."""
        answers = self._answers.get(Point.parse(point).peer)
        return max(answers, key=lambda name: (answers[name], name)) if answers else ""
