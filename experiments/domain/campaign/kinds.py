"""The kinds of fault that a campaign tries, and what is known of one by what is known of others.

Records of traffic and results name what a request relied on as ``error`` and ``delay`` alone: every
point that had to answer, and every point that had to be swift. That holds for each kind of failure
in its own right, for a kind that was survived proves itself and no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from ldfi.experiments.domain.campaign.result import ExperimentResult
from ldfi.fit.protocol.kinds import KINDS, FaultKind, alike_of, late, outlasted
from ldfi.fit.protocol.native_kinds import gone, native


@lru_cache(maxsize=65536)
def _meant(asked: tuple[FaultKind, ...], point: str, proxied: bool) -> tuple[FaultKind, ...]:
    """Return the kinds tried at this point; an error is left out where another kind is what a
    dead dependency looks like."""
    meant = (gone(point, proxied=proxied) if kind == "error" else kind for kind in asked)
    return tuple(dict.fromkeys(kind for kind in meant if native(kind, point)))


@dataclass(frozen=True, slots=True)
class Kinds:
    """Those that are ``asked`` for. ``alike``: which of them are assumed to do the same.
    ``proxied``: the points before which a proxy stands. ``shown``: by point, what nature has shown
    there, which is tried there as well."""

    asked: tuple[FaultKind, ...]
    alike: tuple[str, ...] = ()
    proxied: frozenset[str] = frozenset()
    shown: Mapping[str, tuple[FaultKind, ...]] = field(default_factory=dict)

    def of(self, point: str) -> tuple[FaultKind, ...]:
        """List the kinds that are tried at a point."""
        asked = _meant(self.asked, point, point in self.proxied)
        shown = self.shown.get(point, ())
        return (*asked, *(kind for kind in shown if kind not in asked)) if shown else asked

    def at(self, point: str) -> list[str]:
        """List the faults that can be tried at a point."""
        return [f"{kind}@{point}" for kind in self.of(point)]

    def gone(self, point: str) -> str:
        """Return the fault that a dead callee looks like at this point."""
        return f"{gone(point, proxied=point in self.proxied)}@{point}"

    def meant(self, fault: str) -> str:
        """Return the fault that is injected for this one: errors become what they are at their
        point."""
        kind, _, point = fault.partition("@")
        return self.gone(point) if kind == "error" else fault

    def within(self, faults: Iterable[str]) -> frozenset[str]:
        """Keep the faults that are tried."""
        split = ((fault, *fault.partition("@")[::2]) for fault in faults)
        return frozenset(fault for fault, kind, point in split if kind in self.of(point))

    def stopping(self, point: str) -> list[str]:
        """List the faults that can be tried there and let no call through."""
        return [fault for fault in self.at(point) if not outlasted(fault.partition("@")[0])]

    def widened(self, faults: Iterable[str]) -> frozenset[str]:
        """Add to each error and delay the other kinds that are tried at its point: those that come
        late to a delay, all others to an error."""
        given = frozenset(faults)
        split = [fault.partition("@") for fault in given]
        return given | {
            f"{other}@{point}"
            for kind, _, point in split
            if kind in KINDS
            for other in self.of(point)
            if other not in KINDS and kind == ("delay" if late(other) else "error")
        }

    def alike_at(self, point: str) -> list[tuple[str, str]]:
        """Return pairs of faults at this point that are assumed to act alike."""
        possible = self.at(point)
        groups = (
            [fault for fault in possible if fault.partition("@")[0] in alike_of(each)]
            for each in self.alike
        )
        return [pair for group in groups for pair in pairwise(group)]

    def unlike(self, results: Iterable[ExperimentResult]) -> frozenset[str]:
        """Find the points at which an assumption is wrong: one kind hurt, and one that was taken as
        alike was survived in its place, with all else the same."""
        if not self.alike:
            return frozenset()
        known = list(results)
        survived = [each.fired for each in known if each.succeeded and not each.degraded]
        wrong: set[str] = set()
        for harm in (each.fired for each in known if each.succeeded is False):
            for good in survived:
                replaced_by = {fault: self._stand_in(fault, good) for fault in harm}
                if None not in replaced_by.values():
                    wrong |= {f.partition("@")[2] for f, other in replaced_by.items() if f != other}
        return frozenset(wrong)

    def _stand_in(self, fault: str, among: frozenset[str]) -> str | None:
        """Find the fault itself among these, or one that is taken as alike."""
        kind, _, point = fault.partition("@")
        like = {other for each in self.alike if kind in alike_of(each) for other in alike_of(each)}
        found = (f"{other}@{point}" for other in sorted(like))
        return fault if fault in among else next((each for each in found if each in among), None)

    def relied_on(self, relied_on: frozenset[str], survived: frozenset[str]) -> frozenset[str]:
        """Return the faults that a good run relied on not having, given the failures it
        survived.

        A point that failed by an error is not among what it relied on, and proved the error alone.
        """
        return self.widened(relied_on) | (self.widened(survived) - survived)
