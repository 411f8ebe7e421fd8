"""Small pictures without a script: the evidence of an experiment, and how a class stood over time.

SVG elements with classes and no styles of their own, so that a page's style decides the colours and
a strict Content-Security-Policy allows them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from markupsafe import Markup

from ldfi.experiments.domain.judging.sequential_tests import CurvePoint
from ldfi.experiments.domain.settings import Thresholds
from ldfi.experiments.domain.traffic.catalogue import Look

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 240, 44, 28, 12, 12


def thresholds_of(
    thresholds: Thresholds, level: float | None, alpha: float | None = None
) -> tuple[float, float]:
    """Compute log₁₀ of the evidence that decides: for harmful, and for tolerated.

    ``alpha``: how seldom this one may be called harmful by chance, where that is on record; else it
    was the campaign's, or ``level`` if that is less.
    """
    if alpha is None:
        alpha = thresholds.alpha_harmful if level is None else min(level, thresholds.alpha_harmful)
    return -math.log10(alpha), -math.log10(thresholds.alpha_tolerated)


def evidence_picture(curve: Sequence[CurvePoint], harmful: float, tolerated: float) -> Markup:
    """Draw both tests' evidence by the treated devices paired so far, and their thresholds."""
    last = max((point[0] for point in curve), default=0) or 1
    values = [value for point in curve for value in point[1:]]
    high = max([harmful, tolerated, *values]) + 0.3
    low = min([-0.5, *values])

    def x(pairs: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * pairs / last

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    parts = [
        *(_tick(y(value), value) for value in _ticks(low, high)),
        _level("harmful", y(harmful)),
        _level("tolerated", y(tolerated)),
        _line("harmful", ((x(n), y(worse)) for n, worse, _ in curve)),
        _line("tolerated", ((x(n), y(not_worse)) for n, _, not_worse in curve)),
        Markup(
            '<text x="{}" y="{}" class="axis" text-anchor="end">{} treated devices</text>'
        ).format(WIDTH - RIGHT, HEIGHT - 6, last if curve else 0),
    ]
    return _svg("evidence", WIDTH, HEIGHT, Markup("").join(parts), "Evidence of both tests")


def looks_picture(looks: Sequence[Look]) -> Markup:
    """Draw consistency and hit rate of a class at its complete samples; a line where it drifted."""
    height, width = 120, 640
    first, span = looks[0].at, (looks[-1].at - looks[0].at) or 1.0

    def x(at: float) -> float:
        return LEFT + (width - LEFT - RIGHT) * (at - first) / span

    def y(share: float) -> float:
        return TOP + (height - 2 * TOP) * (1 - share)

    drifted = [now for before, now in pairwise(looks) if now.version != before.version]
    parts = [
        *(
            Markup(
                '<line x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}" class="grid"/>'
                '<text x="{}" y="{:.1f}" class="axis" text-anchor="end">{}</text>'
            ).format(LEFT, width - RIGHT, y(share), y(share), LEFT - 6, y(share) + 4, name)
            for share, name in ((0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %"))
        ),
        *(
            Markup('<line x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}" class="drift"/>').format(
                x(each.at), TOP, height - TOP
            )
            for each in drifted
        ),
        _line("hit-rate", ((x(each.at), y(each.hit_rate)) for each in looks)),
        _line("consistency", ((x(each.at), y(each.consistency)) for each in looks)),
    ]
    return _svg("looks", width, height, Markup("").join(parts), "Consistency over time")


def interval_bar(low: float, rate: float, high: float, arm: str) -> Markup:
    """Draw a rate between 0 and 1, and how well it is known."""
    width = 160.0
    return Markup(
        '<svg class="interval {}" viewBox="0 0 160 12" aria-hidden="true">'
        '<line x1="0" x2="160" y1="6" y2="6" class="grid"/>'
        '<line x1="{:.1f}" x2="{:.1f}" y1="6" y2="6" class="range"/>'
        '<circle cx="{:.1f}" cy="6" r="4"/></svg>'
    ).format(arm, width * low, width * high, 4 + (width - 8) * rate)


def _svg(kind: str, width: int, height: int, inside: Markup, said: str) -> Markup:
    return Markup(
        '<svg class="chart {}" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(kind, width, height, said, inside)


def _line(kind: str, points: Iterable[tuple[float, float]]) -> Markup:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<polyline points="{}" class="line {}"/>').format(path, kind)


def _level(kind: str, y: float) -> Markup:
    return Markup('<line x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}" class="level {}"/>').format(
        LEFT, WIDTH - RIGHT, y, y, kind
    )


def _tick(at: float, value: float) -> Markup:
    return Markup(
        '<line x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}" class="grid"/>'
        '<text x="{}" y="{:.1f}" class="axis" text-anchor="end">10<tspan dy="-5" class="power">{}'
        "</tspan></text>"
    ).format(LEFT, WIDTH - RIGHT, at, at, LEFT - 6, at + 4, f"{value:.0f}")


def _ticks(low: float, high: float) -> list[float]:
    """Choose at most six whole powers of ten."""
    step = max(1, math.ceil((high - low) / 6))
    first = math.ceil(low / step) * step
    return [float(value) for value in range(first, math.floor(high) + 1, step)]
