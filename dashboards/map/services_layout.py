"""Where the map's services are drawn: request classes, what they enter by, and what that calls.

Columns from left to right; a service stands right of all that call it, but where services call one
another in a circle: these share a column. The first column of services is in the order of the
classes, so that few lines cross; later ones stand beside who calls them. Pure; in pixels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import networkx as nx

from ldfi.dashboards.map.services_story import Call, MappedClass, Service, ServiceMap

ROW: Final = 40
BOX: Final = 30
TOP: Final = 10
CLASS: Final = (8, 158)
"""Left edge and width of a request class."""
BAR: Final = (182, 64)
FIRST: Final = 300
"""Left edge of the first column of services."""
WIDE: Final = 172
APART: Final = 76
"""Between two columns of services."""
STEP: Final = WIDE + APART
LEAST: Final = 2
"""Rows of a request class: its name, its share and its fate take as much."""


What = TypeVar("What")


@dataclass(frozen=True, slots=True)
class Placed(Generic[What]):
    """Something drawn, by its upper left corner."""

    what: What
    x: int
    y: int
    width: int
    height: int

    @property
    def middle(self) -> int:
        """The height at which lines begin and end."""
        return self.y + self.height // 2


@dataclass(frozen=True, slots=True)
class Line:
    """A path from one service to another, in SVG's words."""

    call: Call
    path: str


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything there is to draw."""

    classes: tuple[Placed[MappedClass], ...]
    bars: tuple[Placed[Service], ...]
    services: tuple[Placed[Service], ...]
    lines: tuple[Line, ...]
    width: int
    height: int


def layout(drawn: ServiceMap) -> Layout:
    """Give everything on a map its place."""
    services = {each.name: each for each in drawn.services}
    calls = [each for each in drawn.calls if each.above in services and each.below in services]
    columns = _columns(services, calls)
    entries = {name for mapped in drawn.classes for name in mapped.entries}
    bars = [name for name in columns[0] if name in entries]
    classes = sorted(drawn.classes, key=lambda each: _order(each, bars))
    first = [name for name in columns[0] if name not in entries] + columns[1]
    placed, spans = _first_column(classes, [services[name] for name in first])
    for number, column in enumerate(columns[2:], start=1):
        callers = _callers(calls, placed)
        _beside([services[name] for name in column], callers, FIRST + number * STEP, placed)
    standing = {name: _bar(services[name], classes, spans) for name in bars}
    ends = placed | standing
    lowest = max((each.y + ROW for each in placed.values()), default=TOP)
    return Layout(
        classes=tuple(_block(mapped, spans[mapped.name]) for mapped in classes),
        bars=tuple(standing.values()),
        services=tuple(placed.values()),
        lines=tuple(Line(each, _path(ends[each.above], ends[each.below])) for each in calls),
        width=max((each.x + each.width for each in ends.values()), default=FIRST) + 8,
        height=max(lowest, TOP + ROW * max((last for _, last in spans.values()), default=1)),
    )


def _columns(services: Iterable[str], calls: Iterable[Call]) -> list[list[str]]:
    graph: nx.DiGraph[Any] = nx.DiGraph((each.above, each.below) for each in calls)
    graph.add_nodes_from(services)
    circles = nx.condensation(graph)
    found = [
        sorted(name for number in layer for name in circles.nodes[number]["members"])
        for layer in nx.topological_generations(circles)
    ]
    return found + [[]] * (2 - len(found))


def _order(mapped: MappedClass, bars: Sequence[str]) -> tuple[int, float, str]:
    """Kinds that enter at one place are beside each other, the busiest first."""
    numbers = [bars.index(name) for name in mapped.entries if name in bars]
    return (min(numbers, default=len(bars)), -mapped.share, mapped.name)


def _first_column(
    classes: Iterable[MappedClass], services: Iterable[Service]
) -> tuple[dict[str, Placed[Service]], dict[str, tuple[int, int]]]:
    """Place services beside the first class that calls them; and give each class its
    rows: the first one, and the one behind the last."""
    left = {each.name: each for each in services}
    placed: dict[str, Placed[Service]] = {}
    spans: dict[str, tuple[int, int]] = {}
    row = 0
    for mapped in classes:
        own = [each for each in left.values() if mapped.name in each.classes]
        for number, each in enumerate(own):
            placed[each.name] = Placed(each, FIRST, TOP + (row + number) * ROW, WIDE, BOX)
            del left[each.name]
        spans[mapped.name] = (row, row + max(LEAST, len(own)))
        row = spans[mapped.name][1]
    return placed, spans


def _callers(calls: Iterable[Call], placed: Mapping[str, Placed[Service]]) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for each in calls:
        if each.above in placed:
            found[each.below].append(placed[each.above].y)
    return found


def _beside(
    column: Iterable[Service],
    callers: Mapping[str, list[int]],
    x: int,
    placed: dict[str, Placed[Service]],
) -> None:
    """Place a column, each service as near to the middle of its callers as there is room."""
    wanted = {each.name: callers.get(each.name) or [TOP] for each in column}
    middle = {name: round(sum(ys) / len(ys)) for name, ys in wanted.items()}
    next_free = TOP
    for each in sorted(column, key=lambda each: (middle[each.name], each.name)):
        y = max(middle[each.name], next_free)
        placed[each.name] = Placed(each, x, y, WIDE, BOX)
        next_free = y + ROW


def _block(mapped: MappedClass, rows: tuple[int, int]) -> Placed[MappedClass]:
    first, last = rows
    return Placed(mapped, CLASS[0], TOP + first * ROW, CLASS[1], (last - first) * ROW - (ROW - BOX))


def _bar(
    service: Service, classes: Iterable[MappedClass], spans: Mapping[str, tuple[int, int]]
) -> Placed[Service]:
    rows = [spans[mapped.name] for mapped in classes if service.name in mapped.entries]
    first, last = min(rows)[0], max(last for _, last in rows)
    height = (last - first) * ROW - (ROW - BOX)
    return Placed(service, BAR[0], TOP + first * ROW, BAR[1], height)


def _path(above: Placed[Service], below: Placed[Service]) -> str:
    """Draw a line, straight from a bar; around the right side within one column."""
    x, to_x = above.x + above.width, below.x
    y, to_y = above.middle, below.middle
    if above.x == BAR[0]:
        y = min(max(to_y, above.y + 8), above.y + above.height - 8)
    if to_x <= above.x:
        to_x, bend = below.x + below.width, max(x, below.x + below.width) + APART // 2
        return f"M{x} {y}C{bend} {y} {bend} {to_y} {to_x} {to_y}"
    bend = (x + to_x) // 2
    return f"M{x} {y}C{bend} {y} {bend} {to_y} {to_x} {to_y}"
