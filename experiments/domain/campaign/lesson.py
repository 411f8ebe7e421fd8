"""What a run teaches (design, section 4), in the solver's words.

A tolerated experiment makes one clause: the union of what its successful requests relied on, less
the faults that fired and were survived. Where an answer was accepted although something was missing
from it (*degraded*), what was not called because of that has not been shown to be dispensable: it
proves that what fired does not hurt, and no more. A harmful one is put down to the faults that
*fired* in its failed requests, not to those that were armed. An inconclusive one teaches nothing
about the hypothesis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ldfi.experiments.domain.judging.experiment import Experiment, Purpose
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.lineage.blame import blame

LessonPurpose = Purpose | Literal["rejected"]
"""What the experiment was for; ``rejected``: an operator did not let it be tried."""

MAX_TRACES = 5
"""Exemplar traces that a lesson names as its evidence."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """``succeeded`` is None for an inconclusive experiment. ``suspects`` (blame) and ``called``
    are points; the rest are faults.

    ``survived``: how calls failed with nothing failed above them (``kind@point``), by injection or
    because something below them did. ``implications``: pairs (delay, error) of
    a point where a delay made the call itself fail. ``degraded``: some answer was accepted although
    something was missing from it.
    """

    injected: frozenset[str]
    succeeded: bool | None
    fired: frozenset[str] = frozenset()
    relied_on: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()
    survived: frozenset[str] = frozenset()
    suspects: frozenset[str] = frozenset()
    implications: frozenset[tuple[str, str]] = frozenset()
    traces: tuple[str, ...] = ()
    purpose: LessonPurpose = "explore"
    degraded: bool = False

    def to_json(self) -> dict[str, Any]:
        """For the store: what was learned is never lost, nor learned twice."""
        return {
            "injected": sorted(self.injected),
            "succeeded": self.succeeded,
            "fired": sorted(self.fired),
            "relied_on": sorted(self.relied_on),
            "called": sorted(self.called),
            "survived": sorted(self.survived),
            "suspects": sorted(self.suspects),
            "implications": sorted(map(list, self.implications)),
            "traces": list(self.traces),
            "purpose": self.purpose,
            "degraded": self.degraded,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Lesson:
        """Read what :meth:`to_json` wrote."""
        return cls(
            injected=frozenset(data["injected"]),
            succeeded=data["succeeded"],
            fired=frozenset(data["fired"]),
            relied_on=frozenset(data["relied_on"]),
            called=frozenset(data["called"]),
            survived=frozenset(data.get("survived", data["fired"])),
            suspects=frozenset(data["suspects"]),
            implications=frozenset((delay, error) for delay, error in data["implications"]),
            traces=tuple(data["traces"]),
            purpose=data["purpose"],
            degraded=data.get("degraded", False),
        )


def lesson_of(experiment: Experiment, usual_support: frozenset[str]) -> Lesson:
    """Draw the lesson of a decided experiment.

    ``usual_support`` are the points that the class's unperturbed requests rely on: a point
    outside it is a fallback, and blame looks for what brought it in.
    """
    injected = experiment.hypothesis
    implications = _implications([*experiment.good, *experiment.bad])
    if experiment.verdict == "tolerated":
        good = [observation.lineage for observation in experiment.good]
        return Lesson(
            injected,
            succeeded=True,
            fired=frozenset().union(*(lineage.fired for lineage in good)),
            relied_on=frozenset().union(*(lineage.relied_on for lineage in good)),
            called=frozenset().union(*(lineage.called for lineage in good)),
            survived=frozenset().union(*(lineage.survived for lineage in good)),
            implications=implications,
            traces=tuple(lineage.trace_id for lineage in good[:MAX_TRACES]),
            purpose=experiment.purpose,
            degraded=any(each.outcome.degraded for each in experiment.good),
        )
    if experiment.verdict == "harmful":
        return _harm(experiment, usual_support, implications)
    return Lesson(injected, succeeded=None, implications=implications, purpose=experiment.purpose)


def _harm(
    experiment: Experiment,
    usual_support: frozenset[str],
    implications: frozenset[tuple[str, str]],
) -> Lesson:
    bad = experiment.bad or experiment.good  # outcomes counted elsewhere name no single request
    fired = Counter(observation.lineage.fired for observation in bad)
    commonest = _most_common(fired)
    alike = [o.lineage for o in bad if o.lineage.fired == commonest]
    suspects = Counter(blame(lineage.tree, usual_support) for lineage in alike)
    return Lesson(
        experiment.hypothesis,
        succeeded=False,
        fired=commonest,
        suspects=_most_common(suspects),
        implications=implications,
        traces=tuple(lineage.trace_id for lineage in alike[:MAX_TRACES]),
        purpose=experiment.purpose,
    )


def _most_common(sets: Counter[frozenset[str]]) -> frozenset[str]:
    """Choose the commonest set; among equally common ones the smallest, then the first by name."""
    return min(sets, key=lambda found: (-sets[found], len(found), sorted(found)))


def _implications(observations: Iterable[Observation]) -> frozenset[tuple[str, str]]:
    points = frozenset().union(*(o.lineage.timed_out for o in observations))
    return frozenset((f"delay@{point}", f"error@{point}") for point in points)
