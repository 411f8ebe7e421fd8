"""Uniformly among the smallest open hypotheses: the published method, and the most cautious.

A fault set is never larger than it must be. The price is one experiment for nearly every
combination of calls that turn out to be optional.
"""

from __future__ import annotations

from ldfi.solver.search import Search


class Smallest:
    """See the module."""

    def choose(self, search: Search) -> int | None:
        """Choose one of the smallest hypotheses; ties are broken at random."""
        found = search.smallest()
        return search.rng.choice(found) if found else None
