"""A Merkle tree that only grows, as certificate transparency has it (RFC 9162, section 2.1).

Leaves are hashed with 0x00 before them and nodes with 0x01, so that none is ever taken for the
other. A tree is read by its *complete* nodes: (level, index) names the root of the 2^level leaves
from index·2^level on, and never changes again once all of these are there. So appending a leaf,
the root, and every proof take about as many nodes as the tree has levels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

Node = Callable[[int, int], bytes]
"""Looks a complete node up, by level and index."""

EMPTY = hashlib.sha256(b"").digest()
"""The root of a tree without leaves."""


def leaf(entry: bytes) -> bytes:
    """Hash an entry."""
    return hashlib.sha256(b"\x00" + entry).digest()


def joined(left: bytes, right: bytes) -> bytes:
    """Hash two nodes."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def completed(number: int, hashed: bytes, node: Node) -> list[bytes]:
    """List the nodes that leaf ``number`` completes, from itself upwards: they are to be kept."""
    made = [hashed]
    while number >> (len(made) - 1) & 1:
        level = len(made) - 1
        made.append(joined(node(level, (number >> level) - 1), made[-1]))
    return made


def lookup(leaves: Sequence[bytes]) -> Node:
    """Make a tree in memory of the hashes of its leaves."""
    nodes: dict[tuple[int, int], bytes] = {}

    def node(level: int, index: int) -> bytes:
        return nodes[level, index]

    for number, hashed in enumerate(leaves):
        made = completed(number, hashed, node)
        nodes |= {(level, number >> level): each for level, each in enumerate(made)}
    return node


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Compute the root over the hashes of leaves, and keep no node: what has no other to its
    right goes up as it is."""
    row = list(leaves) or [EMPTY]
    while len(row) > 1:
        pairs = [joined(row[place], row[place + 1]) for place in range(0, len(row) - 1, 2)]
        row = [*pairs, row[-1]] if len(row) & 1 else pairs
    return row[0]


def replaced(number: int, size: int, hashed: bytes, node: Node) -> list[tuple[int, int, bytes]]:
    """List the nodes (level, index, hash) that change where leaf ``number`` of ``size`` becomes
    another or is added as the last, from itself up to the root.

    ``node`` looks up what stands beside them, complete or not: a node without another to its right
    goes up as it is, which makes the tree of RFC 9162.
    """
    made = [(0, number, hashed)]
    level, index, width = 0, number, size
    while width > 1:
        beside = index ^ 1
        if beside < width:
            other = node(level, beside)
            hashed = joined(other, hashed) if index & 1 else joined(hashed, other)
        level, index, width = level + 1, index >> 1, (width + 1) >> 1
        made.append((level, index, hashed))
    return made


def root(size: int, node: Node) -> bytes:
    """Compute the root of the first ``size`` leaves."""
    return _range(0, size, node) if size else EMPTY


def inclusion(number: int, size: int, node: Node) -> list[bytes]:
    """Make the proof that leaf ``number`` is among the first ``size``: the nodes beside its way."""
    if not 0 <= number < size:
        raise ValueError(f"there is no leaf {number} among {size}")
    start, end, path = 0, size, list[bytes]()
    while end - start > 1:
        middle = start + _split(end - start)
        if number < middle:
            path.append(_range(middle, end, node))
            end = middle
        else:
            path.append(_range(start, middle, node))
            start = middle
    return path[::-1]


def consistency(before: int, size: int, node: Node) -> list[bytes]:
    """Make the proof that the first ``before`` leaves are still the first of ``size``."""
    if not 0 <= before <= size:
        raise ValueError(f"a tree of {size} leaves never grew from one of {before}")
    if before in {0, size}:
        return []
    start, end, whole, path = 0, size, True, list[bytes]()
    while before != end:
        middle = start + _split(end - start)
        if before <= middle:
            path.append(_range(middle, end, node))
            end = middle
        else:
            path.append(_range(start, middle, node))
            start, whole = middle, False
    return [*([] if whole else [_range(start, end, node)]), *path[::-1]]


def included(hashed: bytes, number: int, size: int, path: Sequence[bytes], head: bytes) -> bool:
    """Return whether a path proves that a leaf is in the tree of this root (RFC 9162, 2.1.3.2)."""
    if not 0 <= number < size:
        return False
    fn, sn, found = number, size - 1, hashed
    for each in path:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            found = joined(each, found)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            found = joined(found, each)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and found == head


def consistent(before: int, size: int, path: Sequence[bytes], earlier: bytes, later: bytes) -> bool:
    """Return whether a path proves that one tree grew from the other (RFC 9162, 2.1.4.2)."""
    if before == size:
        return not path and earlier == later
    if before == 0:
        return not path and earlier == EMPTY
    if not 0 < before < size or not path:
        return False
    way = list(path) if before & (before - 1) else [earlier, *path]
    fn, sn = before - 1, size - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    first = second = way[0]
    for each in way[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            first, second = joined(each, first), joined(each, second)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            second = joined(second, each)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and first == earlier and second == later


def _split(count: int) -> int:
    """Find the largest power of two below ``count``."""
    return 1 << (count - 1).bit_length() - 1


def _range(start: int, end: int, node: Node) -> bytes:
    """Hash the leaves from ``start`` to ``end``, which begins where the tree has a node."""
    count = end - start
    if not count & (count - 1):
        level = count.bit_length() - 1
        return node(level, start >> level)
    middle = start + _split(count)
    return joined(_range(start, middle, node), _range(middle, end, node))
