"""What requests of a class called, and how long the calls took: two versions side by side.

From the traces of some requests of each class, for which the run asks. A call is new where the old
version never made it in the requests that were seen, gone where the new one never does, and slower
where its own median grew by a quarter and a millisecond at least, of ten calls on each side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final, Literal

from ldfi.lineage.span import Trace
from ldfi.lineage.tree import Call, build
from ldfi.scenarios.traces import SpanSource

SLOWER: Final = 1.25
LEAST: Final = 0.001
"""Seconds by which a call must be slower as well."""
FEWEST: Final = 10
"""Requests, or calls, that must have been seen of both versions."""

ChangeKind = Literal["new", "gone", "slower"]


@dataclass(slots=True)
class ClassLineage:
    """What was called in the requests of a class that were seen, and the seconds it took."""

    requests: int = 0
    calls: dict[str, list[float]] = field(default_factory=dict)

    def take(self, calls: Iterable[Call]) -> None:
        """Add the calls of one request."""
        self.requests += 1
        pending = list(calls)
        while pending:
            call = pending.pop()
            if not call.detached:
                self.calls.setdefault(call.point, []).append((call.end - call.start) / 1e9)
                pending += call.calls

    def to_json(self) -> dict[str, Any]:
        """Write it."""
        return {"requests": self.requests, "calls": self.calls}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ClassLineage:
        """Read what :meth:`to_json` wrote. Raises KeyError or TypeError for anything else."""
        return cls(
            int(data["requests"]), {str(k): [float(x) for x in v] for k, v in data["calls"].items()}
        )


@dataclass(frozen=True, slots=True)
class CallChange:
    """A call that is made no longer, or only now, or takes longer. Seconds: medians."""

    request_class: str
    point: str
    kind: ChangeKind
    old: float | None
    new: float | None

    def to_json(self) -> dict[str, Any]:
        """Write it for programs."""
        return {
            "class": self.request_class,
            "call": self.point,
            "change": self.kind,
            "old_seconds": self.old,
            "new_seconds": self.new,
        }


def changes(old: Mapping[str, ClassLineage], new: Mapping[str, ClassLineage]) -> list[CallChange]:
    """List what changed in classes of which enough was seen of both versions."""
    found = []
    for name in sorted(old.keys() & new.keys()):
        one, two = old[name], new[name]
        if min(one.requests, two.requests) >= FEWEST:
            found += [
                change
                for point in sorted({*one.calls, *two.calls})
                if (change := _change(name, point, one.calls.get(point), two.calls.get(point)))
            ]
    return found


def _change(
    name: str, point: str, old: list[float] | None, new: list[float] | None
) -> CallChange | None:
    before, after = (None if each is None else median(each) for each in (old, new))
    if before is None or after is None:
        return CallChange(name, point, "new" if before is None else "gone", before, after)
    enough = min(len(old or ()), len(new or ())) >= FEWEST
    if enough and after > SLOWER * before and after - before >= LEAST:
        return CallChange(name, point, "slower", before, after)
    return None


async def seen(traces: Mapping[str, Sequence[str]], source: SpanSource) -> dict[str, ClassLineage]:
    """Look up what the requests of each class called, by their traces. Raises Unreachable."""
    found: dict[str, ClassLineage] = {}
    for name, listed in traces.items():
        for trace_id in listed:
            spans = await source.spans(trace_id)
            tree = build(Trace.of(trace_id, spans)) if spans else None
            if tree is not None:
                found.setdefault(name, ClassLineage()).take(tree.calls)
    return found
