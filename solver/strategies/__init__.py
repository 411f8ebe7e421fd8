"""Strategies: which experiment next. A strategy is one class with one method, in one file."""

from __future__ import annotations

from typing import Protocol

from ldfi.solver.search import Search


class Strategy(Protocol):
    """Chooses the next experiment among what is open."""

    def choose(self, search: Search) -> int | None:
        """Choose a set of variables (mask) that contains an open hypothesis; None if nothing is
        left."""
