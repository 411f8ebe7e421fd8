"""Gives the verdict of an experiment: what its tests say, given all else that is known of it.

In this order: a process was killed; nothing fired; others were hurt; requests went on when their
failure context had run out; what fired did so when devices had their answers; too many were silent;
requests stopped reaching the point. The tests have seen none of it.

**Harm is harm of treated devices.** When those fail who were not injected into, nobody knows why:
a fault that opens a circuit breaker, and an outage of something else, look the same. So however
often bystanders are hurt, an experiment whose tests do not say *harmful* is inconclusive:
interference. (To tell the two apart the fault has to come and go, and the trouble with it.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypedDict

from ldfi.checker.record import Overruled
from ldfi.experiments.domain.judging.ordered_outcomes import Ordered
from ldfi.experiments.domain.judging.participation import Stays
from ldfi.experiments.domain.judging.sequential_tests import Verdict
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.experiments.domain.traffic.request_frequency import Frequency
from ldfi.lineage.message_waits import SKEW, TICK

INTERFERENCE: Final = (
    "interference, since others failed and treated devices are not shown to have failed more than "
    "control"
)
"""What is said of an experiment whose bystanders were hurt, and whose treated devices were not."""


class JudgingContext(NamedTuple):
    """What is known of an experiment besides its outcomes. Each in words, None where it is not so.

    ``hurt``: how bystanders are. ``silent``: what was said for a verdict of the tests' own;
    ``fallen``, ``seldom``, ``outlasted`` and ``answered`` matter to *tolerated* alone. ``killed``:
    processes     died, which devices need not have seen.
    """

    fired: bool
    hurt: str | None
    silent: str | None
    fallen: str | None
    outlasted: str | None = None
    killed: str | None = None
    seldom: str | None = None
    answered: str | None = None


class Judged(NamedTuple):
    """``overruled``: why the verdict is not what the tests say, where it is not."""

    verdict: Verdict
    reason: str
    overruled: Overruled | None = None


def judge(told: Verdict, reason: str, context: JudgingContext) -> Judged:
    """Return the verdict. ``told``: by the tests; ``reason``: why the experiment was stopped.

    It is ``harmful`` only where the tests say so.
    """
    if context.killed is not None:
        return Judged("inconclusive", context.killed, "killed")
    if not context.fired:
        return Judged("inconclusive", "no fault fired", "nothing fired")
    if context.hurt is not None:
        reason = f"bystanders are hurt: {context.hurt}"
        if told == "harmful":
            return Judged("harmful", reason)
        return Judged("inconclusive", f"{reason}; this is {INTERFERENCE}", "bystanders")
    if told == "tolerated" and context.outlasted is not None:
        return Judged("inconclusive", context.outlasted, "patience")  # they are silent, too, so far
    if told == "tolerated" and context.answered is not None:
        return Judged("inconclusive", context.answered, "answered")
    if context.silent is not None:
        silent = context.silent if told != "inconclusive" else f"{reason}; {context.silent}"
        return Judged("inconclusive", silent, "silence")
    if told == "tolerated" and context.fallen is not None:
        return Judged("inconclusive", context.fallen, "reach")
    if told == "tolerated" and context.seldom is not None:
        return Judged("inconclusive", context.seldom, "seldom")
    return Judged(told, reason)


# Whether what was injected came too late to matter: when the device had its answer already.
#
# A server may work on when it has answered, within the span of the request. What fails there no
# device can see in that answer, so that it was good proves nothing.
def answered_before(observation: Observation) -> bool:
    """Return whether every fault fired in a call that began when the device had its answer, by how
    long it says that it waited. False where it does not say that."""
    lineage, waited = observation.lineage, observation.outcome.duration
    fired = [span for span in lineage.trace.spans if span.operation.fired]
    answered = lineage.start + int(waited * 1e9)
    return waited > 0 and all(
        span.start > answered + (TICK if span.operation.service == lineage.service else SKEW)
        for span in fired
    )


# Treated requests that went well and prove nothing for *tolerated*: the fault was not there while
# it could matter.
#
# It may still prove harm. So *tolerated* is refused where it would not be said had all of these
# failed.
class Words(TypedDict):
    """Why *tolerated* is not said; None where it may be."""

    outlasted: str | None
    answered: str | None


@dataclass(slots=True)
class Unproved:
    """``outlasted``: trace of a request → how long it took, in seconds, where its failure context
    may have run out before its caller gave up. ``answered``: traces of those in which what fired
    did so when the device had its answer, where nobody looks at what comes later."""

    outlasted: dict[str, float] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    total: int = 0
    """Treated requests in which a fault fired."""

    def look(self, observation: Observation, holds: float, *, followed: bool) -> None:
        """Take in a treated request. ``holds``: seconds that failure contexts are sure to;
        ``followed``: later requests of the device are looked at."""
        lineage = observation.lineage
        self.total += 1
        if not observation.outcome.success:
            return
        if lineage.expired or lineage.duration >= holds:
            self.outlasted[lineage.trace_id] = lineage.duration
        if not followed and answered_before(observation):
            self.answered.add(lineage.trace_id)

    def forget(self, trace_id: str) -> None:
        """Have a treated request count no more, since a worse outcome of it comes now."""
        self.total -= 1
        self.outlasted.pop(trace_id, None)
        self.answered.discard(trace_id)

    def words(self, stays: Stays, holds: float, *, counted: bool) -> Words:
        """Return why there are too many of either. ``counted``: outcomes were counted elsewhere
        and are not known one by one."""
        hasty, late = self.outlasted, self.answered
        longest = max(hasty.values(), default=0.0)
        return {
            "outlasted": None
            if _holds_without(hasty, stays, counted=counted)
            else f"{len(hasty)} of {self.total} treated requests went on after their failure "
            f"context may have run out ({holds:.0f} s, up to {longest:.0f} s)",
            "answered": None
            if _holds_without(late, stays, counted=counted)
            else f"in {len(late)} of {self.total} treated requests faults fired only when the "
            f"device had its answer, and later requests are not looked at",
        }


def _holds_without(traces: Collection[str], stays: Stays, *, counted: bool) -> bool:
    return not traces or (not counted and stays.final(traces) == "tolerated")


# Devices that ask seldom: *tolerated* has to be shown of them by themselves, where they matter.
#
# Those that ask often are drawn first, and what they have that others lack, such as a cache, is
# then taken for everybody's. Where a share of δ of all devices or more asks seldom
# (:mod:`ldfi.experiments.domain.traffic.request_frequency`), the tests are therefore asked once
# more, of these devices alone. How often a device asks is what was known before it came into the
# experiment: afterwards that may be the fault's doing. So the rise is less than δ among those that
# ask seldom and among all that came, and more of them are let in until that is so.
def asking_seldom(
    frequency: Frequency, asked: Mapping[str, int], order: Ordered, delta: float
) -> list[bool] | None:
    """Return for each that counted, in order, whether it is of a device that asks seldom; None
    where these are too few to matter. ``asked``: device → how many requests were known of
    before."""
    most, share = frequency.seldom()
    if share < delta:
        return None
    return order.among([each for each, known in asked.items() if known < most])


def seldom_unshown(stays: Stays, seldom: Sequence[bool] | None) -> str | None:
    """Return a message that too little is known of those that ask seldom; None where it is
    tolerated by them."""
    if seldom is None or stays.only(seldom).final() == "tolerated":
        return None
    return (
        f"many devices ask seldom, and by the {sum(seldom)} of them that counted in either arm it "
        "is not shown that these do not fail more often: let more be treated (members), or observe "
        "for longer (window)"
    )
