"""``python -m benchmarks.pain [--worlds 40] [--json]``: how many members a finding costs.

Whole campaigns over planted worlds (:mod:`benchmarks.planted`): 30 to 120 points, five minimal
failing sets of one or two of them. Treated requests fail in 95 % where the faults hurt and in 1 %
anyway, as control does; of ten failed traces nine name the right faults; outcomes are known a
second late. A hundred requests a second, 1 % of the devices treated, 10 % in control.

- ``natural failures``: before the campaign begins, calls have failed by themselves now and then.
- ``traces after 8 s``: a trace is whole, and so an outcome known, only then.
- ``plain``: as many devices in control as are treated (5 % each), all let in at once; ``published
  rule``: as Netflix decided. To compare with; a quarter of the worlds.
- ``bursts``: experiments in which nothing hurts, while now and then most requests of either arm
  fail for some seconds. How often that is called harmful, with nothing else to end an experiment.
- ``engine``: some worlds without chance in them, by simulation and by the service's own engine
  (``ldfi.testing.world``): both must find the same.

``hurt``: devices whose requests failed because of what was injected into them, for each finding
that was confirmed. ``exposed`` and ``experiments`` are for each world, as are ``seconds``, which
include the time between the two slots of a finding.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sqlalchemy import select

from benchmarks.honesty import upper
from benchmarks.outcome import Row, Target, at_least, at_most, say
from benchmarks.pieces import carried_out
from benchmarks.planted import (
    NAME,
    PREDICATE,
    Conditions,
    Planted,
    Told,
    carry_out,
    explore,
    lineage_of,
    observation,
    planted,
)
from ldfi.experiments.domain.gates.waits import ServiceTimes, fitted
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.observation import Observation
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.faults import Fault
from ldfi.lineage.lineage import Lineage
from ldfi.testing.programs import Call, Run, Step
from ldfi.testing.world import World

SETTINGS: Final = Settings(
    kinds=("error",), treatment=0.01, control=0.1, delta=0.15, window=120.0, max_union=None
)
PLAIN: Final = replace(SETTINGS, treatment=0.05, control=0.05, admission="all")
LATE: Final = 8.0
NATURE: Final = 0.003
"""Share of calls that fail by themselves."""


@dataclass(frozen=True)
class Cell:
    """Campaigns under the same conditions. ``hurt``: how many members a finding may cost; None: no
    target, and a quarter of the worlds."""

    settings: Settings
    conditions: Conditions
    traces: float = 0.0
    hurt: float | None = None


def _settling(traces: float) -> Settings:
    """Set what the service would, where traces take so long until they are whole."""
    return fitted(SETTINGS, (), ServiceTimes(lease=10.0, quiet=traces, asked=1.0), delays=False)


CELLS: Final = {
    "no natural failures": Cell(SETTINGS, Conditions(), hurt=6.5),
    "natural failures": Cell(SETTINGS, Conditions(nature=NATURE), hurt=5.5),
    "traces after 8 s": Cell(_settling(LATE), Conditions(late=LATE), LATE, hurt=8.0),
    "plain": Cell(PLAIN, Conditions()),
    "published rule": Cell(replace(PLAIN, rule="threshold"), Conditions()),
}


def summed(name: str, told: Iterable[Told]) -> dict[str, Any]:
    """Sum up the campaigns of one cell."""
    all_told = list(told)
    worlds = len(all_told)
    confirmed = max(1, sum(len(each.confirmed) for each in all_told))

    def each(what: str, of: int) -> float:
        return round(sum(float(getattr(one, what)) for one in all_told) / of, 2)

    return {
        "cell": name,
        "worlds": worlds,
        "planted": sum(one.planted for one in all_told),
        "found": sum(one.found for one in all_told),
        "false": sum(one.false for one in all_told),
        "hurt": each("hurt", confirmed),
        "failing": each("failing", confirmed),
        "experiments": each("experiments", worlds),
        "exposed": each("exposed", worlds),
        "seconds": each("seconds", worlds),
    }


# --- Bursts ------------------------------------------------------------------------------------

BURSTS: Final = replace(
    SETTINGS, confirm=False, alpha_tolerated=1e-300, window=100.0, guardrail=1.0, members=1_000
)
EVERY, LASTS, FAILING = 20.0, 3.0, 0.6
"""Seconds from burst to burst and of one, and the share that fails in it."""
AT_A_TIME: Final = 100
BURSTS_A_WORLD: Final = 90


def bursts(runs: int, seed: int) -> int:
    """Count the experiments in which nothing hurts that are called harmful."""
    rng = random.Random(f"bursts {seed}")
    return sum(_burst(rng) == "harmful" for _ in range(runs))


def _burst(rng: random.Random) -> str | None:
    fault = Fault("a", "error")
    experiment = Experiment("e", NAME, PREDICATE, frozenset({str(fault)}), (fault,), BURSTS)
    experiment.arm(0.0)
    first = rng.uniform(0.0, EVERY)
    arms = {"treatment": _OPTIONAL, "control": replace(_OPTIONAL, fired=frozenset())}

    def draw(arm: Arm, begins: float, number: int) -> Observation:
        trouble = (begins + first) % EVERY < LASTS
        failed = rng.random() < (FAILING if trouble else 0.01)
        return observation(replace(arms[arm], arm=arm), begins, number, failed=failed)

    carry_out(experiment, draw, rng, 0.0, conditions=Conditions(per_second=50.0))
    return experiment.verdict


def _optional() -> Lineage:
    program = Call("root", (Step("optional", (Call("a"),)),))
    run = Run(frozenset({"error@a"})).execute(program)
    return replace(lineage_of(run), would_fire=frozenset({"error@a"}))


_OPTIONAL: Final = _optional()

# --- The engine --------------------------------------------------------------------------------

REQUESTS: Final = 20
"""Requests a second: each leaves its spans, one by one."""
CERTAIN: Final = Conditions(hurt=1.0, anyway=0.0, blame=1.0, per_second=REQUESTS)
SMALL: Final = (15, 20)
"""Points of a world that the engine takes in a few seconds."""
THROUGH_ENGINE: Final = replace(
    SETTINGS,
    treatment=0.05,
    control=0.5,
    rechecks=0,
    apart=20.0,
    settle=1.0,
    follow=0.0,
    verify=False,
)
ENGINES: Final = 3
STEPS: Final = 3_000


def by_engine(world: Planted) -> Told:
    """Explore one world through the service's own engine."""
    told = Told(planted=len(world.truth))
    with World.in_memory({"/": world.program}) as around:
        began = around.now
        campaign = around.start(THROUGH_ENGINE)
        for _ in range(STEPS):
            if not campaign.live():
                break
            around.step(REQUESTS)
        told.seconds = around.now - began
        findings = around.findings().items()
        told.confirmed = {frozenset(faults) for faults, state in findings if state == "open"}
        with around.database.read() as session:
            for row in session.scalars(select(ExperimentRow)):
                told.experiments += 1
                told.exposed += len(around.exposed[row.id])
                told.hurt += row.members_hurt
                told.failing += row.members_hurt > 0
    told.found = len(told.confirmed & world.truth)
    told.false = len(told.confirmed - world.truth)
    return told


def both(seed: int) -> tuple[Told, Told]:
    """Explore one world by simulation and by the engine."""
    world = planted(seed, SMALL)
    return explore(world, THROUGH_ENGINE, CERTAIN, seed), by_engine(world)


# --- All of it ---------------------------------------------------------------------------------


@dataclass
class Found:
    """What was measured, piece by piece."""

    cells: dict[str, list[Told]]
    harmful: int = 0
    bursts: int = 0
    engines: list[tuple[Told, Told]] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Add what was measured of another piece."""
        for name, told in other.cells.items():
            self.cells[name] += told
        self.harmful += other.harmful
        self.bursts += other.bursts
        self.engines += other.engines

    def tables(self) -> dict[str, list[Row]]:
        """Sum it all up."""
        share = self.harmful / self.bursts
        bound = upper(self.harmful, self.bursts)
        ways = zip(("simulated", "engine"), zip(*self.engines, strict=True), strict=True)
        return {
            "campaigns": [summed(name, told) for name, told in self.cells.items()],
            "bursts": [{"experiments": self.bursts, "harmful": share, "at most": bound}],
            "engine": [summed(name, told) for name, told in ways],
        }

    def targets(self) -> dict[str, Target]:
        """Hold it against what is wanted."""
        targets: dict[str, Target] = {}
        for name, told in self.cells.items():
            wanted, row = CELLS[name].hurt, summed(name, told)
            if wanted is not None:
                targets[f"hurt per finding, {name}"] = at_most(row["hurt"], wanted)
                targets[f"found, {name}"] = at_least(row["found"], row["planted"])
                targets[f"false, {name}"] = at_most(row["false"], 0)
        targets["harmful in bursts"] = at_most(self.harmful / self.bursts, BURSTS.alpha_harmful)
        alike = sum(one.confirmed == other.confirmed for one, other in self.engines)
        targets["worlds in which the engine finds the same"] = at_least(alike, len(self.engines))
        return targets


Piece = tuple[str, int]
"""The name of a cell, or of what else is done, and a seed."""
BURST: Final = "bursts"
ENGINE: Final = "engine"


def pieces(worlds: int) -> list[Piece]:
    """List everything to be measured."""
    campaigns = [
        (name, seed)
        for name, cell in CELLS.items()
        for seed in range(worlds if cell.hurt is not None else max(1, worlds // 4))
    ]
    some = max(1, BURSTS_A_WORLD * worlds // AT_A_TIME)
    return [
        *campaigns,
        *((BURST, seed) for seed in range(some)),
        *((ENGINE, seed) for seed in range(ENGINES)),
    ]


def measured(piece: Piece) -> Found:
    """Measure one piece."""
    name, seed = piece
    if name == BURST:
        return Found({}, bursts(AT_A_TIME, seed), AT_A_TIME)
    if name == ENGINE:
        return Found({}, engines=[both(seed)])
    cell = CELLS[name]
    told = explore(planted(seed), cell.settings, cell.conditions, seed, cell.traces)
    return Found({name: [told]})


def main() -> int:
    """Print the tables; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worlds", type=int, default=40, help="planted worlds for each cell")
    given = parser.parse_args()
    found = Found({name: [] for name in CELLS})
    for piece in carried_out(measured, pieces(given.worlds)):
        found.add(piece)
    return 0 if say(found.tables(), found.targets(), as_json=given.json) else 1


if __name__ == "__main__":
    sys.exit(main())
