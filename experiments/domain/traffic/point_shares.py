"""Shares: how many of a class's good requests call a point that only some of them do."""

from __future__ import annotations

from collections.abc import Iterable

from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.lineage.class_parts import COMMON


def shares(traffic: Traffic) -> dict[str, float]:
    """List the points that only some good requests call, each with the share of them that do."""
    total = max(1, traffic.good)
    called = {point: count / total for point, count in traffic.reached().items()}
    return {point: share for point, share in sorted(called.items()) if share <= 1 - COMMON}


def share_of(traffic: Traffic, points: Iterable[str]) -> float:
    """Return the share of good requests that call the one of these points that most of them call; 1
    where that is not known."""
    reached = traffic.reached()
    most = max((reached[point] for point in points), default=0)
    return most / traffic.good if most else 1.0
