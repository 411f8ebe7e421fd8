"""What is known when the guards are asked (:mod:`ldfi.experiments.domain.gates.guards`).

Plain values, gathered by whoever asks: some are on record, some only the leader knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ldfi.experiments.domain.campaign.exploration import Exploration
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import STEADY


@dataclass(frozen=True, slots=True)
class Touch:
    """An open maintenance window, and the ``name`` of the experiment's that it has down."""

    name: str
    owner: str
    reason: str


@dataclass(frozen=True, slots=True)
class BudgetLeft:
    """The tightest budget: members ``left`` of it, and the ``least`` that could give a verdict."""

    name: str
    left: int
    least: int


@dataclass(frozen=True, slots=True)
class Facts:
    """By default nothing stands in the way: a fact that has not been gathered forbids nothing.

    ``halted``, ``breach``, ``closed``: why everything is halted, which guardrail does not hold, why
    the campaign's calendar is closed. ``edges``: how many ask for rules. ``campaign``: its state.
    ``success_rate``: of the class's bystanders of late, between 0 and 1; ``outcomes``: how many
    they are; ``steady``: which success rate is asked for. ``protected_classes``: patterns.
    ``unheard``: why devices report on too few of its requests for *tolerated*.
    ``running``: experiments that are armed, of which at most ``may_run`` may; ``on_class``: the one
    among them that is on the same class. ``beside``: how bystanders are hurt, by this experiment
    or by one that is over and that reached the same; ``cooling``: one that injected into the
    same until just now; ``alone``: one that runs where bystanders were hurt lately.
    """

    halted: str | None = None
    breach: str | None = None
    closed: str | None = None
    edges: int = 1
    campaign: str = "running"
    request_class: str = ""
    protected_classes: tuple[str, ...] = ()
    success_rate: float = 1.0
    steady: float = STEADY
    outcomes: int | None = None
    unheard: str | None = None
    touches: tuple[Touch, ...] = ()
    beside: str | None = None
    cooling: str | None = None
    alone: str | None = None
    running: int = 0
    may_run: int = 1
    on_class: str | None = None
    budget: BudgetLeft | None = None


def touches(
    windows: Iterable[Maintenance], experiment: Experiment, exploration: Exploration | None
) -> tuple[Touch, ...]:
    """Return what these windows have in common with an experiment.

    Not only what it injects into: whatever its class relies on may be about to go away, and then
    one more failure could be one too many.
    """
    found = []
    for window in windows:
        points = {fault.point for fault in experiment.faults}
        callees: dict[str, str] = {}
        if exploration is not None:
            points |= exploration.knowledge.traffic.usually_called()
            callees = exploration.knowledge.traffic.topology.callees
        name = window.touches(sorted(points), callees)
        if name is not None:
            found.append(Touch(name, window.owner, window.reason))
    return tuple(found)
