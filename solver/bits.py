"""Sets of small integers as Python integers: union, intersection and inclusion in one operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def members(mask: int) -> Iterator[int]:
    """List the positions of the bits that are set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def mask_of(positions: Iterable[int]) -> int:
    """Make the mask with exactly these bits set."""
    mask = 0
    for position in positions:
        mask |= 1 << position
    return mask


def without_supersets(masks: Iterable[int]) -> list[int]:
    """Keep the inclusion-minimal masks, smallest first."""
    kept: list[int] = []
    for mask in sorted(set(masks), key=lambda m: (m.bit_count(), m)):
        if not any(small & mask == small for small in kept):
            kept.append(mask)
    return kept
