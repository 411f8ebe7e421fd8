"""What came of one run or of two, whole: what people and programs are told of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from ldfi.errors import InvalidReplay
from ldfi.scenarios.replays.comparing import (
    EVERYTHING,
    QUANTILES,
    SUCCESS,
    TOLERANCE,
    ClassDifference,
    MetricDifference,
    compared,
    mixed_alike,
)
from ldfi.scenarios.replays.intervals import Interval, quantile_interval, share_interval
from ldfi.scenarios.replays.lineages import CallChange, changes
from ldfi.scenarios.replays.measurement import Measurement, TargetRun
from ldfi.scenarios.replays.series import Series, together

# What a comparison comes to in one word: for a pipeline that asks whether to go on.

RunVerdict = Literal["same", "worse", "cannot tell"]


def verdict_of(classes: Sequence[ClassDifference]) -> RunVerdict:
    """Judge all classes: worse where any metric of any of them is; the same where nothing that
    matters is open for all requests together, or for each class where they cannot be united. What
    became better is the same here: nothing stands in the way."""
    if any(metric.verdict == "worse" for each in classes for metric in each.metrics):
        return "worse"
    united = [each for each in classes if each.name == EVERYTHING] or classes
    open_ones = [m for each in united for m in each.weighty if m.verdict == "cannot tell"]
    return "cannot tell" if open_ones or not united else "same"


VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two versions held against each other. ``doubts``: what speaks against the figures."""

    old: TargetRun
    new: TargetRun
    classes: tuple[ClassDifference, ...]
    calls: tuple[CallChange, ...]
    doubts: tuple[str, ...]
    in_turns: bool
    started: float
    asked: float

    @property
    def verdict(self) -> RunVerdict:
        """Return the verdict; *same* becomes *cannot tell* where there are doubts."""
        found = verdict_of(self.classes)
        return "cannot tell" if found == "same" and self.doubts else found

    def to_json(self) -> dict[str, Any]:
        """Write it for programs, and for the service to keep."""
        return {
            "ldfi": "comparison",
            "version": VERSION,
            "verdict": self.verdict,
            "in_turns": self.in_turns,
            "started": self.started,
            "asked_per_second": self.asked,
            "old": _target(self.old),
            "new": _target(self.new),
            "classes": [_class(each) for each in self.classes],
            "calls": [each.to_json() for each in self.calls],
            "doubts": list(self.doubts),
        }


def comparison_of(
    measurements: Sequence[Measurement], tolerance: float = TOLERANCE
) -> RunComparison:
    """Compare the two targets of one run, or the one target of each of two. Raises
    InvalidReplay."""
    targets = [target for each in measurements for target in each.targets]
    if len(measurements) > 2 or len(targets) != 2:
        raise InvalidReplay(
            f"{len(targets)} versions in {len(measurements)} files: give two files of one version "
            "each, or one in which two were asked in turns"
        )
    old, new = targets
    doubts = [doubt for each in measurements for doubt in each.doubts]
    first, last = measurements[0], measurements[-1]
    if (first.profile, first.asked) != (last.profile, last.asked):
        doubts.append("the two runs were not asked for alike: another profile, or another rate")
    if not mixed_alike(old.series, new.series):
        doubts.append("the classes have other shares in the two runs: each is compared by itself")
    in_turns = len(measurements) == 1
    classes = compared(old.series, new.series, in_turns=in_turns, tolerance=tolerance)
    if not classes:
        doubts.append("no request class was asked for in both runs")
    return RunComparison(
        old,
        new,
        classes,
        tuple(changes(old.lineages, new.lineages)),
        tuple(doubts),
        in_turns,
        first.started,
        first.asked,
    )


def single(measurement: Measurement) -> dict[str, Any]:
    """Write what was measured of one version, for programs."""
    target = measurement.targets[0]
    return {
        "ldfi": "measurement",
        "version": VERSION,
        "profile": measurement.profile,
        "seconds": measurement.seconds,
        "started": measurement.started,
        "asked_per_second": measurement.asked,
        "target": _target(target),
        "classes": [
            {"class": name, "requests": len(each.due), **_summary(each)}
            for name, each in with_all(target).items()
        ],
        "doubts": measurement.doubts,
    }


def with_all(target: TargetRun) -> dict[str, Series]:
    """List the classes of a target, all together first where there are several."""
    if len(target.series) < 2:
        return dict(target.series)
    return {EVERYTHING: together(EVERYTHING, target.series.values()), **target.series}


def intervals_of(series: Series) -> dict[str, Interval]:
    """Work out success and quantiles of a class, each with its interval."""
    failures = share_interval(len(series.failed), len(series.due))
    good = Interval(1 - failures.value, 1 - failures.high, 1 - failures.low)
    ordered = sorted(series.seconds)
    found = {metric: quantile_interval(ordered, share) for metric, share in QUANTILES.items()}
    return {SUCCESS: good, **found}


def _summary(series: Series) -> dict[str, Any]:
    return {metric: _interval(each) for metric, each in intervals_of(series).items()}


def _target(target: TargetRun) -> dict[str, Any]:
    return {
        **target.to_json(),
        "requests": target.requests,
        "reasons": dict(target.reasons.most_common()),
    }


def _class(each: ClassDifference) -> dict[str, Any]:
    return {
        "class": each.name,
        "requests": list(each.requests),
        "metrics": {metric.metric: _metric(metric) for metric in each.metrics},
    }


def _metric(metric: MetricDifference) -> Mapping[str, Any]:
    return {
        "verdict": metric.verdict,
        "old": _interval(metric.old),
        "new": _interval(metric.new),
        "change": None if metric.change is None else _interval(metric.change),
        "chance": metric.chance,
        "claimed": metric.claimed,
    }


def _interval(each: Interval) -> list[float | None]:
    return [
        None if not math.isfinite(v) else round(v, 9) for v in (each.value, each.low, each.high)
    ]
