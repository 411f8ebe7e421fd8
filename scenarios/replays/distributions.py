"""The few distributions that a comparison needs, and Holm's procedure. Pure, without numpy.

Chances are two-sided where nothing else is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

_TINY: Final = 1e-300


def hypergeometric(found: int, drawn: int, marked: int, total: int) -> float:
    """Return how likely a count as odd as ``found`` is, of ``marked`` among ``total`` when
    ``drawn`` are drawn without choosing: twice the smaller tail, at most 1."""
    low, high = max(0, drawn + marked - total), min(drawn, marked)
    if low == high:
        return 1.0
    below = _tail(found, low, -1, drawn, marked, total)
    above = _tail(found, high, 1, drawn, marked, total)
    return min(1.0, 2 * min(below, above))


def _tail(start: int, limit: int, step: int, drawn: int, marked: int, total: int) -> float:
    """Sum the chances from ``start`` to ``limit``, as long as they add anything."""
    chance = math.exp(
        _choices(marked, start) + _choices(total - marked, drawn - start) - _choices(total, drawn)
    )
    summed, at = chance, start
    while at != limit:
        if step > 0:
            chance *= (marked - at) * (drawn - at) / ((at + 1) * (total - marked - drawn + at + 1))
        else:
            chance *= at * (total - marked - drawn + at) / ((marked - at + 1) * (drawn - at + 1))
        at += step
        summed += chance
        if step * (at - drawn * marked / total) > 0 and chance < 1e-17 * summed:
            break
    return min(1.0, summed)


def _choices(total: int, chosen: int) -> float:
    return math.lgamma(total + 1) - math.lgamma(chosen + 1) - math.lgamma(total - chosen + 1)


def student(statistic: float, freedom: float) -> float:
    """Return how likely Student's t is as far from nothing as this."""
    if math.isinf(statistic):
        return 0.0
    return _beta(freedom / (freedom + statistic**2), freedom / 2, 0.5)


def _beta(x: float, a: float, b: float) -> float:
    """Compute the regularised incomplete beta function by its continued fraction."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(1 - x, b, a)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    c, d = 1.0, 1 / _apart(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 500):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 / _apart(1 + term * d), _apart(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return min(1.0, front * value / a)


def _apart(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def holm(p_values: Sequence[float], weights: Sequence[float], level: float) -> list[bool]:
    """Say of which hypotheses a difference may be claimed, so that any at all is claimed falsely
    with at most ``level``. Holm (1979), weighted: as much of the level as the weight among those
    that are left."""
    claimed = [False] * len(p_values)
    left = sum(weights)
    for index in sorted(range(len(p_values)), key=lambda i: p_values[i] / weights[i]):
        if p_values[index] > level * weights[index] / left:
            break
        claimed[index] = True
        left -= weights[index]
    return claimed
