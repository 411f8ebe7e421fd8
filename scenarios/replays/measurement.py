"""What a run measured, and the file that it is kept in.

JSON Lines: the first line says what was asked of whom and what was reached, each other one is a
:class:`~ldfi.scenarios.replays.series.Series` of one target, and the lineages that were seen.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ldfi.errors import InvalidReplay
from ldfi.scenarios.replays.lineages import ClassLineage
from ldfi.scenarios.replays.series import Series

VERSION: Final = 1
ENOUGH: Final = 0.95
"""Share of a rate from which on it counts as reached."""
LATE: Final = 0.02
"""Seconds that we ourselves may send late, in 99 of 100 cases, before latencies are in doubt."""


@dataclass(slots=True)
class TargetRun:
    """One target: requests answered a second, what was measured by class, why requests failed."""

    name: str
    url: str
    reached: float = 0.0
    series: dict[str, Series] = field(default_factory=dict)
    first_failures: list[str] = field(default_factory=list)
    lineages: dict[str, ClassLineage] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        """Return how many were sent, the warm-up not counted."""
        return sum(len(each.due) for each in self.series.values())

    @property
    def reasons(self) -> Counter[str]:
        """Return how often requests failed, by reason."""
        return sum((each.reasons for each in self.series.values()), Counter())

    def to_json(self) -> dict[str, Any]:
        """Write it, without what was measured."""
        return {
            "name": self.name,
            "url": self.url,
            "reached": round(self.reached, 2),
            "first_failures": self.first_failures,
        }


@dataclass(slots=True)
class Measurement:
    """A run: of one target, or of two that were asked in turns.

    ``asked``: requests a second for each target, on average. ``late``: seconds that we ourselves
    were late with one of a hundred requests. ``started``: Unix seconds.
    """

    recording: str
    profile: str
    seconds: float
    asked: float
    started: float
    late: float = 0.0
    targets: list[TargetRun] = field(default_factory=list)

    @property
    def doubts(self) -> list[str]:
        """Return the reasons to doubt the figures, in words."""
        told = [
            f"the rate was not reached at {each.name}: asked {self.asked:g}/s, reached "
            f"{each.reached:g}/s"
            for each in self.targets
            if each.reached < ENOUGH * self.asked
        ]
        if self.late > LATE:
            told.append(
                f"one request in a hundred was sent {self.late * 1000:.0f} ms late by this machine "
                "itself: part of the latencies is its own"
            )
        return told

    def to_lines(self) -> str:
        """Write the file."""
        head = {
            "ldfi": "replay",
            "version": VERSION,
            "recording": self.recording,
            "profile": self.profile,
            "seconds": self.seconds,
            "asked": self.asked,
            "started": self.started,
            "late": round(self.late, 6),
            "targets": [each.to_json() for each in self.targets],
        }
        lines: list[Mapping[str, Any]] = [head]
        for target in self.targets:
            lines += [{"target": target.name, **each.to_json()} for each in target.series.values()]
            lines += [
                {"target": target.name, "lineage": name, **each.to_json()}
                for name, each in target.lineages.items()
            ]
        return "".join(f"{json.dumps(line)}\n" for line in lines)


def read_measurement(file: Path) -> Measurement:
    """Read a file that a run wrote. Raises InvalidReplay."""
    try:
        first, *rest = (json.loads(line) for line in file.read_text("utf-8").splitlines() if line)
        if first.get("ldfi") != "replay" or first.get("version") != VERSION:
            raise InvalidReplay(f"{file} is not a run of `ldfi replay run` in version {VERSION}")
        made = Measurement(
            str(first["recording"]),
            str(first["profile"]),
            float(first["seconds"]),
            float(first["asked"]),
            float(first["started"]),
            float(first["late"]),
        )
        targets = {
            each["name"]: TargetRun(
                each["name"], each["url"], each["reached"], first_failures=each["first_failures"]
            )
            for each in first["targets"]
        }
        for line in rest:
            if "lineage" in line:
                of = targets[line["target"]].lineages
                of[line["lineage"]] = ClassLineage.from_json(line)
            else:
                series = Series.from_json(line)
                targets[line["target"]].series[series.name] = series
    except (
        *(OSError, ValueError, RecursionError),
        *(KeyError, TypeError, AttributeError),
    ) as error:
        raise InvalidReplay(f"{file} cannot be read: {error!r}") from error
    made.targets = list(targets.values())
    return made
