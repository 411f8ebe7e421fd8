"""Maintenance windows: while something is being upgraded, its redundancy is gone; leave it alone.

A window has an owner, a reason and an end. It ends by itself, so that a forgotten one does not
switch experiments off for good; whoever needs longer opens another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ldfi.errors import InvalidMaintenance
from ldfi.experiments.domain.traffic.patterns import matching, names_of

EVERYTHING = "everything"


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A window from ``opened_at`` to ``until`` (or ``closed_at``, if earlier), in Unix seconds.

    ``down``: patterns of points, services, systems or fault domains (see
    :mod:`ldfi.experiments.domain.traffic.patterns`); empty pauses everything.
    Raises :class:`InvalidMaintenance`.
    """

    id: str
    owner: str
    reason: str
    down: tuple[str, ...]
    opened_at: float
    until: float
    closed_at: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("owner", self.owner), ("reason", self.reason)):
            if not value.strip():
                raise InvalidMaintenance(f"a maintenance window needs its {name}, not {value!r}")
        if not self.opened_at < self.until < float("inf"):
            raise InvalidMaintenance(
                f"a maintenance window ends after it opens: {self.until} is not an end for one "
                f"opened at {self.opened_at} (Unix seconds)"
            )
        if not all(pattern.strip() for pattern in self.down):
            raise InvalidMaintenance(
                f"{self.down!r} holds an empty pattern; name what is down, or nothing for all"
            )

    @property
    def seconds(self) -> float:
        """Return how long it was to stay open."""
        return self.until - self.opened_at

    def active(self, now: float) -> bool:
        """Return whether it is open."""
        end = self.until if self.closed_at is None else min(self.until, self.closed_at)
        return self.opened_at <= now < end

    def touches(self, points: Iterable[str], callees: Mapping[str, str]) -> str | None:
        """Find the name that is down and that one of the points goes by; None where none does.

        ``callees``: point → the service, system or domain that answers there. Says nothing of time:
        see :meth:`active`.
        """
        if not self.down:
            return EVERYTHING
        return matching(self.down, (name for point in points for name in names_of(point, callees)))
