"""What an exploration takes over from its earlier runs: what they taught, not every one of them.

Whoever goes on for years tries the same again and again, and most of it teaches what is known.
Of results that say just the same, the first two and the last are kept, and the last counts for
those between (:attr:`~ldfi.experiments.domain.campaign.result.ExperimentResult.times`). Nothing
asks for more: a set has to be survived three times at most, a failure met twice, and a second
slot asks what the last one has left. So whoever goes on with what is kept knows the same, is
told the same by what comes later, and tries the same next. What was in vain is forgotten, and
tried again.

A :class:`Snapshot` is that, as a document: a service that starts reads it in place of the results.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any, Final

from ldfi.experiments.domain.campaign.result import ExperimentResult, Hypothesis

FIRST = 2
"""Of results that say the same so many are kept from the beginning on, and the last one."""

_APART: Final = {"traces", "opening", "times"}
"""Where a result was seen, what its proof left over, and how often: not what it says."""

_said: Callable[[ExperimentResult], Hashable] = attrgetter(
    *(each.name for each in fields(ExperimentResult) if each.compare and each.name not in _APART)
)
"""What a result says."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """``results``: in their order. ``hurt``: every set that ever hurt. ``judged``: what experiments
    of their own said of findings, and ``survived``: how often these were survived. ``leads``: what
    is to be tried alone. ``patience``: seconds that failure contexts were found to have to hold."""

    results: tuple[ExperimentResult, ...] = ()
    hurt: frozenset[Hypothesis] = frozenset()
    judged: tuple[tuple[Hypothesis, str], ...] = ()
    survived: tuple[tuple[Hypothesis, int], ...] = ()
    leads: tuple[Hypothesis, ...] = ()
    patience: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """For the store."""
        return {
            "lessons": [each.to_json() for each in self.results],
            "hurt": sorted(map(sorted, self.hurt)),
            "judged": [[sorted(faults), state] for faults, state in self.judged],
            "survived": [[sorted(faults), times] for faults, times in self.survived],
            "leads": [sorted(faults) for faults in self.leads],
            **({"patience": self.patience} if self.patience else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Snapshot:
        """Read what :meth:`to_json` wrote."""
        return cls(
            results=tuple(map(ExperimentResult.from_json, data["lessons"])),
            hurt=frozenset(map(frozenset, data["hurt"])),
            judged=tuple((frozenset(faults), state) for faults, state in data["judged"]),
            survived=tuple((frozenset(faults), times) for faults, times in data["survived"]),
            leads=tuple(map(frozenset, data["leads"])),
            patience=data.get("patience", 0.0),
        )


def carried(results: Iterable[ExperimentResult]) -> list[ExperimentResult]:
    """Return the results that a later run needs."""
    return thinned(each for each in results if not in_vain(each))


def thinned(results: Iterable[ExperimentResult]) -> list[ExperimentResult]:
    """Keep of results that say the same the first two and the last, which counts for the others."""
    listed = list(results)
    alike: dict[Hashable, list[int]] = {}
    for place, result in enumerate(listed):
        alike.setdefault(_said(result), []).append(place)
    kept: dict[int, ExperimentResult] = {}
    for places in alike.values():
        kept |= {place: listed[place] for place in places[:FIRST]}
        if len(places) > FIRST:
            times = sum(listed[place].times for place in places[FIRST:])
            kept[places[-1]] = replace(listed[places[-1]], times=times)
    return [kept[place] for place in sorted(kept)]


def in_vain(result: ExperimentResult) -> bool:
    """Return whether a result holds nothing but that there was no answer."""
    inconclusive = result.succeeded is None and result.purpose != "rejected"
    return inconclusive and not result.implications
