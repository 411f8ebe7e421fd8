"""How much a check may take, counted in operations, so that the same answer comes everywhere."""

from __future__ import annotations

from dataclasses import dataclass

ALLOWED = 5_000_000
"""Operations on sets of up to 4,096 faults: some two seconds."""
WORD = 4_096
FAULTS = 20_000
"""The most faults that a certificate may be about."""


class TooMuch(ValueError):  # noqa: N818
    """The check would take too long."""


@dataclass(slots=True)
class Effort:
    """What is left of it. ``weight``: what one operation counts, by how many faults there are."""

    left: int = ALLOWED
    weight: int = 1

    def weigh(self, faults: int) -> None:
        """Take operations from now on to be on sets of so many faults. Raises TooMuch for more
        than :data:`FAULTS`."""
        if faults > FAULTS:
            raise TooMuch(
                f"this certificate is about {faults} faults, and at most {FAULTS} are read"
            )
        self.weight = 1 + faults // WORD

    def spend(self, operations: int) -> None:
        """Count operations. Raises TooMuch when they are used up."""
        self.left -= operations * self.weight
        if self.left < 0:
            raise TooMuch("this certificate would take too long to check")
