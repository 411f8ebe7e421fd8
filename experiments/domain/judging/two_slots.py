"""One proof over two slots: what is announced has hurt at two different times.

A finding's first experiment needs evidence of 20 and two failures, and so does its second, some
time later. Both are e-values, the second whatever happened in the first, so their product is one as
well; it has to reach 1/level, where the level is that of e-LOND at the first slot (Vovk and Wang,
"E-values: Calibration, combination and applications", Annals of Statistics 2021, on products of
sequential e-values). So few failures are enough in either, and no single incident makes a finding.
A set too large to be a finding confirms nobody: it needs no more than a slot does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ldfi.checker.record import ProofSlot
from ldfi.experiments.domain.settings import Settings

SLOT: Final = 0.05
"""One over the evidence that either slot needs by itself."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What the first slot left: the natural logarithm of its evidence, and its level."""

    evidence: float
    level: float


def slot_of(purpose: str, settings: Settings) -> ProofSlot:
    """Return which slot an experiment for this purpose is, or that it has to prove all alone."""
    if not settings.confirm or purpose == "verify" or settings.promql is not None:
        return "alone"
    return "second" if purpose == "confirm" else "first"


def risked(purpose: str, settings: Settings, level: float | None, opening: Opening | None) -> float:
    """Return how seldom an experiment for this purpose may be called harmful by chance. ``level``:
    of e-LOND, if it has one."""
    slot = slot_of(purpose, settings)
    alone = min(1.0 if level is None else level, settings.alpha_harmful)
    if slot == "alone":
        return alone
    return alpha(alone, confirms=slot == "second", opening=opening)


def alpha(alone: float, *, confirms: bool, opening: Opening | None) -> float:
    """Return how seldom an experiment of a possible finding may be called harmful by chance.

    ``alone``: its level if it were to prove everything by itself. ``confirms``: whether it is the
    second slot; ``opening`` is what is known of the first.
    """
    if not confirms:
        return max(alone, SLOT)
    if opening is None:
        return alone
    return min(SLOT, opening.level * math.exp(opening.evidence))
