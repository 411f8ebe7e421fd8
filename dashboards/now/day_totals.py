"""What the experiments of the last day came to, kept once nothing of it can change.

A day may have ten thousand, and the first page shows all of them. Those that were armed longest ago
have ended for good: they are read once, and afterwards only what is new.
"""

from __future__ import annotations

import math
from typing import Final

from fastapi import Request
from sqlalchemy.orm import Session

from ldfi.experiments.domain.judging.was_it_us import Bunch
from ldfi.experiments.store import was_it_us as stored

EVERY: Final = 360.0
"""Seconds of a step. All that was armed in one, of one class and verdict, may be one mark."""


class DayKept:
    """Experiments that were armed ``_since`` a time and before ``_until``, both between steps."""

    def __init__(self) -> None:
        self._kept: list[Bunch] = []
        self._since = self._until = 0.0

    def bunches(self, session: Session, since: float, until: float) -> list[Bunch]:
        """List everything in a window that ends now, with one question for what is not kept."""
        whole = math.ceil(since / EVERY) * EVERY
        start = max(whole, self._since)
        known = (start, self._until) if start < self._until else None
        kept = [each for each in self._kept if known and each.step * EVERY >= start]
        found = kept + stored.bunches(session, since, until, EVERY, known)
        over = (until - stored.LONGEST) // EVERY
        over = min(over, *(each.step for each in found if each.exposure.running), math.inf)
        self._since, self._until = whole, over * EVERY
        self._kept = [each for each in found if whole <= each.step * EVERY < self._until]
        return found


def day_kept(request: Request) -> DayKept:
    """Return what this application keeps."""
    kept: DayKept = request.app.state.day_kept
    return kept
