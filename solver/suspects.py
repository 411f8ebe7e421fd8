"""Blame: a failed run names suspects, and each is worth one experiment.

Whatever comes of that experiment, the suspect is not tried again: blame proposes, only an
experiment confirms.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ldfi.solver.reduce import extend
from ldfi.solver.search import Search


@dataclass(frozen=True, slots=True)
class _Suspect:
    failing: int
    blamed: int


@dataclass(slots=True)
class Suspects:
    """Sets of variables blamed for a failure, the latest last.

    ``mute``: whether the last failure of more than one fault named none. ``named``: what was blamed
    out of more that failed with it.
    """

    mute: bool = False
    named: set[int] = field(default_factory=set)
    _suspects: list[_Suspect] = field(default_factory=list)

    def add(self, blamed: int, failing: int) -> None:
        """Suspect these variables, if any, of the failure of these point faults (masks)."""
        if failing.bit_count() > 1:
            self.mute = not blamed
        if blamed:
            self._suspects.append(_Suspect(failing, blamed))
            if failing.bit_count() > blamed.bit_count():
                self.named.add(blamed)

    def acquit(self, tried: int, expansion: int) -> None:
        """Drop whom an experiment on these variables tried, unless more was known to fail.

        ``expansion``: the point faults that the variables stand for.
        """
        self._suspects = [
            suspect
            for suspect in self._suspects
            if suspect.blamed & ~tried or not suspect.failing & ~expansion
        ]

    def next(self, search: Search) -> int | None:
        """Return the next suspect to be tried, the latest first; None if there is none.

        A suspect that cannot be tried just now is passed over; one that is larger than the bound
        is left to ``search``, so that strategies do not take all of it at once. Asking changes
        nothing: who learns the same again is told the same.
        """
        now = search.now
        for suspect in reversed(self._suspects):
            tried = extend(suspect.blamed, suspect.failing, search)
            if tried is not None and now.is_open(tried) and tried not in search.attempts:
                if search.fits(tried):
                    return tried
                search.suspected.append(tried)
        return None
