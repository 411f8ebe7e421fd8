"""Drift: when a class's requests no longer rely on what they relied on.

Systems change under their classes: a release adds a call, a feature goes away. So every sample of
a class's good, unperturbed requests is held against what is known of it, point by point: of how
many requests was each point part of the support? Shares, and not whole supports: of a class whose
requests hit a cache half of the time now one support is the commonest and now the other, and
nothing has changed. Two things say that something has:

- a point on which a fifth of the sample relies, and which was not known (at most one request in a
  hundred had it, too few to count as evidence);
- a point on which a fifth used to rely, and of the sample nobody does.

What is known is the beginning of a class's present version and stays as it is: were it to grow
with every sample, a change late in one sample would be old news in the next.

What is not seen: a point whose share merely rises or falls, and a change within the requests that
made the beginning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ldfi.lineage.classes import teaching
from ldfi.lineage.shapes import Shape

MATTERS = 0.2
"""Share of requests from which on a point that comes or goes is a change."""

KNOWN = 0.01
"""Share of requests from which on a point is known."""

JUDGED = 50
"""Good requests, on both sides, without which nothing is said: a point that a fifth of all
requests have is missing in so many of them once in seventy thousand times."""

SETTLED = 200
"""Good requests in which a point must be missing to have gone, and that make a beginning whole."""


@dataclass(frozen=True, slots=True)
class Reliance:
    """How many good, unperturbed requests there were, and how many of them relied on each point."""

    requests: int = 0
    points: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, shapes: Iterable[Shape]) -> Reliance:
        """Count the shapes that teach."""
        requests, points = 0, Counter[str]()
        for shape in teaching(shapes):
            requests += shape.count
            for point in shape.lineage.support:
                points[point] += shape.count
        return cls(requests, points)

    def __add__(self, other: Reliance) -> Reliance:
        points = Counter(self.points) + Counter(other.points)
        return Reliance(self.requests + other.requests, points)

    def share(self, point: str) -> float:
        """Return the share of the requests that relied on a point."""
        return self.points.get(point, 0) / self.requests if self.requests else 0.0


@dataclass(frozen=True, slots=True)
class Drift:
    """Points on which requests rely now and did not, and the reverse. False where none are."""

    appeared: frozenset[str] = frozenset()
    vanished: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.appeared or self.vanished)


def drift(known: Reliance, fresh: Reliance) -> Drift:
    """Compare a fresh sample with what is known, and say what has changed."""
    if min(known.requests, fresh.requests) < JUDGED:
        return Drift()
    appeared = {p for p in fresh.points if fresh.share(p) >= MATTERS and known.share(p) < KNOWN}
    vanished: set[str] = set()
    if fresh.requests >= SETTLED:
        vanished = {p for p in known.points if known.share(p) >= MATTERS and not fresh.share(p)}
    return Drift(frozenset(appeared), frozenset(vanished))


@dataclass(slots=True)
class Watch:
    """Holds sample after sample of one class against its beginning.

    Small samples are put together until they are large enough to be judged.
    """

    known: Reliance = field(default_factory=Reliance)
    fresh: Reliance = field(default_factory=Reliance)

    def take(self, sample: Reliance) -> Drift:
        """Judge one more sample. Where something has changed, the sample is the new beginning."""
        self.fresh += sample
        found = drift(self.known, self.fresh)
        if found:
            self.known, self.fresh = sample, Reliance()
        elif self._growing():
            self.known, self.fresh = self.known + self.fresh, Reliance()
        elif self.fresh.requests >= SETTLED:
            self.fresh = Reliance()
        return found

    def _growing(self) -> bool:
        judged = self.fresh.requests >= JUDGED
        return self.known.requests < JUDGED or (judged and self.known.requests < SETTLED)
