"""How badly a class may fare by itself, for a while: its worst spell of late.

Failures come in bursts: a network is bad, a host is replaced. What share fails on average, or among
the newest, then says little of what the next seconds may bring, and outcomes shuffled are no
measure of it either: that would take the bursts apart. So outcomes are kept in the order in which
they came, by the piece, and what is compared with is the worst of all runs of so many. Whatever it
is that makes failures come together, of m + 1 such spells that are alike the last one is worse than
all before with a chance of 1 / (m + 1) at most.

What came beside an experiment counts when that is over and was found to hurt nobody: what one does
to others must not pass for nature.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

LENGTH: Final = 200
"""Outcomes that make up a spell."""
PIECE_OUTCOMES, PIECE_SECONDS = 20, 1.0
"""A piece has so many outcomes at least, and takes so long."""
PIECES: Final = 600
"""Pieces that are kept: ten minutes of a busy class."""
OLDEST: Final = 1_800.0
"""How old they may be, in seconds."""
AGAIN: Final = 60.0
"""Seconds for which a device that has failed is not counted as failing again."""
FAILING: Final = 200
"""Devices that are remembered for that."""


class Spell(NamedTuple):
    """``failed`` of ``total`` requests that came one after another."""

    failed: int
    total: int


@dataclass(slots=True)
class _Piece:
    began: float
    total: int = 0
    failed: int = 0


@dataclass(slots=True)
class Baseline:
    """Of one class. Not kept over a restart: it is soon known anew."""

    _pieces: deque[_Piece] = field(default_factory=lambda: deque(maxlen=PIECES))
    _failed: dict[str, float] = field(default_factory=dict)
    """Device → when its failure was counted last, the newest at the end."""

    def add(self, device: str, now: float, *, success: bool) -> None:
        """Take in one outcome. A device that fails again and again is one failure."""
        if not success and now < self._failed.get(device, -AGAIN) + AGAIN:
            return
        piece = self._pieces[-1] if self._pieces else None
        if piece is None or (piece.total >= PIECE_OUTCOMES and now >= piece.began + PIECE_SECONDS):
            piece = _Piece(now)
            self._pieces.append(piece)
        piece.total += 1
        if not success:
            piece.failed += 1
            self._failed.pop(device, None)
            self._failed[device] = now
            if len(self._failed) > FAILING:
                del self._failed[next(iter(self._failed))]

    def take(self, later: Baseline) -> None:
        """Take in what came after all this."""
        self._pieces.extend(later._pieces)
        self._failed |= later._failed
        for device in list(self._failed)[:-FAILING]:
            del self._failed[device]

    def copy(self) -> Baseline:
        """Copy it as it stands."""
        return Baseline(deque(map(replace, self._pieces), maxlen=PIECES), self._failed.copy())

    def worst(self, now: float) -> Spell:
        """Return the spell in which most failed, of those of late; all there is where that is less
        than one."""
        while self._pieces and self._pieces[0].began < now - OLDEST:
            self._pieces.popleft()
        spell = worst = Spell(0, 0)
        first = 0
        for piece in self._pieces:
            spell = Spell(spell.failed + piece.failed, spell.total + piece.total)
            while spell.total - (oldest := self._pieces[first]).total >= LENGTH:
                spell = Spell(spell.failed - oldest.failed, spell.total - oldest.total)
                first += 1
            whole = spell.total >= LENGTH
            if not whole or worst.total < LENGTH or worse(spell, worst):
                worst = spell
        return worst


def worse(spell: Spell, than: Spell) -> bool:
    """Return whether a larger share of it failed."""
    return spell.failed * than.total > than.failed * spell.total
