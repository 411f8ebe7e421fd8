"""Latencies as pictures: SVG elements that need nothing from anywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from ldfi.scenarios.replays.intervals import quantile
from ldfi.scenarios.replays.series import Series

WIDTH, HEIGHT, LEFT, BOTTOM = 560, 260, 64, 34
SHARES: Final = tuple(1 - 10 ** (-step / 10) for step in range(1, 31))
"""From the fifth to the p99.9, evenly in the number of nines."""
COLOURS: Final = ("#5b6b7b", "#b35309")
MARKS: Final = {0.5: "p50", 0.9: "p90", 0.99: "p99", 0.999: "p99.9"}


def latency_picture(title: str, sides: Mapping[str, Series]) -> str:
    """Draw the latency of each side against the share of requests that are faster, the tail as
    wide as the rest; both axes logarithmic. Nothing for nothing."""
    curves = {name: curve for name, each in sides.items() if (curve := _curve(each))}
    values = [value for curve in curves.values() for _, value in curve]
    if not values:
        return ""
    low, high = math.log10(min(values)), math.log10(max(values))
    if high - low < 0.1:
        low, high = low - 0.05, high + 0.05
    parts = [*_across(), *_up(low, high)]
    for (name, curve), colour in zip(curves.items(), COLOURS, strict=False):
        dash = "" if colour == COLOURS[0] else ' stroke-dasharray="7 3"'
        points = " ".join(
            f"{_x(share):.1f},{_y(math.log10(v), low, high):.1f}" for share, v in curve
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}>'
            f"<title>{escape(name)}</title></polyline>"
        )
    for number, (name, colour) in enumerate(zip(curves, COLOURS, strict=False)):
        y = 16 + 16 * number
        parts.append(f'<text x="{LEFT + 8}" y="{y}" fill="{colour}">{escape(name)}</text>')
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img"'
        f' aria-label="latency of {escape(title)}">{"".join(parts)}</svg>'
    )


def _curve(series: Series) -> Sequence[tuple[float, float]]:
    ordered = sorted(series.seconds)
    shares = (each for each in SHARES if len(ordered) * (1 - each) >= 1)
    found = ((share, quantile(ordered, share)) for share in shares)
    return [(share, value) for share, value in found if 0 < value < math.inf]


def _x(share: float) -> float:
    return LEFT + (WIDTH - LEFT - 10) * -math.log10(1 - share) / 3


def _y(log: float, low: float, high: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 10) * (log - low) / (high - low)


def _across() -> list[str]:
    return [
        f'<line x1="{_x(share):.1f}" x2="{_x(share):.1f}" y1="10" y2="{HEIGHT - BOTTOM}"'
        f' stroke="#d5dce3"/><text x="{_x(share):.1f}" y="{HEIGHT - 12}" class="dim"'
        f' text-anchor="middle">{name}</text>'
        for share, name in MARKS.items()
    ]


def _up(low: float, high: float) -> list[str]:
    made = []
    for step in range(5):
        log = low + (high - low) * step / 4
        y = _y(log, low, high)
        made.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#eceff2"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" class="dim" text-anchor="end">'
            f"{10**log * 1000:.3g} ms</text>"
        )
    return made
