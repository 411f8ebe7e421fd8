"""What is presumed of a place that was seen to hurt, and was not tried in every way.

Faults of different kinds at one place are different variables, and what is known of one says
nothing of another. But a set that was seen to fail is a finding already: whoever mends it mends the
places, not the kind. So the same places with other kinds are not tried; they *stand as presumed
harmful*, which is neither harmful nor safe, and all that contains them is left aside with them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from itertools import product
from typing import TypeAlias

from ldfi.solver.bits import mask_of, members
from ldfi.solver.equation import Equation
from ldfi.solver.findings import minimal_failing_sets
from ldfi.solver.hypotheses import Hypotheses
from ldfi.solver.language import Language
from ldfi.solver.order import Fault, Faults

Place: TypeAlias = Callable[[Fault], Hashable | None]
"""Says where a fault happens; None of one that has no other kinds, such as a domain."""


def with_presumed(
    language: Language, equation: Equation, max_size: int | None, place: Place | None
) -> Hypotheses:
    """Return what is open, less what is presumed now; without ``place`` nothing is."""
    if place is not None:
        language.presume({})
        language.presume(presumed(Hypotheses(language, equation, max_size), place))
    return Hypotheses(language, equation, max_size)


def presumed(now: Hypotheses, place: Place) -> Mapping[Faults, Faults]:
    """List what is presumed harmful, and of which failing set; ``now`` presumes nothing yet.

    What is known is not presumed. Nor is a set that the failing one brings about as well: that may
    be what hurts, and is smaller.
    """
    kinds: dict[Hashable, list[int]] = {}
    for variable in members(now.selectable):
        kinds.setdefault(place(now.language.names[variable]), []).append(variable)
    found: dict[Faults, Faults] = {}
    for failing in minimal_failing_sets(now):
        whole, faults = now.expand(failing), now.language.faults(failing)
        for other in _exchanged(failing, now, kinds, place):
            brought_about = now.expand(other)
            if brought_about & ~whole and now.equation.is_open(brought_about):
                found.setdefault(now.language.faults(other), faults)
    return found


def _exchanged(
    failing: int, now: Hypotheses, kinds: Mapping[Hashable, list[int]], place: Place
) -> list[int]:
    """List the same places with other kinds."""
    choices = []
    for variable in members(failing):
        where = place(now.language.names[variable])
        choices.append({variable} if where is None else {variable, *kinds.get(where, ())})
    made = {mask_of(each) for each in product(*map(sorted, choices))}
    return sorted(each for each in made if each.bit_count() == failing.bit_count())
