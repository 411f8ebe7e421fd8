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

from typing import Final, NamedTuple

from ldfi.checker.record import Overruled
from ldfi.experiments.domain.judging.verdict import Verdict

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
