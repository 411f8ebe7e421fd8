"""Why-provenance: for a fact, the alternative sets of events it was derived from.

A fact is represented by its proofs, each a mask of events (a message that arrived, a node that
stayed up). No proof means that the fact does not hold; the empty proof, that it needs nothing.
Only minimal proofs are kept, and not more than :data:`KEPT`: fewer proofs make a run teach less,
never something wrong.
"""

from __future__ import annotations

from typing import TypeAlias

Proofs: TypeAlias = tuple[int, ...]
FALSE: Proofs = ()
TRUE: Proofs = (0,)
KEPT = 60


def either(*facts: Proofs) -> Proofs:
    """Combine the proofs of a disjunction."""
    return _minimal({proof for fact in facts for proof in fact})


def both(*facts: Proofs) -> Proofs:
    """Combine the proofs of a conjunction."""
    result = TRUE
    for fact in facts:
        if fact != TRUE:
            result = _minimal({one | other for one in result for other in fact})
    return result


def _minimal(proofs: set[int]) -> Proofs:
    if len(proofs) < 2:
        return tuple(proofs)
    kept: list[int] = []
    for proof in sorted(proofs, key=lambda p: (p.bit_count(), p)):
        if not any(small & proof == small for small in kept):
            kept.append(proof)
            if len(kept) == KEPT:
                break
    return tuple(kept)
