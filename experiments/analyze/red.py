"""What is red, and why: each point once, with everything there is to say about it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ldfi.experiments.analyze.clues import Clue
from ldfi.experiments.analyze.gist import RedItem
from ldfi.experiments.analyze.losses import Loss
from ldfi.experiments.analyze.names import Names
from ldfi.experiments.analyze.words import counted, listed


def red_items(found: Iterable[Loss], clues: Sequence[Clue], names: Names) -> tuple[RedItem, ...]:
    """Gather losses and clues by point, those with which most requests were lost first.

    Points of which nothing is known but the same clues about several become one item.
    """
    lost = _lost(found)
    told: dict[str, list[Clue]] = {point: [] for point in lost}
    for clue in clues:
        for point in clue.points:
            told.setdefault(point, []).append(clue)
    alone = {*lost, *(clue.points[0] for clue in clues if len(clue.points) == 1)}
    groups: dict[tuple[str, tuple[int, ...]], list[str]] = defaultdict(list)
    for point, why in told.items():
        groups[point if point in alone else "", tuple(map(id, why))].append(point)
    items = [_item(sorted(points), lost, told[points[0]], names) for points in groups.values()]
    return tuple(sorted(items, key=lambda each: (-each.lost, each.points)))


def _item(
    points: list[str], lost: Mapping[str, tuple[int, str]], why: list[Clue], names: Names
) -> RedItem:
    count, said = lost.get(points[0], (0, ""))
    reasons = [said] if said else []
    return RedItem(
        points=tuple(points),
        name=_name(points, names),
        lost=count,
        reasons=tuple(dict.fromkeys([*reasons, *(clue.reason for clue in why)])),
        advice=tuple(dict.fromkeys(clue.advice for clue in why)),
    )


def _lost(found: Iterable[Loss]) -> dict[str, tuple[int, str]]:
    """Count and say for each point how many requests were lost with it."""
    seen, beside, told = Counter[str](), Counter[str](), Counter[str]()
    for loss in found:
        for service, point in loss.blamed:
            kind = seen if loss.seen else told if point == service else beside
            kind[point] += loss.shape.count
    return {
        point: (
            seen[point] + beside[point] + told[point],
            _said(seen[point], beside[point], told[point]),
        )
        for point in sorted(seen.keys() | beside.keys() | told.keys())
    }


def _said(seen: int, beside: int, told: int) -> str:
    parts = [f"{counted(seen, 'request')} lost when it failed and nothing else did"] * (seen > 0)
    parts += [f"{counted(beside, 'request')} lost when it failed beside others"] * (beside > 0)
    if told:
        parts.append(
            f"{counted(told, 'request')} lost when it was made to fail, as the outcomes tell;"
            " the traces do not show the call"
        )
    return "; ".join(parts)


def _name(points: Sequence[str], names: Names) -> str:
    if len(points) == 1:
        return names.call(points[0])
    return listed(sorted({names.service(point) for point in points}))
