"""Gives calls that never got through the address that the others of their point went to.

A refused call of gRPC has no address on its span, so by its name it is another point than the calls
that connected: one that fails whenever it is seen. Where just one known point is the same but for
the address, it is a call of that one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from ldfi.fit.protocol.points import Point
from ldfi.lineage.lineage import Lineage
from ldfi.lineage.renaming import renamed

MOST: Final = 10_000
"""Points that are remembered, without their addresses."""

FEW: Final = 8
"""Addresses that are remembered of each: two are too many to choose one."""

_OVER_WIRE: Final = frozenset({"rpc", "http"})


@dataclass(slots=True)
class Peers:
    """Which points were called with an address, by their names without."""

    _known: OrderedDict[str, set[str]] = field(default_factory=OrderedDict)

    def learn(self, points: Iterable[str]) -> None:
        """Note points that were called."""
        for point in points:
            bare = _without_peer(point)
            if bare and bare != point:
                names = self._known.setdefault(bare, set())
                if len(names) < FEW:
                    names.add(point)
                self._known.move_to_end(bare)
        while len(self._known) > MOST:
            self._known.popitem(last=False)

    def addressed(self, lineage: Lineage) -> Lineage:
        """Return the lineage with each call that has no address as one of the only point that it
        can be of; learn from it."""
        called = lineage.called | lineage.detached
        self.learn(called)
        lost = {point: self._known.get(point, ()) for point in called if _without_peer(point)}
        names = {
            point: next(iter(known))
            for point, known in lost.items()
            if len(known) == 1 and point == _without_peer(point)
        }
        return renamed(lineage, names) if names else lineage


@lru_cache(maxsize=MOST)
def _without_peer(point: str) -> str:
    """Name the point without its address; empty for one that is none of a call over the wire."""
    parsed = Point.parse(point)
    if parsed.kind not in _OVER_WIRE:
        return ""
    return str(replace(parsed, peer="")) if parsed.peer else point
