"""What a run has shown, and why it may be no evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ldfi.lineage.killed_process import Death
from ldfi.lineage.lineage import Lineage

TO_SET: Final = "Run the services with what `ldfi explore env` prints"


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run has shown. ``problem``: why it is no evidence; ``passing``: another try may be.
    ``died``: processes that the run has killed."""

    lineage: Lineage
    problem: str = ""
    passing: bool = False
    died: tuple[Death, ...] = ()
