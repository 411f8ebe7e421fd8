"""What became of a scenario that was replayed: does it still fail, and did the faults fire at all?

Pure: attempts in, verdict out. Several requests were sent with the faults and as many without; an
attempt whose lineage is not known has neither proved nor disproved that anything fired.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ldfi.lineage.outline import Outline, Row, fired_in, side_by_side

ReproductionVerdict = Literal["fails", "fixed", "never-fired", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request. ``failure``: why its answer was no good one, None where it was one.

    ``lineage`` is None as long as nobody has shown it. ``seconds`` until the whole answer.
    """

    faulty: bool
    trace_id: str
    status: int | None
    failure: str | None
    seconds: float
    lineage: tuple[Outline, ...] | None = None

    @property
    def fired(self) -> frozenset[str] | None:
        """Return the faults that fired in it; None: unknown."""
        return None if self.lineage is None else fired_in(self.lineage)

    def to_json(self) -> dict[str, Any]:
        """Write it for programs."""
        return {
            "faults": self.faulty,
            "trace_id": self.trace_id,
            "status": self.status,
            "failure": self.failure,
            "seconds": round(self.seconds, 3),
            "fired": None if self.fired is None else sorted(self.fired),
        }


@dataclass(frozen=True, slots=True)
class Reproduction:
    """All attempts at one scenario. ``blind``: the answer does not show the failure."""

    attempts: tuple[Attempt, ...]
    faults: frozenset[str]
    blind: bool = False

    @property
    def treated(self) -> list[Attempt]:
        """Return the runs with the faults."""
        return [each for each in self.attempts if each.faulty]

    @property
    def plain(self) -> list[Attempt]:
        """Return the runs without the faults."""
        return [each for each in self.attempts if not each.faulty]

    @property
    def known(self) -> bool:
        """Return whether the lineage of at least one attempt with the faults is known."""
        return any(each.fired is not None for each in self.treated)

    @property
    def fired(self) -> frozenset[str]:
        """Every fault that is known to have fired."""
        return frozenset().union(*(each.fired or () for each in self.treated))

    @property
    def judged(self) -> tuple[ReproductionVerdict, str]:
        """The verdict, and why."""
        treated, plain = self.treated, self.plain
        hurt, hurt_anyway = _failed(treated), _failed(plain)
        if hurt_anyway and len(hurt) <= len(hurt_anyway):
            why = _commonest(hurt_anyway)
            return "inconclusive", (
                f"{len(hurt_anyway)} of {len(plain)} fail without the faults as well ({why}): "
                "something else is wrong, or the request is not one that the target answers"
            )
        if hurt:
            if all(each.fired == frozenset() for each in hurt):
                return "never-fired", (
                    f"{len(hurt)} of {len(treated)} fail, but no fault fired in any of them"
                )
            return (
                "fails",
                f"{len(hurt)} of {len(treated)} fail with the faults ({_commonest(hurt)})",
            )
        if not self.known:
            return "never-fired", (
                "all went well, and nobody says whether a fault fired: give --url with --token, "
                "--jaeger or --listen, so that the lineages can be seen"
            )
        if not self.fired:
            return "never-fired", "all went well, but no fault fired"
        if self.blind:
            return "inconclusive", (
                "all answers look good, but so did the one that hurt: say under `expect` in the "
                "scenario what a good answer holds (json_path, body_contains, body_matches)"
            )
        proved = sum(bool(each.fired) for each in treated)
        return "fixed", f"all {len(treated)} went well; faults fired in {proved} of them"

    def rows(self) -> list[Row]:
        """Set both lineages side by side: without the faults and with them; empty if one is
        unknown."""
        plain = _shown(self.plain, failed=False)
        treated = _shown(self.treated, failed=bool(_failed(self.treated)))
        if plain is None or treated is None:
            return []
        return side_by_side(plain, treated)

    def to_json(self) -> dict[str, Any]:
        """Write it for programs."""
        verdict, why = self.judged
        return {
            "verdict": verdict,
            "reason": why,
            "faults": sorted(self.faults),
            "fired": sorted(self.fired) if self.known else None,
            "attempts": [each.to_json() for each in self.attempts],
            "lineage": [
                {"depth": row.depth, "call": row.point, "without": row.left, "with": row.right}
                for row in self.rows()
            ],
        }


def telling(rows: Sequence[Row]) -> list[Row]:
    """Keep the rows that differ, and those that they are inside of."""
    kept: list[Row] = []
    depth = -1  # of the innermost row below that is kept and whose class context are wanted
    for row in reversed(rows):
        if row.differs or row.depth < depth:
            kept.append(row)
            depth = row.depth
        elif row.depth == 0:
            depth = -1
    return kept[::-1]


def _failed(attempts: Iterable[Attempt]) -> list[Attempt]:
    return [each for each in attempts if each.failure is not None]


def _commonest(attempts: Sequence[Attempt]) -> str:
    reasons = [each.failure or "" for each in attempts]
    return max(sorted(set(reasons)), key=reasons.count)


def _shown(attempts: Iterable[Attempt], *, failed: bool) -> tuple[Outline, ...] | None:
    """Choose the lineage to show: of one that failed if there is such, in which most fired."""
    known = [
        (len(each.fired or ()), each.lineage)
        for each in attempts
        if each.lineage is not None and (each.failure is not None) is failed
    ]
    return max(known, key=lambda each: each[0])[1] if known else None
