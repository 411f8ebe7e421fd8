"""What the page of an experiment tells: what was tried on whom, how it went and why it stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from ldfi.analysis.phrases import others_alone, said_fault, said_outcome
from ldfi.dashboards.curves import evidence_picture, thresholds_of
from ldfi.dashboards.run_tree import SideBySide, alone, side_by_side
from ldfi.experiments.api.experiment_view import ExperimentView
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.queries.wording import outcome_in_a_sentence
from ldfi.lineage.run_summary import Runs

REASONS = {
    "evidence": "The evidence was enough.",
    "window over": "Its time was up.",
    "members used up": "All devices that it might treat had been treated.",
    "no fault fired": "None of the failures was met by any request that counted.",
}


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm as a row of figures. Shares between 0 and 1, latencies in seconds."""

    name: str
    devices: int
    failures: int
    rate: float | None
    interval: tuple[float, float] | None
    latency: Mapping[str, float] | None


@dataclass(frozen=True, slots=True)
class Now:
    """What changes while it runs."""

    view: ExperimentView
    verdict: str
    why: str
    saw: str
    arms: tuple[Arm, ...]
    difference: float | None
    difference_interval: tuple[float, float] | None
    confidence: float
    curve: list[Any]
    over: bool

    @property
    def beyond(self) -> int:
        """Devices that were hurt beyond those that failed in the comparison."""
        compared = next((arm.failures for arm in self.arms if arm.name == "treatment"), 0)
        return max(0, self.view.devices.hurt - compared)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """log₁₀ of the evidence at which either test decides."""

    harmful: float
    tolerated: float


def now_of(view: ExperimentView) -> Now:
    """Show an experiment as it stands."""
    counts = view.counts
    verdict = "inconclusive" if others_alone(view.verdict, counts) else view.verdict
    arms = tuple(_arm(name, counts[name]) for name in ("control", "treatment") if name in counts)
    return Now(
        view=view,
        verdict=outcome_in_a_sentence(
            verdict or view.state, view.devices.hurt, view.devices.bystanders_hurt
        ),
        why=REASONS.get(view.reason, view.reason[:1].upper() + view.reason[1:]),
        saw=said_outcome(counts, view.verdict),
        arms=arms,
        difference=counts.get("difference"),
        difference_interval=_interval(counts.get("difference_interval")),
        confidence=counts.get("confidence", 0.95),
        curve=counts.get("curve", []),
        over=view.state in {"decided", "aborted"},
    )


def thresholds(settings: Settings | None, view: ExperimentView) -> Thresholds | None:
    """Say what the evidence had to reach; None where it was not weighed (rule ``threshold``)."""
    if settings is None or settings.rule != "sequential":
        return None
    return Thresholds(*thresholds_of(settings, view.level, view.counts.get("alpha")))


def evidence_of(now: Now, decides: Thresholds | None) -> Markup | None:
    """Draw the evidence, where there is any."""
    if decides is None or len(now.curve) < 2:
        return None
    return evidence_picture(now.curve, decides.harmful, decides.tolerated)


def said_faults(view: ExperimentView, callees: Mapping[str, str]) -> list[str]:
    """Say in words what was tried."""
    return [said_fault(fault, callees) for fault in view.hypothesis]


def runs_beside(runs: Runs) -> SideBySide | None:
    """Draw the requests that were kept; a treated one is also shown by itself."""
    if runs.treated is None:
        return None
    if runs.control is None:
        return SideBySide([], alone(runs.treated))
    return side_by_side(runs.control, runs.treated)


def _arm(name: str, arm: Mapping[str, Any]) -> Arm:
    return Arm(
        name,
        arm["devices"],
        arm["failures"],
        arm["failure_rate"],
        _interval(arm["failure_rate_interval"]),
        arm["latency"],
    )


def _interval(bounds: Any) -> tuple[float, float] | None:
    return None if bounds is None else (bounds[0], bounds[1])
