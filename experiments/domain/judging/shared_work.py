"""Who met a fault though nobody drew them: work was done for several requests at once.

A batch, or a look-up that others wait for, runs in the context of one request. If that one is
treated the others meet its fault too. It shows where the fault stands in a trace of theirs (a
consumer of a batch belongs to each request whose message it took), or where spans of the two link
to one another. Traces come in any order, so failures are kept until the other's trace has come.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.lineage.shared_work import linked, most_fired, served

LIMIT: Final = 10_000
"""Failures that are kept in case the trace of a treated request says that it worked for them."""


@dataclass(slots=True)
class SharedWork:
    """Of one experiment. ``met``: devices that met its faults though nobody drew them; ``hurt``:
    those of them that failed. ``most``: how often a fault fired in one treated request, at most;
    where that is often, it may have been for others."""

    met: set[str] = field(default_factory=set)
    hurt: set[str] = field(default_factory=set)
    most: int = 0
    _treated: set[str] = field(default_factory=set)
    _served: set[str] = field(default_factory=set)
    _failed: OrderedDict[str, tuple[str, frozenset[str]]] = field(default_factory=OrderedDict)

    def treat(self, observation: Observation) -> None:
        """Take in a treated request in which a fault fired."""
        trace, trace_id = observation.lineage.trace, observation.lineage.trace_id
        others = served(trace)
        self.most = max(self.most, most_fired(trace))
        self._treated.add(trace_id)
        self._served |= others
        for other, (device, links) in self._failed.items():
            if other in others or trace_id in links:
                self._meet(device, success=False)

    def look(self, observation: Observation, points: frozenset[str]) -> None:
        """Take in a request that was not to meet a fault at these points."""
        lineage, outcome = observation.lineage, observation.outcome
        fired = {fault.partition("@")[2] for fault in lineage.fired}
        if fired & points or lineage.trace_id in self._served:
            self._meet(outcome.device, success=outcome.success)
        elif not outcome.success:
            links = linked(lineage.trace)
            if links & self._treated:
                self._meet(outcome.device, success=False)
            else:
                self._failed[lineage.trace_id] = outcome.device, links
                if len(self._failed) > LIMIT:
                    self._failed.popitem(last=False)

    def counts(self) -> dict[str, int]:
        """Count them for the record and for people."""
        return {"met": len(self.met), "hurt": len(self.hurt), "most": self.most}

    def words(self) -> str | None:
        """Return a message that others failed with it; None where none did."""
        if not self.hurt:
            return None
        return (
            f"{len(self.met)} devices that nobody drew met the fault, and {len(self.hurt)} of them "
            "failed: what it hit is done for several requests at once (a batch, a shared look-up)"
        )

    def _meet(self, device: str, *, success: bool) -> None:
        self.met.add(device)
        if not success:
            self.hurt.add(device)
