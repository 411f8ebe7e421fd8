"""A reproduction as people see it."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ldfi.analysis.words import NOTHING, length
from ldfi.cli.terminal import columns
from ldfi.fit.protocol.kinds import shown_as
from ldfi.lineage.outline import Row, side_by_side
from ldfi.scenarios.reproduction import Attempt, Reproduction, telling
from ldfi.scenarios.scenario import Scenario

_STYLES = {"fails": "bold red", "fixed": "bold green"}


def picture(scenario: Scenario, result: Reproduction) -> RenderableType:
    """Draw the verdict, every attempt, and what was called differently."""
    verdict, why = result.judged
    said = {
        "fails": "It still fails",
        "fixed": "Fixed",
        "never-fired": "The faults never fired, as far as anyone knows",
        "inconclusive": "Inconclusive",
    }[verdict]
    parts: list[RenderableType] = [
        Text(scenario.title, "bold"),
        _attempts(result),
        *_lineages(scenario, result),
        Text(f"{said}: {why}.", _STYLES.get(verdict, "yellow")),
    ]
    missing = sorted(each for each in result.faults if shown_as(each) not in result.fired)
    if result.known and missing and result.fired:
        parts.append(Text(f"Never fired: {', '.join(missing)}", "dim"))
    return Group(*parts)


def _attempts(result: Reproduction) -> RenderableType:
    table = columns("request", "answer", "time", "fired", "trace")
    for each in sorted(result.attempts, key=lambda one: one.faulty):
        style = "red" if each.failure else "green"
        answer = str(each.status or NOTHING) + (f", {each.failure}" if each.failure else "")
        table.add_row(
            "with faults" if each.faulty else "without",
            Text(answer, style),
            length(each.seconds),
            _fired(each),
            each.trace_id,
        )
    return table


def _fired(attempt: Attempt) -> str:
    if not attempt.faulty:
        return ""
    return "unknown" if attempt.fired is None else str(len(attempt.fired))


def _lineages(scenario: Scenario, result: Reproduction) -> list[RenderableType]:
    rows, names = result.rows(), ("without faults", "with faults")
    if not rows:
        rows, names = side_by_side(*scenario.lineage.outlines()), ("expected", "when it was found")
    if not rows:
        return []
    return [_lineage_table(rows, names), Text("")]


def _lineage_table(rows: list[Row], names: tuple[str, str]) -> RenderableType:
    """Show what differs, and how much does not."""
    shown = telling(rows)
    table = columns("call", *names, whole=0)
    for row in shown:
        style = "" if row.differs else "dim"
        table.add_row(
            Text("  " * row.depth + row.point, style),
            Text(row.left or "not called", style),
            Text(row.right or "not called", "red" if row.differs else style),
        )
    alike = len(rows) - len(shown)
    return Group(table, Text(f"and {alike} calls that went alike", "dim")) if alike else table
