"""The lineage graph of a class as a picture: who is called within what, and what may hurt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from ldfi.experiments.analyze.report import ClassReport
from ldfi.lineage.graph import ROOT

WIDTH, HEIGHT, GAP_X, GAP_Y = 250, 44, 60, 14
LETTERS = 38

_COLOURS = {"single": "#c0392b", "tolerated": "#27864b", "plain": "#5b6b7b", ROOT: "#1f2d3a"}


@dataclass(frozen=True, slots=True)
class _Place:
    x: int
    y: int


def picture(each: ClassReport) -> str:
    """Draw a class as an SVG element; empty where nothing was called."""
    if not each.edges:
        return ""
    places = _places(each)
    width = max(place.x for place in places.values()) + WIDTH + 10
    height = max(place.y for place in places.values()) + HEIGHT + 10
    lines = [_line(places[edge.above], places[edge.point]) for edge in each.edges]
    boxes = [_box(point, place, each) for point, place in places.items()]
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"'
        f' aria-label="calls of {escape(each.name)}">{"".join(lines + boxes)}</svg>'
    )


def _places(each: ClassReport) -> dict[str, _Place]:
    """Give each point a place: a column for each depth, in the order in which they are first
    reached from the left."""
    below: dict[str, list[str]] = defaultdict(list)
    for edge in each.edges:
        below[edge.above].append(edge.point)
    places: dict[str, _Place] = {}
    level, depth = [ROOT], 0
    while level:
        for row, point in enumerate(level):
            places[point] = _Place(5 + depth * (WIDTH + GAP_X), 5 + row * (HEIGHT + GAP_Y))
        following = (point for above in level for point in below[above])
        level = [point for point in dict.fromkeys(following) if point not in places]
        depth += 1
    return places


def _line(above: _Place, place: _Place) -> str:
    x, y = above.x + WIDTH, above.y + HEIGHT // 2
    to_x, to_y = place.x, place.y + HEIGHT // 2
    middle = (x + to_x) // 2
    path = f"M{x} {y} C{middle} {y} {middle} {to_y} {to_x} {to_y}"
    return f'<path d="{path}" fill="none" stroke="#9aa7b3" stroke-width="1.5"/>'


def _box(point: str, place: _Place, each: ClassReport) -> str:
    colour = _COLOURS[_standing(point, each)]
    first, second = _words(point, each.callees)
    return (
        f'<g><title>{escape(point)}</title><rect x="{place.x}" y="{place.y}" width="{WIDTH}"'
        f' height="{HEIGHT}" rx="6" fill="white" stroke="{colour}" stroke-width="2"/>'
        f'<text x="{place.x + 8}" y="{place.y + 18}" fill="{colour}">{escape(_cut(first))}</text>'
        f'<text x="{place.x + 8}" y="{place.y + 35}" class="dim">{escape(_cut(second))}</text></g>'
    )


def _standing(point: str, each: ClassReport) -> str:
    if point == ROOT:
        return ROOT
    if f"error@{point}" in each.single_points:
        return "single"
    if any(tolerated.faults == (f"error@{point}",) for tolerated in each.tolerated):
        return "tolerated"
    return "plain"


def _words(point: str, callees: Mapping[str, str]) -> tuple[str, str]:
    if point == ROOT:
        return "request", ""
    caller, _, call = point.partition(">")
    return call, f"{caller} → {callees.get(point) or 'unknown'}"


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"
