"""How things are now, where something is about to be taken down: the gate's second half.

What is known says what is survived; what is true now says what is down already, whom nobody has
heard of for a while, and whether those who would suffer are well to begin with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.gates.guards import STEADY_LEAST
from ldfi.experiments.domain.gates.whatif import points_named
from ldfi.experiments.domain.settings import STEADY
from ldfi.experiments.domain.traffic.class_traffic import good_of_late
from ldfi.experiments.domain.traffic.vital_signs import NEWEST, RECENT, Signs
from ldfi.fit.protocol.points import Point


@dataclass(frozen=True, slots=True)
class CurrentState:
    """At one moment, ``at`` (Unix seconds). ``breach``: the guardrail that does not hold."""

    at: float
    signs: Signs = field(default_factory=Signs)
    breach: str | None = None


def unwell(knowledge: Knowledge, current_state: CurrentState) -> str | None:
    """Return why a class is not in steady state now; None if it is, or too few requests tell.

    What was wrong within the minute and is over, by the newest outcomes, is over.
    """
    traffic = knowledge.traffic
    steady = traffic.steady(current_state.at, RECENT)
    over = good_of_late(traffic, NEWEST)
    if steady.outcomes < STEADY_LEAST or steady.rate >= STEADY or over:
        return None
    return (
        f"{knowledge.name}: steady state does not hold: {steady.rate:.0%} of the newest "
        f"{steady.outcomes} requests succeed"
    )


def unheard(knowledge: Knowledge, current_state: CurrentState) -> str | None:
    """Return a message that too few requests came of late to tell how a class is; None where
    enough did."""
    steady = knowledge.traffic.steady(current_state.at, RECENT)
    if steady.outcomes >= STEADY_LEAST:
        return None
    return (
        f"{knowledge.name}: nobody knows how it is now: of {steady.outcomes} requests the outcome "
        f"came in within {RECENT:.0f} s, it takes {STEADY_LEAST}"
    )


def doubts(
    knowledge: Knowledge, down: frozenset[str], current_state: CurrentState
) -> Iterator[str]:
    """Return which dependencies of a class may not be relied on while these points are down.

    All that answer late are taken to fail together; of those that nobody has heard of, any one:
    they are doubted for want of traffic, not for cause. What hurts with nothing else down is none
    of the step's business.
    """
    late = {
        point
        for sign in current_state.signs.late
        for point in points_named([sign.name], knowledge) - down
        if knowledge.judge({point}) != "failing"
    }
    if late and knowledge.judge(down | late) != "safe":
        for sign in current_state.signs.late:
            if late & points_named([sign.name], knowledge):
                yield f"{knowledge.name}: it may have to do without {sign.words}"
    for point in sorted(knowledge.points - down - late):
        if _heard_of(point, knowledge, current_state) or knowledge.judge({point}) == "failing":
            continue
        if knowledge.judge(down | late | {point}) != "safe":
            yield (
                f"{knowledge.name}: it may have to do without {point}, which nobody has called "
                f"with success within {RECENT:.0f} s"
            )


def _heard_of(point: str, knowledge: Knowledge, current_state: CurrentState) -> bool:
    system = knowledge.traffic.topology.callees.get(point) or Point.parse(point).peer
    return not current_state.signs.answered.isdisjoint({point, system})
