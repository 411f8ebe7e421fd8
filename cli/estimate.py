"""How far a campaign is, and how long it may still take at the rate it had so far."""

from __future__ import annotations

from typing import Any, Final

from ldfi.analysis.words import length

ENOUGH: Final = 3
"""Experiments from which on a rate is told: fewer say little about the next."""


def so_far(campaign: dict[str, Any], now: float) -> str:
    """Say what a run has come to, how much is open, and how long that may take."""
    classes = campaign["classes"]
    done = sum(bool(each["finished"]) for each in classes)
    found = sum(len(each["findings"]) for each in classes)
    spent = max(0.0, now - (campaign["run_started_at"] or campaign["created_at"]))
    left = sum(each["open"] for each in classes)
    parts = [
        f"{_counted(campaign['experiments'], 'experiment')} in {length(spent)}",
        f"{done} of {_counted(len(classes), 'class', 'classes')} done",
        _counted(found, "finding"),
        f"{_counted(left, 'hypothesis', 'hypotheses')} left to try",
    ]
    return f"{', '.join(parts)}; {_left(left, campaign['experiments'], spent)}"


def _left(left: int, experiments: int, spent: float) -> str:
    """Say how long the open ones take if each takes as long as those before: what is found may
    open more, and settle others without an experiment."""
    if not left:
        return "nothing left to try for now"
    if experiments < ENOUGH:
        return "how long it takes is unknown yet"
    return f"about {length(left * spent / experiments)} more at this rate"


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or f'{one}s'}"
