"""What an operator decides: about one campaign, and about the service as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ldfi.fit.faults import FaultKind

VerdictRule = Literal["sequential", "threshold"]
OnDrift = Literal["reopen", "pause", "ignore"]


@dataclass(frozen=True, slots=True)
class PromqlOutcome:
    """Two PromQL expressions that count requests of one arm: all, and those that failed.

    ``$experiment`` and ``$arm`` (``control`` or ``treatment``) stand in them for what is asked
    about, so the series must carry both as labels; :func:`fit.current` tells a service what it
    serves. Counters: they may only rise.
    """

    failures: str
    total: str


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When evidence is enough.

    ``alpha_harmful`` and ``alpha_tolerated`` bound the chance of either wrong verdict; ``delta`` is
    the rise in failure rate that would matter; no verdict comes before both arms have
    ``min_samples`` outcomes. Raises ValueError for values outside of (0, 1) or below 1.
    """

    alpha_harmful: float = 1e-3
    alpha_tolerated: float = 0.05
    delta: float = 0.25
    min_samples: int = 10

    def __post_init__(self) -> None:
        for name in ("alpha_harmful", "alpha_tolerated", "delta"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be between 0 and 1")
        if self.min_samples < 1:
            raise ValueError(f"min_samples is {self.min_samples}; it must be at least 1")


@dataclass(frozen=True, slots=True)
class Settings:
    """Bounds and care of a campaign. Times in seconds, shares between 0 and 1 of all devices.

    What is looked for: ``max_size`` faults at most, of these ``kinds``; ``delay`` is how long a
    ``delay`` fault hangs where the caller sets no timeout. ``strategy``, ``seed``, and
    ``max_union``, how many faults one experiment may unite (None: no limit).

    Who is exposed: ``treatment`` and ``control``, the share of devices in either arm;
    ``members``, how many devices one experiment may expose at most; ``member_budget``, how many
    all experiments of one run of the campaign may; ``concurrency``, how many experiments of the
    campaign run at once (one class at a time each).

    How it is judged: ``rule`` and ``thresholds``; ``fdr``, the share of findings that may be
    false; ``window``, how long an experiment may observe before it is called inconclusive;
    ``settle``, how long it waits afterwards for devices that report late. ``confirm``: a finding
    is announced when a second experiment of its own has hurt as well. ``verify``: known findings
    of the classes are tried again in every run, as many as the budget has room for. ``rechecks``:
    how many sets that were only inferred to be safe are tried per class, to measure how far "more
    faults never help" holds.

    Which classes: those with ``min_traffic`` good requests, and a share of ``min_consistency`` of
    them with the same support. ``on_drift``: what becomes of a class whose lineage changed.

    ``guardrail``: share of control devices that may see a failure before the experiment is called
    off. ``promql``: where outcomes are counted by somebody else; None: what devices report.
    ``approve_above``: experiments that may hurt more members than this, as far as one can
    tell beforehand, wait for an operator's approval; None: none does.
    """

    max_size: int = 2
    kinds: tuple[FaultKind, ...] = ("error", "delay")
    strategy: str = "union"
    max_union: int | None = 10
    seed: int = 0
    delay: float = 10.0
    treatment: float = 0.05
    control: float = 0.05
    members: int = 100
    member_budget: int = 10_000
    concurrency: int = 3
    rule: VerdictRule = "sequential"
    thresholds: Thresholds = field(default_factory=Thresholds)
    fdr: float = 0.05
    window: float = 25.0
    settle: float = 5.0
    confirm: bool = True
    verify: bool = True
    rechecks: int = 2
    min_traffic: int = 100
    min_consistency: float = 0.95
    on_drift: OnDrift = "reopen"
    guardrail: float = 0.3
    promql: PromqlOutcome | None = None
    approve_above: float | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What holds for all campaigns together, whoever started them.

    ``max_concurrent`` experiments at once; ``members_per_hour`` and ``members_per_day`` devices
    exposed within any 60 minutes and any 24 hours. ``protected_points`` are never injected into,
    ``protected_classes`` never experimented on; both are patterns with ``*``.
    """

    max_concurrent: int = 5
    members_per_hour: int = 1_000
    members_per_day: int = 5_000
    protected_points: tuple[str, ...] = ()
    protected_classes: tuple[str, ...] = ()
