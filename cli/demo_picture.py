"""The tree of calls of a request class, and which of them it cannot do without."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.text import Text

from ldfi.analysis.phrases import said_shortly
from ldfi.analysis.words import listed
from ldfi.fit.protocol.faults import DOWN
from ldfi.fit.protocol.points import Point

Faults = Sequence[str]
Row = tuple[list[tuple[str, str]], str]
"""Pieces of a line, each with its style, and the service that it ends with."""

_FINE: Final = ("·", "green")
_LOST: Final = ("✗", "bold red")
_OPEN: Final = ("?", "yellow")


def pictures(experiments: Sequence[dict[str, Any]], result: dict[str, Any]) -> list[Text]:
    """Say of each class what it is lost without, and draw its tree. ``result``: what was found."""
    lines: list[Text] = []
    for name in dict.fromkeys(each["request_class"] for each in experiments):
        mine = [each for each in experiments if each["request_class"] == name]
        hurts = [e["faults"] for e in result["comparison"] if e["found"] and e["class"] == name]
        points = {_where(fault) for each in mine for fault in each["faults"]}
        survived = {
            _where(fault)
            for each in mine
            if each["verdict"] == "tolerated"
            for fault in each["faults"]
        }
        told = (said_shortly(sorted(each, key=_called)) for each in hurts)
        lines += [Text(f"{name} is lost when {each}", "bold") for each in told]
        lines += picture(points, hurts, survived)
    return [Text("What hurts", "bold"), *lines] if result["findings"] else lines


def callee(point: str) -> str:
    """Name what a point calls: a service or system, else its own operation."""
    read = Point.parse(point)
    return read.peer or f"{read.operation}()"


def picture(
    points: Iterable[str], findings: Sequence[Faults], survived: Iterable[str], room: int = 30
) -> list[Text]:
    """Draw who calls whom, red where it hurts, with a word on each.

    ``survived``: points of which a failure was survived. ``room``: columns before the words.
    """
    tree: dict[str, list[str]] = {}
    for point in sorted(set(points), key=callee):
        caller, called = Point.parse(point).caller, callee(point)
        if called not in tree.setdefault(caller, []):
            tree[caller].append(called)
    inner = {called for each in tree.values() for called in each}
    fine = {callee(point) for point in survived}
    words = {called: _words(called, findings, fine) for called in inner}
    lines = []
    for root in sorted(tree.keys() - inner):
        for pieces, last in _rows(root, tree, words, frozenset({root})):
            line = Text("    ")
            for piece, style in pieces:
                line.append(piece, style)
            (_, style), said = words[last]
            line.append(" " * max(1, room - len(line)))
            lines.append(line.append(said, style))
    return lines


def _words(called: str, findings: Sequence[Faults], fine: set[str]) -> tuple[tuple[str, str], str]:
    for faults in findings:
        names = [_called(fault) for fault in faults]
        if called in names:
            others = [name for name in names if name != called]
            return _LOST, f"needed when {listed(others)} fails" if others else "needed"
    return (_FINE, "can be missing") if called in fine else (_OPEN, "undecided")


def _called(fault: str) -> str:
    where = _where(fault)
    return where if fault.startswith(DOWN) else callee(where)


def _where(fault: str) -> str:
    return fault.partition("@")[2]


def _rows(
    name: str,
    tree: dict[str, list[str]],
    words: dict[str, tuple[tuple[str, str], str]],
    above: frozenset[str],
) -> list[Row]:
    """List the lines of a service and of all below it."""
    mark, style = words[name][0] if name in words else ("", "bold")
    own = f"{name} {mark}" if mark else name
    below = [each for each in tree.get(name, []) if each not in above]
    if not below:
        return [([(own, style)], name)]
    rows: list[Row] = []
    for place, each in enumerate(below):
        last = place == len(below) - 1
        if place == 0:
            begin = [(own, style), (" ── " if last else " ─┬─ ", "dim")]
        else:
            begin = [(" " * len(own) + ("  └─ " if last else "  ├─ "), "dim")]
        beneath = " " * len(own) + ("  │  " if not last else " " * 5)
        for number, (pieces, end) in enumerate(_rows(each, tree, words, above | {each})):
            rows.append((([*begin] if number == 0 else [(beneath, "dim")]) + pieces, end))
    return rows
