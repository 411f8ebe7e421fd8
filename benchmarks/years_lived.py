"""What campaigns put on record, of classes of several sizes: what :mod:`benchmarks.years` repeats.

None of it is made up: a campaign with a schedule runs in a small world (:mod:`ldfi.testing.world`),
and what its first run, and the one after that, hand to the store is kept.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any
from unittest import mock

from ldfi.experiments.domain.campaign.calendar import Schedule
from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.campaign.exploration import FindingChange
from ldfi.experiments.domain.campaign.result import ExperimentResult
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.store import experiments
from ldfi.experiments.store.database import Change
from ldfi.lineage.run import Runs
from ldfi.testing.programs import Call, Step
from ldfi.testing.world import QUICK, World

SERVICES = (
    "ratings", "adverts", "tracking", "playlist", "popular", "profile",
    "billing", "search", "artwork", "hints", "layout", "session",
)  # fmt: skip
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH")
SHAPE = (("optional", 1), ("fallback", 2), ("optional", 1), ("optional", 3), ("critical", 1))
"""What the steps of a request are like, over and over: how many calls each makes, and what becomes
of the request where they fail."""
REQUESTS = 4
"""In each second of the world: experiments come to the same verdicts as with three times as many,
and a world takes a fifth of the time."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What the end of an experiment put on record."""

    experiment: Experiment
    spent: int
    result: ExperimentResult | None
    changes: list[FindingChange]
    runs: Runs | None


@dataclass(slots=True)
class Pattern:
    """What a campaign put on record of one class. ``first``: in its first run; ``later``: in the
    one after that."""

    definition: Definition
    document: dict[str, Any]
    certificate: dict[str, Any]
    first: list[Ended]
    later: list[Ended]


def program(points: int) -> Call:
    """Make an application whose requests make so many calls, of :data:`SHAPE`."""
    names = (f"web>http:{how}:{to}/v1/{to}/*" for how in METHODS for to in SERVICES)
    steps: list[Step] = []
    left = points
    for mode, calls in cycle(SHAPE):
        if not left:
            return Call("root", tuple(steps))
        now = min(calls, left)
        steps.append(Step(mode, tuple(Call(next(names)) for _ in range(now))))
        left -= now
    raise AssertionError("the shape has steps")


def lived(points: int) -> Pattern:
    """Let a campaign with a schedule go through two runs over a class of so many points."""
    settings = replace(QUICK, member_budget=10**9)
    definition = Definition(settings, name="nightly", schedule=Schedule("* * * * *"))
    with _kept() as ends, World.in_memory({"/p": program(points)}) as world:
        campaign = world.engine.scheduler.commands.start(definition, "bench", world.now)
        first = 0
        while campaign.run <= 2:
            world.step(REQUESTS)
            first = len(ends) if campaign.run == 1 else first
        (known,) = world.engine.catalogue.classes.values()
        (certificate,) = campaign.certificates()
    return Pattern(
        definition, known.to_json(), certificate, _decided(ends[:first]), _decided(ends[first:])
    )


@contextmanager
def _kept() -> Iterator[list[Ended]]:
    """Keep what ends of experiments are put on record with, meanwhile."""
    ends: list[Ended] = []
    put = experiments.end

    def kept(
        change: Change,
        experiment: Experiment,
        spent: int,
        result: ExperimentResult | None,
        changes: Sequence[FindingChange] = (),
        runs: Runs | None = None,
    ) -> None:
        ends.append(Ended(copy.copy(experiment), spent, result, list(changes), runs))
        put(change, experiment, spent, result, changes, runs)

    with mock.patch.object(experiments, "end", kept):
        yield ends


def _decided(ends: Sequence[Ended]) -> list[Ended]:
    return [each for each in ends if each.experiment.state == "decided"]
