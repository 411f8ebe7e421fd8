"""Rules: what the edge has been told to do, and the lease on which it was told.

A rule names one experiment: the request class it is about (a predicate), the shares of devices in
either arm, and the faults. Rules come as a lease of some seconds. When it is not renewed, because
the control plane is gone, or the network, or because it said stop, the edge goes quiet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from fit.context import DEFAULT_DELAY_MS, Arm
from fit.faults import Fault
from fit.features import Features
from fit.predicate import Predicate


@dataclass(frozen=True, slots=True)
class Rule:
    """One armed experiment. ``treatment`` and ``control`` are shares of all devices, 0 to 1."""

    experiment: str
    salt: str
    predicate: Predicate
    treatment: float
    control: float
    faults: tuple[Fault, ...]
    delay_ms: int = DEFAULT_DELAY_MS

    def arm_of(self, device: str) -> Arm | None:
        """The arm a device falls in, always the same one; None for nearly every device.

        The shares grow from opposite ends of the hash's range, so that widening one of them
        moves no device from one arm to the other.
        """
        place = _place(self.salt, device)
        if place < self.treatment:
            return "treatment"
        return "control" if place >= 1 - self.control else None

    def to_json(self) -> dict[str, Any]:
        """As the control plane hands it to the edge."""
        return {
            "experiment": self.experiment,
            "salt": self.salt,
            "predicate": self.predicate.to_json(),
            "treatment": self.treatment,
            "control": self.control,
            "faults": [str(fault) for fault in self.faults],
            "delay_ms": self.delay_ms,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Rule:
        """Read what :meth:`to_json` wrote. Raises KeyError, TypeError or ValueError."""
        return cls(
            experiment=str(data["experiment"]),
            salt=str(data["salt"]),
            predicate=Predicate.from_json(data["predicate"]),
            treatment=float(data["treatment"]),
            control=float(data["control"]),
            faults=tuple(Fault.parse(text) for text in data["faults"]),
            delay_ms=int(data["delay_ms"]),
        )


def _place(salt: str, device: str) -> float:
    digest = blake2b(device.encode("utf-8", "replace"), key=salt.encode()[:64], digest_size=8)
    return int.from_bytes(digest.digest()) / 2**64


@dataclass(frozen=True, slots=True)
class Lease:
    """Rules and the Unix time at which they end. The empty lease arms nothing."""

    rules: tuple[Rule, ...] = ()
    ends: float = 0.0
    version: str = field(default="")

    def allocate(self, features: Features, device: str) -> tuple[Rule, Arm] | None:
        """The experiment and arm of one request, or None.

        A device belongs to the first rule that claims it, even for requests of another class: so
        no device is ever in two experiments.
        """
        for rule in self.rules:
            arm = rule.arm_of(device)
            if arm is not None:
                return (rule, arm) if rule.predicate.holds(features) else None
        return None


def read_lease(document: dict[str, Any], asked_at: float) -> Lease:
    """Read the control plane's answer; the lease counts from when the question was asked.

    Raises KeyError, TypeError or ValueError for a document that is none of ours.
    """
    rules: Sequence[dict[str, Any]] = document["rules"]
    return Lease(
        rules=tuple(map(Rule.from_json, rules)),
        ends=asked_at + float(document["lease_seconds"]),
        version=str(document["version"]),
    )
