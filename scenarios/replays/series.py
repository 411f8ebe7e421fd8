"""What was measured of one target: for each request class when requests were due, and what came.

Latencies count from when a request was *due*, not from when it could be sent: the wait for a server
that stands still is part of what users would have seen. A request that nobody answered counts as
slower than all that were.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ldfi.errors import InvalidReplay

UNANSWERED: Final = math.inf


@dataclass(slots=True)
class Series:
    """The requests of one class to one target, in the order in which they were due.

    ``due``: seconds since the run began. ``seconds``: until the whole answer, :data:`UNANSWERED`
    where there was none. ``failed``: why those failed that did, by their place.
    """

    name: str
    due: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)

    def take(self, due: float, seconds: float, failure: str | None) -> None:
        """Add a request."""
        if failure is not None:
            self.failed[len(self.due)] = failure
        self.due.append(due)
        self.seconds.append(seconds)

    @property
    def reasons(self) -> Counter[str]:
        """Return how often requests failed, by reason."""
        return Counter(self.failed.values())

    def after(self, warm_up: float) -> Series:
        """Drop the requests that were due while the target warmed up."""
        kept = Series(self.name)
        for place, (due, seconds) in enumerate(zip(self.due, self.seconds, strict=True)):
            if due >= warm_up:
                kept.take(due, seconds, self.failed.get(place))
        return kept

    def to_json(self) -> dict[str, Any]:
        """Write it: milliseconds when due, microseconds of latency, -1 without an answer."""
        return {
            "class": self.name,
            "due_ms": [round(due * 1_000) for due in self.due],
            "micros": [-1 if math.isinf(each) else round(each * 1e6) for each in self.seconds],
            "failed": {str(place): reason for place, reason in self.failed.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Series:
        """Read what :meth:`to_json` wrote. Raises InvalidReplay."""
        try:
            made = cls(
                str(data["class"]),
                [each / 1_000 for each in data["due_ms"]],
                [UNANSWERED if each < 0 else each / 1e6 for each in data["micros"]],
                {int(place): str(reason) for place, reason in data.get("failed", {}).items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidReplay(f"no series of a replay: {error!r}") from error
        if len(made.due) != len(made.seconds):
            raise InvalidReplay(f"{made.name}: the numbers of latencies and of requests differ")
        return made


def together(name: str, parts: Iterable[Series]) -> Series:
    """Unite several classes into one series."""
    rows = [
        (due, seconds, part.failed.get(place))
        for part in parts
        for place, (due, seconds) in enumerate(zip(part.due, part.seconds, strict=True))
    ]
    rows.sort(key=lambda row: row[0])
    united = Series(name)
    for row in rows:
        united.take(*row)
    return united
