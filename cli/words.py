"""Times, shares, faults and verdicts as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich.text import Text

from ldfi.analysis.words import NOTHING
from ldfi.cli.local_time import shown

STYLES: Final = {
    "killed": "bold red",
    "harmful": "bold red",
    "open": "bold red",
    "regressed": "bold red",
    "suspected": "yellow",
    "inconclusive": "yellow",
    "waiting": "yellow",
    "paused": "yellow",
    "tolerated": "green",
    "fixed": "green",
    "running": "green",
    "armed": "cyan",
    "observing": "cyan",
    "settling": "cyan",
    "aborted": "dim",
    "refuted": "dim",
    "superseded": "dim",
    "stopped": "dim",
}
BYSTANDERS_HURT: Final = "bystanders are hurt"
"""How the reason begins of an experiment that hurt others than those it treated."""


def when(at: float | None) -> str:
    """Write a moment, by the clock that people read, and its zone."""
    return NOTHING if not at else f"{shown(at):%Y-%m-%d %H:%M %Z}"


def clock(at: float) -> str:
    """Write the time of day, and its zone."""
    return f"{shown(at):%H:%M:%S %Z}"


def milliseconds(seconds: float) -> str:
    """Write a latency."""
    return f"{seconds * 1000:.0f} ms"


def interval(bounds: Sequence[float] | None) -> str:
    """Write the interval of a share, in percent."""
    if bounds is None:
        return ""
    low, high = (f"{round(bound * 100)}".replace("-", "−") for bound in bounds)
    return f"({low} to {high} %)"


def failures(arm: dict[str, Any], between: str = " ") -> str:
    """How many devices of an arm failed, and the interval of the rate."""
    if not arm["devices"]:
        return NOTHING
    counted = f"{arm['failures']}/{arm['devices']}"
    return f"{counted}{between}{interval(arm['failure_rate_interval'])}"


def styled(word: str | None) -> Text:
    """Write a state or verdict in its colour."""
    return Text(word or NOTHING, STYLES.get(word or "", ""))


def outcome(experiment: dict[str, Any]) -> str:
    """Write an experiment's verdict, or its state as long as there is none."""
    return str(experiment["verdict"] or experiment["state"])


def devices_line(devices: dict[str, int]) -> str:
    """Count devices: ``14 treated of 40 reserved, 12 reached, 3 hurt``. Bystanders, and those of
    which nobody can say whether they were treated, are named where there are any."""
    said = [f"{devices['treated']} treated of {devices['reserved']} reserved"]
    said += [f"{devices['reached']} reached", f"{devices['hurt']} hurt"]
    if devices["bystanders_hurt"]:
        said.append(f"{devices['bystanders_hurt']} bystanders hurt")
    if devices["unknown"]:
        said.append(f"of {devices['unknown']} reserved nobody can say whether they were treated")
    return ", ".join(said)
