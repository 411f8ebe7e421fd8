"""One run of a test, and what it has shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ldfi.fit.protocol.faults import Fault
from ldfi.lineage.killed_process import Death
from ldfi.lineage.lineage import Lineage

Passed = bool | None
"""None: the run says nothing (it was skipped, say)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request by which the test entered the application, as it was sent."""

    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Run:
    """The test, run once. ``error``: how it failed, in one line. ``asked``: its last request.
    ``degraded``: it said that it accepts an answer from which something is missing. ``errors``: how
    many of its own requests were answered with an error. ``unseen``: why the run is no evidence
    although the test came to its end; spans are missing. ``died``: processes that it has killed.
    ``began``, ``ended``: Unix seconds."""

    passed: Passed
    lineage: Lineage
    error: str = ""
    asked: Asked | None = None
    degraded: bool = False
    errors: int = 0
    unseen: str = ""
    began: float = 0.0
    ended: float = 0.0
    died: tuple[Death, ...] = ()


Execute = Callable[[tuple[Fault, ...]], Run]
"""Runs the test once, with these faults injected."""
