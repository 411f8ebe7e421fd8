"""What is red, and why: each point once, with everything there is to say about it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from ldfi.analysis.hints import Hint
from ldfi.analysis.losses import Loss
from ldfi.analysis.names import Names
from ldfi.analysis.summary import RedItem
from ldfi.analysis.words import counted, listed


def red_items(found: Iterable[Loss], hints: Sequence[Hint], names: Names) -> tuple[RedItem, ...]:
    """Gather losses and hints by call, as people name it, those with which most requests were lost
    first.

    Calls of which nothing is known but the same hints about several become one item.
    """
    found = list(found)
    lost = _lost(found, names)
    points: dict[str, set[str]] = defaultdict(set)
    why: dict[str, list[Hint]] = {name: [] for name in lost}
    for point in (point for loss in found for point in loss.points):
        points[names.call(point)].add(point)
    for hint in hints:
        for point in hint.points:
            points[names.call(point)].add(point)
        for name in dict.fromkeys(map(names.call, hint.points)):
            why.setdefault(name, []).append(hint)
    alone = {*lost, *(names.call(hint.points[0]) for hint in hints if len(hint.points) == 1)}
    groups: dict[tuple[str, tuple[int, ...]], list[str]] = defaultdict(list)
    for name, told in why.items():
        groups[name if name in alone else "", tuple(map(id, told))].append(name)
    items = [
        _item({p for name in group for p in points[name]}, lost.get(group[0]), why[group[0]], names)
        for group in groups.values()
    ]
    return tuple(sorted(items, key=lambda each: (-each.lost, each.points)))


def _item(
    points: set[str], lost: tuple[int, str] | None, why: Iterable[Hint], names: Names
) -> RedItem:
    count, said = lost or (0, "")
    reasons = [said] if said else []
    calls = {names.call(point) for point in points}
    services = sorted({names.service(point) for point in points})
    return RedItem(
        points=tuple(sorted(points)),
        name=min(calls) if len(calls) == 1 else listed(services),
        lost=count,
        reasons=tuple(dict.fromkeys([*reasons, *(hint.reason for hint in why)])),
        advice=tuple(dict.fromkeys(hint.advice for hint in why)),
    )


def _lost(found: Iterable[Loss], names: Names) -> dict[str, tuple[int, str]]:
    """Count and say for each call how many requests were lost with it."""
    seen, beside, told = Counter[str](), Counter[str](), Counter[str]()
    for loss in found:
        proved = {names.call(point) for service, point in loss.blamed if point != service}
        kind = seen if loss.seen else beside
        kind.update(dict.fromkeys(proved, loss.shape.count))
        told.update(dict.fromkeys(loss.points if not proved else (), loss.shape.count))
    return {
        name: (
            seen[name] + beside[name] + told[name],
            _said(seen[name], beside[name], told[name]),
        )
        for name in sorted(seen.keys() | beside.keys() | told.keys())
    }


def _said(seen: int, beside: int, told: int) -> str:
    parts = [f"{counted(seen, 'request')} lost when it failed and nothing else did"] * (seen > 0)
    parts += [
        f"{counted(beside, 'request')} lost when it failed beside others, or may have failed"
    ] * (beside > 0)
    if told:
        parts.append(
            f"{counted(told, 'request')} lost when it was made to fail, as the outcomes tell;"
            " the traces do not show the call"
        )
    return "; ".join(parts)
