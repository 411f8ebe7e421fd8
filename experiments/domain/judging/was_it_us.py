"""What was injected, as one asks afterwards: was it us?

Who asks has an incident and a window of time. The answer is never "yes": that devices were hurt in
it is known, that this was the incident is not. "No" is said only where it is certain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Literal

from ldfi.experiments.domain.judging.counts import DeviceCounts
from ldfi.experiments.domain.judging.experiment import ACTIVE, ExperimentState
from ldfi.experiments.domain.judging.sequential_tests import Verdict

WasIt = Literal["no", "perhaps"]


@dataclass(frozen=True, slots=True)
class Injected:
    """An experiment that was armed.

    ``until``: after which nothing of it is injected, for sure: its end, or that of its lease; None
    where neither is known. ``counts``: its devices, as far as anybody knows. ``lost``: nobody knows
    what it did, since it was abandoned.
    """

    id: str
    campaign_id: str
    request_class: str
    hypothesis: tuple[str, ...]
    state: ExperimentState
    verdict: Verdict | None
    reason: str
    since: float
    until: float | None
    counts: DeviceCounts
    lost: bool

    @property
    def running(self) -> bool:
        """Return whether it may still be injected somewhere."""
        return self.state in ACTIVE

    def within(self, since: float, until: float) -> bool:
        """Return whether it may have been injected at some time of this window."""
        return self.since <= until and (self.until is None or self.until >= since)


@dataclass(frozen=True, slots=True)
class Exposure:
    """What all experiments of a window did together.

    ``harmful``: experiments of that verdict; ``hurting``: those under which devices were hurt,
    whatever the verdict. ``counts``: their devices, as far as anybody knows.
    """

    experiments: int = 0
    harmful: int = 0
    running: int = 0
    lost: int = 0
    hurting: int = 0
    counts: DeviceCounts = field(default_factory=DeviceCounts)

    @classmethod
    def of(cls, injected: Iterable[Injected]) -> Exposure:
        """Sum it up."""
        found = list(injected)
        return cls(
            experiments=len(found),
            harmful=sum(each.verdict == "harmful" for each in found),
            running=sum(each.running for each in found),
            lost=sum(each.lost for each in found),
            hurting=sum(each.counts.hurting for each in found),
            counts=sum((each.counts for each in found), DeviceCounts()),
        )

    def __add__(self, other: Exposure) -> Exposure:
        """Take both together."""
        names = (each.name for each in fields(self))
        return Exposure(*(getattr(self, name) + getattr(other, name) for name in names))

    @property
    def answer(self) -> WasIt:
        """Answer *was it us?* A running one has not said yet."""
        suspect = self.harmful or self.hurting or self.running or self.lost
        return "perhaps" if suspect else "no"

    @property
    def words(self) -> str:
        """Say the same in a sentence."""
        if not self.experiments:
            return "No: nothing was injected."
        if self.answer == "no":
            ran = "one experiment" if self.experiments == 1 else f"{self.experiments:,} experiments"
            return f"No: {ran} ran, and hurt nobody."
        said = [self._harm()] if self.harmful or self.hurting else []
        if self.running:
            said.append(f"{_of(self.running, self.experiments)} may still be injecting")
        if self.lost:
            said.append(f"of {self.lost:,} nobody knows what came of it")
        return f"Perhaps: {', and '.join(said)}."

    def _harm(self) -> str:
        if not self.hurting:
            which = _of(self.harmful, self.experiments)
            return f"{which} was harmful" if self.harmful == 1 else f"{which} were harmful"
        return f"{_of(self.hurting, self.experiments)} hurt {self.hurt_in_words}"

    @property
    def hurt_in_words(self) -> str:
        """Say how many were hurt: ``3 devices and one bystander``."""
        return hurt_in_words(self.counts.hurt, self.counts.bystanders_hurt)


def hurt_in_words(hurt: int, bystanders: int) -> str:
    """Say how many devices were hurt, and bystanders apart; ``nobody`` only where none was."""
    said = [_counted(hurt, "device")] if hurt else []
    said += [_counted(bystanders, "bystander")] if bystanders else []
    return " and ".join(said) or "nobody"


def _counted(count: int, what: str) -> str:
    return f"one {what}" if count == 1 else f"{count:,} {what}s"


def _of(some: int, every: int) -> str:
    if every == 1:
        return "the one experiment"
    return f"{some:,} of {every:,} experiments"


@dataclass(frozen=True, slots=True)
class Bunch:
    """Experiments of one class and one verdict that were armed at about the same time.

    In step number ``step`` of time, counted from 1970 on.
    ``first``: the id of one of them; ``since``: when the first was armed.
    """

    request_class: str
    step: int
    verdict: Verdict | None
    first: str
    since: float
    exposure: Exposure

    @property
    def alone(self) -> bool:
        """Return whether it is one experiment."""
        return self.exposure.experiments == 1
