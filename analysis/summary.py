"""The gist of an analysis: what a person reads first. The terminal, the page and ``--json`` all say
this and nothing else of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class LostWith:
    """Requests that were lost with one service."""

    service: str
    seen: int
    """Requests in which nothing failed but calls to it."""
    suspected: int
    """Requests that point at it, and in which something else failed as well, or of which only the
    outcomes say that it was made to fail."""
    points: tuple[str, ...]

    @property
    def lost(self) -> int:
        """Count them all; each is in one of the two numbers only."""
        return self.seen + self.suspected

    @property
    def says(self) -> str:
        """Return how many, and how sure that is: ``273: 231 seen, 42 suspected``."""
        numbers = ((self.seen, "seen"), (self.suspected, "suspected"))
        return f"{self.lost:,}: " + ", ".join(f"{n:,} {what}" for n, what in numbers if n)


@dataclass(frozen=True, slots=True)
class Masked:
    """Requests whose answer did not show that something had gone wrong."""

    services: tuple[str, ...]
    requests: int
    refused: bool
    """They were answered 4xx; else their own root span says that they went well."""
    says: str
    lost: bool = True
    """Whether that something was lost is known; else it may be that something stood in."""


@dataclass(frozen=True, slots=True)
class Proved:
    """What failed while users got what they asked for: only of requests whose outcome is known."""

    faults: tuple[str, ...]
    services: tuple[str, ...]
    requests: int
    told: bool
    """Only the outcomes say that it failed; the traces do not show it."""
    instead: tuple[str, ...]
    """Services that stood in."""
    says: str


@dataclass(frozen=True, slots=True)
class RedItem:
    """What ought to be looked at, and why. No point is in two of them."""

    points: tuple[str, ...]
    """Exact names: of points, or of a service where it is the whole of it."""
    name: str
    lost: int
    reasons: tuple[str, ...]
    advice: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClassLine:
    """One class in a line."""

    name: str
    service: str
    requests: int
    good: int
    hurt: bool
    says: str


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """One service calls another."""

    above: str
    below: str
    calls: int
    failures: int


Standing = Literal["lost", "silent", "harmless", "unclear", "untried"]
"""Of a service: requests were lost with it; it says nothing of its own calls; it failed and that is
proved harmless; it failed, and what came of it is not known; it was not seen to fail."""


@dataclass(frozen=True, slots=True)
class ServiceLine:
    """One service, and what is known of its failing."""

    name: str
    standing: Standing


@dataclass(frozen=True, slots=True)
class Summary:
    """What a person reads first, in this order."""

    headline: str
    lead: str
    missing: str
    """What is not known of the outcomes; empty where all are known."""
    masked: tuple[Masked, ...]
    harmless: tuple[Proved, ...]
    lost: tuple[LostWith, ...]
    unexplained: int
    """Failed requests of which nothing says why."""
    red: tuple[RedItem, ...]
    classes: tuple[ClassLine, ...]
    jobs: int
    """Traces that are no requests that an edge sees arrive."""
    services: tuple[ServiceLine, ...]
    calls: tuple[ServiceCall, ...]
