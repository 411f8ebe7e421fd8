"""How a benchmark says what it measured: a table for people, one line of JSON for programs.

The line is an object whose ``targets`` maps each target's name to its value, the target and whether
it is met; the rest of the object is what the values were taken from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

Row = Mapping[str, object]
Target = dict[str, Any]


def at_most(value: float, target: float) -> Target:
    """Hold a value against a target that it shall not exceed."""
    return {"value": value, "target": target, "met": value <= target}


def at_least(value: float, target: float) -> Target:
    """Hold a value against a target that it shall reach."""
    return {"value": value, "target": target, "met": value >= target}


def say(
    tables: Mapping[str, Sequence[Row]], targets: Mapping[str, Target], *, as_json: bool
) -> bool:
    """Print everything; whether all targets are met."""
    if as_json:
        print(json.dumps({"targets": targets, **tables}))
    else:
        console = Console()
        for title, rows in tables.items():
            for columns, alike in _alike(rows):
                table = Table(*columns, title=title)
                for row in alike:
                    table.add_row(*(_cell(row[name]) for name in columns))
                console.print(table)
        verdicts = Table("target", "value", "wanted", "met", title="targets")
        for name, each in targets.items():
            met = "yes" if each["met"] else "NO"
            verdicts.add_row(name, _cell(each["value"]), _cell(each["target"]), met)
        console.print(verdicts)
    return all(each["met"] for each in targets.values())


def _alike(rows: Sequence[Row]) -> Iterable[tuple[tuple[str, ...], list[Row]]]:
    """Group rows with the same columns, which stand in one table."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row), []).append(row)
    return groups.items()


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
