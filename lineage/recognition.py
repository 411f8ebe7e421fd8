"""Recognising a trace: has one of exactly this shape been seen before?

A system answers the same requests over and over, and what their traces teach is the same each
time. So traces are numbered by shape, from the leaves up: the number of a subtree stands for its
operation and the *set* of numbers below it. A set, because everything a trace teaches is made of
unions: ten equal calls teach what one of them does, in whatever order they were made. A trace
whose root has a known number needs no tree.

Only whole and simple traces are recognised (one root, every span id once, no child before its
parent, no consumer, of which only its times tell whether somebody waited for it, nothing that began
when what it is inside of had ended); the others, a small part, are always looked at in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ldfi.lineage.message_waits import TICK
from ldfi.lineage.operation import Operation
from ldfi.lineage.span import Span

_NEVER: Final = 1 << 64
MEMORY: Final = 200_000
"""Subtrees remembered. When there are more, everything is forgotten, which is rare."""


class Shelf:
    """The numbers given so far. ``generation`` changes when they are forgotten."""

    def __init__(self) -> None:
        self.generation = 0
        self._leaves: dict[Operation, int] = {}
        self._inner: dict[tuple[object, ...], int] = {}
        self._next = 0

    def number(self, spans: Sequence[Span]) -> int | None:
        """Find the number of a trace's shape; None for one that is not simple. Spans are sorted."""
        index: dict[str | None, int] = {span[1]: i for i, span in enumerate(spans)}
        if not spans or len(index) < len(spans):
            return None
        if self._next > MEMORY:
            self._forget()
        leaves, parent_of = self._leaves, index.get
        below: list[list[int] | None] = [None] * len(spans)
        for i in range(len(spans) - 1, 0, -1):  # children before parents
            span = spans[i]
            above, what = span[2], span[5]
            inner = below[i]
            number = leaves.get(what) if inner is None else None
            if number is None:
                number = self._number(what, inner)
            parent = parent_of(above, i)
            if parent >= i or what.detached:
                return None
            siblings = below[parent]
            if siblings is None:
                below[parent] = [number]
            else:
                siblings.append(number)
        if _anything_late(spans, index):
            return None
        root = spans[0]
        if root[2] in index or (root[2] is not None and root[5].kind != "server"):
            return None
        return self._number(root[5], below[0])

    def _number(self, what: Operation, below: list[int] | None) -> int:
        if below is None:
            known = self._leaves.get(what)
            if known is None:
                known = self._leaves[what] = self._next = self._next + 1
            return known
        key = (what, below[0]) if len(below) == 1 else (what, *sorted(set(below)))
        known = self._inner.get(key)
        if known is None:
            known = self._inner[key] = self._next = self._next + 1
        return known

    def _forget(self) -> None:
        self.generation += 1
        self._next = 0
        self._leaves.clear()
        self._inner.clear()


def _anything_late(spans: Sequence[Span], index: Mapping[str | None, int]) -> bool:
    """Return whether something in a plain tree may have begun late
    (:func:`ldfi.lineage.message_waits.is_late`). Parents come before their children."""
    over = [_NEVER] * len(spans)
    for i, span in enumerate(spans):
        what = span[5]
        if what.kind in {"server", ""} or not i:
            over[i] = span[4] + TICK if span[4] > span[3] else _NEVER
        elif not what.serves:
            over[i] = over[index[span[2]]]
        if i and not what.serves and span[3] > over[index[span[2]]]:
            return True
    return False
