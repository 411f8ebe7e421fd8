"""One picture of the services: who calls whom, in layers from top to bottom.

It is as wide as a phone. A layer is broken into rows of two; what calls stands above what is
called, but where services call one another in a circle: these share a layer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, Final

import networkx as nx
from rich.cells import cell_len, set_cell_size

from ldfi.analysis.summary import ServiceCall, Standing, Summary

WIDTH: Final = 360
ACROSS: Final = 2
BOX: Final = 170
HEIGHT: Final = 34
GAP: Final = 10
BETWEEN: Final = 34
"""Between two layers."""
LETTERS: Final = 19
"""Letters of a name that a box has room for; Chinese ones count twice."""

MEANINGS: Final[Mapping[Standing, tuple[str, str]]] = {
    "lost": ("!", "requests were lost with it"),
    "silent": ("/", "its calls cannot be seen"),
    "harmless": ("✓", "failed, and nobody noticed"),
    "unclear": ("~", "failed, and what came of it is not known"),
    "untried": ("?", "not seen to fail"),
}
"""How each standing is marked and said: nobody has to tell colours apart."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a service is drawn: its upper left corner."""

    x: int
    y: int


def picture(summary: Summary) -> str:
    """Draw the services as an SVG element; empty where there is but one."""
    if not summary.calls:
        return ""
    shapes, height = drawn(summary)
    return (
        f'<svg class="graph" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' aria-label="{len(summary.services)} services, callers above callees">'
        f"{shapes}</svg>"
    )


def drawn(summary: Summary) -> tuple[str, int]:
    """Draw what is in the picture, and say how high that is, where there is more than a service."""
    standing = {each.name: each.standing for each in summary.services}
    placed = places(summary.calls)
    height = max(place.y for place in placed.values()) + HEIGHT + 4
    lines = "".join(_line(placed[each.above], placed[each.below]) for each in summary.calls)
    boxes = "".join(_box(name, place, standing[name]) for name, place in placed.items())
    return lines + boxes, height


def places(calls: tuple[ServiceCall, ...]) -> dict[str, Place]:
    """Give each service its place; within a layer, below its callers as far as there is room."""
    above: dict[str, list[str]] = defaultdict(list)
    for call in calls:
        above[call.below].append(call.above)
    placed: dict[str, Place] = {}
    top = 4
    for layer in _layers(calls):
        middle = {name: _middle(placed, above[name]) for name in layer}
        for number, name in enumerate(sorted(layer, key=lambda each: (middle[each], each))):
            row, column = divmod(number, ACROSS)
            in_row = min(ACROSS, len(layer) - row * ACROSS)
            left = (WIDTH - in_row * BOX - (in_row - 1) * GAP) // 2
            placed[name] = Place(left + column * (BOX + GAP), top + row * (HEIGHT + GAP))
        rows = -(-len(layer) // ACROSS)
        top += rows * (HEIGHT + GAP) - GAP + BETWEEN
    return placed


def _layers(calls: tuple[ServiceCall, ...]) -> list[list[str]]:
    graph: nx.DiGraph[Any] = nx.DiGraph((call.above, call.below) for call in calls)
    circles = nx.condensation(graph)
    return [
        [name for number in layer for name in circles.nodes[number]["members"]]
        for layer in nx.topological_generations(circles)
    ]


def _middle(placed: Mapping[str, Place], callers: list[str]) -> float:
    known = [placed[name].x for name in callers if name in placed]
    return sum(known) / len(known) if known else 0.0


def _line(above: Place, below: Place) -> str:
    x, y = above.x + BOX // 2, above.y + HEIGHT
    to_x, to_y = below.x + BOX // 2, below.y
    bend = (y + to_y) // 2
    return f'<path class="e" d="M{x} {y}C{x} {bend} {to_x} {bend} {to_x} {to_y}"/>'


def _box(name: str, place: Place, standing: Standing) -> str:
    mark, said = MEANINGS[standing]
    return (
        f'<g class="{standing}"><title>{escape(name)}: {said}</title>'
        f'<rect class="s" x="{place.x}" y="{place.y}" width="{BOX}" height="{HEIGHT}" rx="7"/>'
        f'<text class="m" x="{place.x + 10}" y="{place.y + 22}">{mark}</text>'
        f'<text x="{place.x + 26}" y="{place.y + 22}">{escape(_cut(name))}</text></g>'
    )


def _cut(text: str) -> str:
    if cell_len(text) <= LETTERS:
        return text
    return set_cell_size(text, LETTERS - 1).rstrip() + "…"
