"""The guards: everything that forbids experiments, in one table (design, section 9).

Every guard is asked in the transaction that arms (``store.arming``), on facts of which those on
record are read in it: there it holds for several schedulers as well. Some are asked before that
too, so that nothing is proposed in vain: those of a campaign, whatever its classes, before it is
asked what to try; those of a class before a hypothesis is drawn for it. And some are asked as long
as anything is armed: the first that gives a reason disarms. So what stops an experiment also
forbids arming it.

To add a guard: an entry in :data:`GUARDS`, the fact that it needs in
:class:`~ldfi.experiments.domain.gates.guard_facts.Facts`, and how it is tripped in the tests. The
table in ``docs/safety.md`` is made from this one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from ldfi.experiments.domain.gates.guard_facts import Facts
from ldfi.experiments.domain.judging.bystanders import COOL, LONGEST
from ldfi.experiments.domain.settings import STEADY
from ldfi.experiments.domain.traffic.class_traffic import STEADY_OUTCOMES, STEADY_SECONDS
from ldfi.experiments.domain.traffic.patterns import matching

STEADY_LEAST: Final = 10
"""No experiment starts in a class of whose bystanders fewer outcomes came in of late."""

Early = Literal["campaign", "class"]
Moment = Early | Literal["arming", "armed"]
"""When guards are asked: before a campaign is asked what to try, before a class is, in the
transaction that arms, and while anything is armed."""


@dataclass(frozen=True, slots=True)
class Guard:
    """``meaning``: what must hold, in a sentence for people. ``why_not`` gives the reason against,
    None where it holds. ``early``: when it is asked before the transaction that arms. ``armed``:
    whether it is asked for as long as something is armed."""

    name: str
    meaning: str
    why_not: Callable[[Facts], str | None]
    early: Early | None = None
    armed: bool = False

    def asked(self, moment: Moment) -> bool:
        """Return whether it is asked at this moment: every guard is when something is armed."""
        return moment in {"arming", self.early} or (self.armed and moment == "armed")


@dataclass(frozen=True, slots=True)
class Objection:
    """A guard does not hold, and why."""

    guard: Guard
    reason: str


def objection(facts: Facts, moment: Moment) -> Objection | None:
    """Return the first objection to experiments at this moment; None where there is none."""
    for guard in GUARDS:
        reason = guard.why_not(facts) if guard.asked(moment) else None
        if reason is not None:
            return Objection(guard, reason)
    return None


def _halted(facts: Facts) -> str | None:
    return None if facts.halted is None else f"halted: {facts.halted}"


def _breach(facts: Facts) -> str | None:
    return facts.breach


def _calendar(facts: Facts) -> str | None:
    return facts.closed


def _edges(facts: Facts) -> str | None:
    return None if facts.edges else "no edge asks for rules"


def _campaign(facts: Facts) -> str | None:
    if facts.campaign == "running":
        return None
    return f"the campaign does not run: it is {facts.campaign}"


def _maintenance(facts: Facts) -> str | None:
    for touch in facts.touches:
        return f"maintenance of {touch.name} by {touch.owner}: {touch.reason}"
    return None


def _protected(facts: Facts) -> str | None:
    name = matching(facts.protected_classes, [facts.request_class])
    return None if name is None else f"the class is protected: {name}"


def _bystanders(facts: Facts) -> str | None:
    return None if facts.beside is None else f"bystanders are hurt: {facts.beside}"


def _cool_down(facts: Facts) -> str | None:
    if facts.cooling is None:
        return None
    return f"an experiment on the same service or system has just ended: {facts.cooling}"


def _alone(facts: Facts) -> str | None:
    if facts.alone is None:
        return None
    return f"bystanders were hurt lately, so experiments run one at a time: {facts.alone} runs"


def _steady(facts: Facts) -> str | None:
    if facts.success_rate >= facts.steady:
        return None
    return f"steady state does not hold: {facts.success_rate:.0%} succeed"


def _known(facts: Facts) -> str | None:
    if facts.outcomes is None or facts.outcomes >= STEADY_LEAST:
        return None
    return (
        f"steady state is not known: {facts.outcomes} outcomes came in the last "
        f"{STEADY_SECONDS / 60:.0f} minutes, it takes {STEADY_LEAST}"
    )


def _unheard(facts: Facts) -> str | None:
    return facts.unheard


def _concurrency(facts: Facts) -> str | None:
    if facts.running < facts.may_run:
        return None
    return f"{facts.running} experiments run already, at most {facts.may_run} may"


def _on_class(facts: Facts) -> str | None:
    if facts.on_class is None:
        return None
    return f"another experiment runs on this class: {facts.on_class}"


def _budget(facts: Facts) -> str | None:
    budget = facts.budget
    if budget is None or budget.left >= budget.least:
        return None
    return f"budget spent: {max(0, budget.left)} members are left of the {budget.name}"


BUDGET: Final = Guard(
    "budgets",
    "Of the members of this run, of the last hour and of the last day as many are left as a "
    "verdict needs.",
    _budget,
)

BYSTANDERS: Final = Guard(
    "bystanders",
    "Requests that nobody injects into, of any class that reaches the same service or system, "
    "fail no more than before; nor do they still after the last experiment there.",
    _bystanders,
    "class",
    armed=True,
)

GUARDS: Final = (
    Guard("kill switch", "Nothing is halted.", _halted, "campaign", armed=True),
    Guard("guardrails", "Every guardrail holds and can be asked.", _breach, "campaign", armed=True),
    Guard("calendar", "The campaign's calendar is open.", _calendar, "campaign", armed=True),
    Guard("edges", "An edge has asked for rules within the last lease.", _edges, "campaign"),
    Guard("campaign", "The campaign runs, on record: nobody has paused or stopped it.", _campaign),
    Guard(
        "maintenance windows",
        "No open window touches what is injected into, or what the class usually calls.",
        _maintenance,
        armed=True,
    ),
    Guard("protected classes", "The class is not protected.", _protected, "class"),
    BYSTANDERS,
    Guard(
        "cool-down",
        "No experiment that injected into the same service or system was disarmed within "
        f"{COOL:.0%} of its campaign's `apart`, which is 3 seconds by default.",
        _cool_down,
    ),
    Guard(
        "one at a time",
        f"Where bystanders were hurt within {LONGEST / 60:g} minutes, nothing else that reaches "
        "the same is experimented on.",
        _alone,
        "class",
    ),
    Guard(
        "recent outcomes",
        f"Of the class's requests that nobody injects into, at least {STEADY_LEAST} outcomes came "
        f"in within the last {STEADY_SECONDS / 60:.0f} minutes.",
        _known,
        "class",
    ),
    Guard(
        "reports",
        "Devices report on so many of the class's requests that *tolerated* can be shown with the "
        "campaign's `members`.",
        _unheard,
        "class",
    ),
    Guard(
        "steady state",
        f"Of the newest of these (at most {STEADY_OUTCOMES}), at least the campaign's `steady` "
        f"succeed, which is {STEADY:.0%} by default.",
        _steady,
        "class",
        armed=True,
    ),
    Guard("concurrency", "Fewer experiments run than may run at once.", _concurrency),
    Guard("one experiment a class", "No other experiment runs on the class.", _on_class),
    BUDGET,
)

CONTROL_GROUP: Final = (
    "control group",
    "No more devices of the control group fail than the campaign's `guardrail` would explain: "
    "one time in a hundred at most it is stopped by chance.",
)
"""An experiment watches its own control group (``Experiment.review``): name and meaning."""
