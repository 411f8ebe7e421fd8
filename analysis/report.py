"""What an analysis says, as plain data; :meth:`Analysis.to_json` is the shape of ``--json``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ldfi.analysis.summary import Summary


@dataclass(frozen=True, slots=True)
class Support:
    """Points on whose success some good requests relied."""

    points: tuple[str, ...]
    requests: int
    failed: tuple[str, ...]
    """What failed in them and was survived."""
    traces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tolerated:
    """Faults under which requests still succeeded."""

    faults: tuple[str, ...]
    requests: int
    origin: str
    """``observed``: nature's own. ``injected``: by us, proved by the trace. ``told``: by others."""
    instead: tuple[str, ...]
    """Points called in these requests that no unperturbed request calls: what stood in."""
    traces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """Requests that failed, and what their traces point at."""

    suspects: tuple[str, ...]
    requests: int
    hidden: bool
    """Their own root span says they succeeded: a status of 200 that hides an error."""
    told: tuple[str, ...]
    traces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """One point called within another (``request`` is the root)."""

    above: str
    point: str
    calls: int
    failures: int


@dataclass(frozen=True, slots=True)
class ClassReport:
    """Everything known of one request class."""

    name: str
    service: str
    predicate: list[dict[str, Any]]
    traces: int
    good: int
    failed: int
    refused: int
    consistency: float
    hit_rate: float
    unfit: str
    supports: tuple[Support, ...]
    hypotheses: tuple[tuple[str, ...], ...]
    """Minimal sets of faults that, as far as these traces know, could prevent the outcome."""
    more_hypotheses: bool
    """There are more than those."""
    tolerated: tuple[Tolerated, ...]
    failures: tuple[Failure, ...]
    retried: tuple[str, ...]
    """Points that failed and succeeded within one good request."""
    callees: dict[str, str]
    edges: tuple[GraphEdge, ...]

    @property
    def single_points(self) -> tuple[str, ...]:
        """Faults that alone could prevent the outcome."""
        return tuple(each[0] for each in self.hypotheses if len(each) == 1)


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything that some trace files say."""

    spans: int
    traces: int
    outcomes: int
    files: dict[str, int]
    skipped: dict[str, int]
    unread: dict[str, str]
    max_size: int
    gist: Summary
    classes: tuple[ClassReport, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Write it as plain JSON data."""
        data = asdict(self)
        data["skipped"] = {**self.skipped, "unread file": len(self.unread)}
        for given, report in zip(data["classes"], self.classes, strict=True):
            given["single_points"] = list(report.single_points)
        return data
