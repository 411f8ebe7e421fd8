"""What was injected, in the words of whoever asked for it.

A failure context says of a delay for how long it hangs and not how that was drawn, so a span proves
a ``delay`` and no more; likewise a ``slow`` body. Lengths are a kind of their own all the same: a
short one that was survived says nothing of the longest. So in a run under such faults what fired is
named as it was asked for. That a caller gave up on one is no rule of its point either, for the next
may be shorter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.kinds import family, lengths
from ldfi.lineage.lineage import Lineage


def as_asked(run: Lineage, faults: Iterable[Fault]) -> Lineage:
    """Name what takes its time in a run under these faults as it was asked for."""
    kinds = {fault.point: fault.kind for fault in faults if lengths(fault.kind)}
    if not kinds:
        return run

    def each(fired: frozenset[str]) -> frozenset[str]:
        split = [fault.partition("@")[::2] for fault in fired]
        return frozenset(
            f"{kinds[point] if family(kinds.get(point, '')) == kind else kind}@{point}"
            for kind, point in split
        )

    return replace(
        run,
        fired=each(run.fired),
        would_fire=each(run.would_fire),
        timed_out=run.timed_out - kinds.keys(),
    )
