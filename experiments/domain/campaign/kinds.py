"""The kinds of fault that a campaign tries, and what is known of one by what is known of others.

Records of traffic and lessons name what a request relied on as ``error`` and ``delay`` alone: every
point that had to answer, and every point that had to be swift. That holds for each kind of failure
in its own right, for a kind that was survived proves itself and no other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ldfi.fit.native import native
from ldfi.kinds import KINDS, LATE, FaultKind


@dataclass(frozen=True, slots=True)
class Kinds:
    """Those that are ``asked`` for."""

    asked: tuple[FaultKind, ...]

    def at(self, point: str) -> list[str]:
        """List the faults that can be tried at a point."""
        return [f"{kind}@{point}" for kind in self.asked if native(kind, point)]

    def stopping(self, point: str) -> list[str]:
        """List the faults that can be tried there and let no call through."""
        return [fault for fault in self.at(point) if not fault.startswith("delay@")]

    def widened(self, faults: Iterable[str]) -> frozenset[str]:
        """Add to each error and delay the other kinds that are asked for, so far as its point can
        have them: those that come late to a delay, all others to an error."""
        given = frozenset(faults)
        others = [kind for kind in self.asked if kind not in KINDS]
        if not others:
            return given
        split = [fault.partition("@") for fault in given]
        return given | {
            f"{other}@{point}"
            for other in others
            for kind, _, point in split
            if kind == ("delay" if other in LATE else "error") and native(other, point)
        }

    def relied_on(self, relied_on: frozenset[str], survived: frozenset[str]) -> frozenset[str]:
        """Spell out what a good run relied on, which survived these failures.

        A point that failed by an error is not among what it relied on, and proved the error alone.
        """
        return self.widened(relied_on) | (self.widened(survived) - survived)
