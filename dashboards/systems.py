"""The services and systems that the known request classes reach, each with its points."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from ldfi.experiments.domain.traffic.catalogue import KnownClass

MOST_DOWN: Final = 100
"""Names that an address may say are down at once."""

ELSEWHERE = ""
"""Under this name: points inside a service, which reach nothing."""


def systems_of(classes: Iterable[KnownClass]) -> dict[str, list[str]]:
    """List, for each system, the points that reach it, in order of their names; those that reach
    none last."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for known in classes:
        topology = known.traffic.topology
        for point in topology.paths:
            found[topology.callees.get(point, ELSEWHERE)].add(point)
    names = sorted(found, key=lambda name: (name == ELSEWHERE, name))
    return {name: sorted(found[name]) for name in names}
