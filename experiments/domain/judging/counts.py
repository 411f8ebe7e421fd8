"""Counts devices, in the one vocabulary that answers, commands, pages and notices share."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Final

from ldfi.experiments.domain.judging.experiment import Experiment


@dataclass(frozen=True, slots=True)
class DeviceCounts:
    """Devices of one experiment, or of several together: ``hurt`` ≤ ``reached`` ≤ ``treated`` ≤
    ``reserved``, and ``hurt`` ≤ ``failed``.

    ``reserved``: devices that it may treat at most, taken from the budget before it is armed.
    ``treated``: devices whose request got a failure context of the treatment arm.
    ``reached``: treated devices in whose request a fault fired.
    ``failed``: devices of either arm that reported a failure; of control, those compared.
    ``hurt``: treated devices that failed, whatever the verdict, also after it was given.
    ``bystanders_hurt``: devices that nobody drew, that met a fault all the same, and failed.
    ``unknown``: devices reserved by experiments of which nobody can say how many they treated.
    """

    reserved: int = 0
    treated: int = 0
    reached: int = 0
    failed: int = 0
    hurt: int = 0
    bystanders_hurt: int = 0
    unknown: int = 0

    def __add__(self, other: DeviceCounts) -> DeviceCounts:
        """Count both together."""
        return DeviceCounts(*(getattr(self, n) + getattr(other, n) for n in NAMES))

    @property
    def hurting(self) -> bool:
        """Return whether anybody is known to have been hurt, whatever the verdict."""
        return self.hurt > 0 or self.bystanders_hurt > 0

    def to_json(self) -> dict[str, int]:
        """Return them by name."""
        return asdict(self)


NAMES: Final = tuple(each.name for each in fields(DeviceCounts))


def counts_so_far(experiment: Experiment, reserved: int) -> DeviceCounts:
    """Count the devices of an experiment that is not over. ``reserved``: by its record."""
    reached, hurt = len(experiment.exposed), len(experiment.hurt)
    return DeviceCounts(
        reserved=reserved,
        treated=max(experiment.used, reached),  # edges say what they used a little later
        reached=reached,
        failed=hurt + experiment.arms["control"].failures,
        hurt=hurt,
        bystanders_hurt=len(experiment.bystanders.work.hurt),
    )
