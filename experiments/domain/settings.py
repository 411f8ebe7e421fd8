"""What an operator decides about a campaign."""

from __future__ import annotations

from dataclasses import dataclass, field

from experiments.domain.verdict import Thresholds
from fit.faults import FaultKind


@dataclass(frozen=True, slots=True)
class Settings:
    """Bounds and care. Times in seconds, shares between 0 and 1 of all devices.

    ``treatment`` and ``control``: the share of devices in either arm of an experiment.
    ``window``: how long an experiment may observe before it is called inconclusive.
    ``max_union``: how many faults one experiment may unite; None for no limit.
    ``member_budget``: devices that may be exposed to faults in the whole campaign.
    ``min_traffic``: good requests to see before a class is experimented on.
    ``delay``: how long a ``delay`` fault hangs where the caller sets no timeout.
    """

    max_size: int = 2
    kinds: tuple[FaultKind, ...] = ("error", "delay")
    strategy: str = "union"
    max_union: int | None = 10
    treatment: float = 0.05
    control: float = 0.05
    window: float = 30.0
    member_budget: int = 10_000
    min_traffic: int = 100
    delay: float = 10.0
    thresholds: Thresholds = field(default_factory=Thresholds)
    seed: int = 0
