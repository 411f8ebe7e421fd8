"""Allocation: which devices an experiment claims, and in which arm. Always the same ones.

An edge with a hundred armed experiments asks this a hundred times for every request, so a device
is digested once (:func:`mark_of`), and each experiment then places 30 bits of the digest on a range
of its own by multiplying and adding modulo 2⁶⁰, with factors drawn from its salt. The upper half of
the place is strongly universal: those of two devices whatsoever are uniform and independent
(Dietzfelbinger, "Universal hashing and k-wise independent random variables via integer arithmetic
without primes", STACS 1996). The sizes are those that Python multiplies fastest. Whoever lacks the
salt cannot choose a device's arm.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from ldfi.fit.protocol.context import Arm

RANGE: Final = 1 << 60
DEVICE_BITS: Final = (1 << 30) - 1

Segments = tuple[int, int, int, int]
"""Factor, summand, where treatment ends, where control begins."""


def mark_of(device: str) -> int:
    """Make 64 bits that stand for a device from here on; its identifier is not kept anywhere.

    Two of 200,000 devices share a mark with a chance of 10⁻⁹, and then count as one.
    """
    return int.from_bytes(blake2b(device.encode("utf-8", "replace"), digest_size=8).digest())


@lru_cache(maxsize=4096)
def _factors(salt: str) -> tuple[int, int]:
    digest = blake2b(salt.encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8]) % RANGE, int.from_bytes(digest[8:]) % RANGE


@dataclass(frozen=True, slots=True)
class Claim:
    """The devices of one experiment. ``treatment`` and ``control`` are shares of all, 0 to 1.

    The arms grow from opposite ends of the range, so that a wider share moves no device from one
    arm to the other.
    """

    salt: str
    treatment: float
    control: float
    segments: Segments = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        treated, control = int(self.treatment * RANGE), int(self.control * RANGE)
        segments = (*_factors(self.salt), treated, max(treated, RANGE - control))
        object.__setattr__(self, "segments", segments)

    def arm_of(self, mark: int) -> Arm | None:
        """Find the arm of a device, given by its mark; None for nearly every device."""
        factor, summand, treated, control = self.segments
        place = ((mark & DEVICE_BITS) * factor + summand) % RANGE
        if place < treated:
            return "treatment"
        return "control" if place >= control else None
