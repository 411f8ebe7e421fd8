"""What must hold before an experiment is armed, and while it runs (design, section 9).

Budgets, concurrency and the kill switch are looked at once more in the transaction that arms
(``store.arming``): there they hold for several schedulers as well. What is here is about the class
and its points.
"""

from __future__ import annotations

from collections.abc import Iterable

from ldfi.experiments.domain.campaign.exploration import Exploration
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.domain.traffic.patterns import matching

STEADY = 0.9
"""No experiment starts or goes on in a class whose bystanders' success rate is below this."""


def class_obstacle(exploration: Exploration, limits: Limits) -> str | None:
    """Say why no experiment may start on this class now; None when one may."""
    if matching(limits.protected_classes, [exploration.knowledge.name]) is not None:
        return "the class is protected"
    return unsteady(exploration)


def unsteady(exploration: Exploration) -> str | None:
    """Say why the class's steady state does not hold; None when it does."""
    rate = exploration.knowledge.traffic.success_rate()
    return f"steady state does not hold: {rate:.0%} succeed" if rate < STEADY else None


def touched(
    window: Maintenance, experiment: Experiment, exploration: Exploration | None
) -> str | None:
    """Name what of the experiment a maintenance window touches; None when nothing.

    Not only what it injects into: whatever the class relies on may be about to go away, and then
    one more failure could be one too many.
    """
    points = {fault.point for fault in experiment.faults}
    callees: dict[str, str] = {}
    if exploration is not None:
        points |= exploration.knowledge.traffic.usually_called()
        callees = exploration.knowledge.traffic.topology.callees
    return window.touches(sorted(points), callees)


def first_window(
    windows: Iterable[Maintenance], experiment: Experiment, exploration: Exploration | None
) -> str | None:
    """Say why a maintenance window that has been opened must end a running experiment."""
    for window in windows:
        name = touched(window, experiment, exploration)
        if name is not None:
            return f"maintenance of {name} by {window.owner}: {window.reason}"
    return None
