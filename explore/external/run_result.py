"""What a run has shown, and why it may be no evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from ldfi.lineage.killed_process import Death
from ldfi.lineage.lineage import Lineage

Made = TypeVar("Made")

LOST: Final = 2
"""Times that a run is made again of which spans did not come."""

TO_SET: Final = "Run the services with what `ldfi explore env` prints"


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run has shown. ``problem``: why it is no evidence; ``passing``: another try may be.
    ``away``: it may be that an exporter has not come back yet, which has been waited for. ``died``:
    processes that the run has killed."""

    lineage: Lineage
    problem: str = ""
    passing: bool = False
    away: bool = False
    died: tuple[Death, ...] = ()


def until_whole(make: Callable[[], tuple[Made, RunResult]]) -> Made:
    """Make a run, again as long as exporters are away, and a few times where spans were lost."""
    tries = 0
    while True:
        made, shown = make()
        tries += not shown.away
        if not shown.passing or tries > LOST:
            return made
