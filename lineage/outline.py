"""Lineages as people read and compare them: calls within calls, in an order that never varies.

Which of several concurrent calls began first is chance, so calls are ordered by their points, and
equal ones are counted. Two lineages of the same kind of request then differ just where something
else happened, and can be laid side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from ldfi.lineage.tree import Call, Tree


@dataclass(frozen=True, slots=True, order=True)
class Outline:
    """A call: ``point``, how it ended, what was injected into it (kinds of fault), and what was
    called within it. ``times``: how many such calls were made side by side. ``callee``: what
    answered, where that is known."""

    point: str
    failed: bool = False
    fired: tuple[str, ...] = ()
    callee: str = ""
    calls: tuple[Outline, ...] = ()
    times: int = 1

    @property
    def ending(self) -> str:
        """Return how it ended, in words."""
        ended = "failed" if self.failed else "ok"
        if not self.fired:
            return ended
        injected = f"{' and '.join(self.fired)} injected"
        return injected if self.fired == ("error",) and self.failed else f"{injected}, {ended}"

    def to_json(self) -> dict[str, Any]:
        """Write only what is worth saying: what went well, once and alone, is its point."""
        document: dict[str, Any] = {"call": self.point}
        if self.callee:
            document["callee"] = self.callee
        if self.times > 1:
            document["times"] = self.times
        if self.failed:
            document["failed"] = True
        if self.fired:
            document["fired"] = list(self.fired)
        if self.calls:
            document["calls"] = [call.to_json() for call in self.calls]
        return document

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Outline:
        """Read what :meth:`to_json` wrote. Raises KeyError or TypeError for anything else."""
        return cls(
            point=data["call"],
            failed=data.get("failed", False),
            fired=tuple(data.get("fired", ())),
            callee=data.get("callee", ""),
            calls=tuple(map(cls.from_json, data.get("calls", ()))),
            times=data.get("times", 1),
        )


@dataclass(frozen=True, slots=True)
class Row:
    """One point at one place of two lineages. ``left``, ``right``: how its calls ended there, None
    where there were none. ``depth``: inside how many other calls."""

    depth: int
    point: str
    left: str | None
    right: str | None

    @property
    def differs(self) -> bool:
        """Return whether something else happened."""
        return self.left != self.right


def outline(tree: Tree) -> tuple[Outline, ...]:
    """Outline the calls of a request that somebody waited for."""
    return _outlines(tree.calls)


def side_by_side(left: Sequence[Outline], right: Sequence[Outline]) -> list[Row]:
    """Set two lineages side by side, a row for each point at each place in either."""
    return list(_rows(left, right, 0))


def fired_in(calls: Iterable[Outline]) -> frozenset[str]:
    """List the faults (``kind@point``) that fired."""
    return frozenset(f"{kind}@{call.point}" for call in every(calls) for kind in call.fired)


def every(calls: Iterable[Outline]) -> Iterator[Outline]:
    """List all calls, those inside others too."""
    for call in calls:
        yield call
        yield from every(call.calls)


def ordered(calls: Iterable[Outline]) -> tuple[Outline, ...]:
    """Order calls made side by side as they are shown; equal ones are counted."""
    alike: Counter[Outline] = Counter()
    for call in calls:
        alike[replace(call, times=1)] += call.times
    return tuple(replace(each, times=times) for each, times in sorted(alike.items()))


def _outlines(calls: Iterable[Call]) -> tuple[Outline, ...]:
    return ordered(
        Outline(call.point, call.failed, call.fired, call.callee, _outlines(call.calls))
        for call in calls
        if not call.detached
    )


def _rows(left: Sequence[Outline], right: Sequence[Outline], depth: int) -> Iterator[Row]:
    both = sorted(
        [*((call.point, 0, call) for call in left), *((call.point, 1, call) for call in right)],
        key=lambda each: each[:2],
    )
    for point, found in groupby(both, key=lambda each: each[0]):
        sides: tuple[list[Outline], list[Outline]] = ([], [])
        for _, side, call in found:
            sides[side].append(call)
        yield Row(depth, point, _endings(sides[0]), _endings(sides[1]))
        yield from _rows(_within(sides[0]), _within(sides[1]), depth + 1)


def _within(calls: Iterable[Outline]) -> list[Outline]:
    return [inner for call in calls for inner in call.calls]


def _endings(calls: Sequence[Outline]) -> str | None:
    counts: Counter[str] = Counter()
    for call in calls:
        counts[call.ending] += call.times
    words = (f"{ending} ×{n}" if n > 1 else ending for ending, n in sorted(counts.items()))
    return " + ".join(words) or None
