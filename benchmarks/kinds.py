"""``python -m benchmarks.kinds [--json] [--seeds N] [--only counted|real]``: what it costs to try
five kinds of fault, and whether what is found by injecting them happens when they are caused.

Sixty points, each of which can fail in five ways; every call is optional but for what is planted.
*General* sets hurt in whatever way their points fail. *Specific* ones hurt in some ways only, as
what handles failures does: a fallback that catches exceptions and looks at no answer, one that
looks at answers and catches nothing, a mask of anything but a 500, a caller that reads every body
and stumbles over an empty one. Failed requests name what they failed of.

The same is explored with one kind; with five, one fault at a time and two; and with five statuses
that are taken as alike, which they then are. With two faults at once it is compared with the
smallest covering array of strength 2 that is built here for somebody who knows beforehand what
hurts (:mod:`benchmarks.covering_arrays`): a good run shows one kind at each point, and of a pair
that hurts it holds one half, so such a pair is one column of ten values. A specific pair is two
columns, for its other kinds go together. Figures are the worst of the seeds.

``--only real`` leaves the counting out: real processes that are killed and broken for real
(:mod:`benchmarks.kinds_real`), by these five kinds or by ``--kinds``.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from benchmarks import kinds_real
from benchmarks.covering_arrays import best
from benchmarks.outcome import Row, Target, at_least, at_most, say
from ldfi.checker.solving import check
from ldfi.fit.protocol.kinds import kind_of
from ldfi.solver import Explorer

POINTS = 60
KINDS = ("refused", "reset", "status:500", "status:404", "empty")
STATUSES = ("status:500", "status:501", "status:502", "status:503", "status:504")
EXCEPTIONS, ANSWERS = frozenset(KINDS[:2]), frozenset(KINDS[2:4])
SPECIFIC = (EXCEPTIONS, ANSWERS, frozenset({"status:500"}), frozenset({"empty"}))
"""In which ways the specific sets hurt: where exceptions are not caught, where only they are, where
a 500 is not masked, where a body is read that is empty."""
GENERAL = 4
"""How many general sets of each size there are."""
SEEDS = 3
PATIENCE = 2_000
SLACK = 1.3
PARTS = ("counted", "real")

Set = frozenset[str]


@dataclass(frozen=True, slots=True)
class Planted:
    """Points that hurt when all of them fail in these ways."""

    points: Set
    kinds: frozenset[str]

    def within(self, faults: Set) -> Set | None:
        """Return those of the faults that hurt; None if they do not."""
        found = {f for f in faults if f.partition("@")[2] in self.points}
        harmful = frozenset(f for f in found if f.partition("@")[0] in self.kinds)
        return harmful if len(harmful) == len(self.points) else None


@dataclass(frozen=True, slots=True)
class World:
    """``kinds`` that are tried at each of the ``points``; ``alike``: whether they are alike."""

    points: tuple[str, ...]
    kinds: tuple[str, ...]
    planted: tuple[Planted, ...]
    size: int
    alike: bool = False

    @property
    def faults(self) -> Set:
        """List every fault."""
        return frozenset(f"{kind}@{point}" for point in self.points for kind in self.kinds)

    @property
    def findable(self) -> list[Planted]:
        """List what is planted and can be found with these kinds."""
        kinds = set(self.kinds)
        return [p for p in self.planted if len(p.points) <= self.size and p.kinds & kinds]

    def blamed(self, faults: Set) -> Set | None:
        """Name what a request fails of, the first that hurts; None if it does not fail."""
        return next((hit for each in self.planted if (hit := each.within(faults))), None)


def place(fault: object) -> str:
    """Return the point of a fault."""
    return str(fault).partition("@")[2]


def planted(seed: int, size: int, kinds: tuple[str, ...], *, specific: bool) -> tuple[Planted, ...]:
    """Plant general sets of each size, and specific ones at points of their own."""
    rng = random.Random(seed)
    points = rng.sample([f"p{number:02}" for number in range(POINTS)], POINTS)
    sets = list[Planted]()
    for each in range(1, size + 1):
        ways = [frozenset(kinds)] * GENERAL + list(SPECIFIC if specific else ())
        sets += [Planted(frozenset(points.pop() for _ in range(each)), way) for way in ways]
    rng.shuffle(sets)
    return tuple(sets)


def world(seed: int, size: int, kinds: tuple[str, ...], *, alike: bool = False) -> World:
    """Make the world of a seed, as far as these kinds see it."""
    every = STATUSES if alike else KINDS
    points = tuple(f"p{number:02}" for number in range(POINTS))
    sets = planted(seed, size, every, specific=not alike)
    return World(points, kinds, sets, size, alike)


def explorer_of(world: World, seed: int) -> Explorer:
    """Make the explorer as a campaign makes it."""
    explorer = Explorer(world.faults, max_size=world.size, seed=seed, place=place)
    for point in world.points:
        own = [f"{kind}@{point}" for kind in world.kinds]
        for pair in combinations(own, 2):
            explorer.exclude(pair, impossible=True)
        for one, other in pairwise(own) if world.alike else ():
            explorer.imply(one, other)
            explorer.imply(other, one)
    return explorer


def explore(world: World, seed: int) -> Row:
    """Explore to the end; what it took."""
    explorer = explorer_of(world, seed)
    explorer.observe(world.faults)
    failed, slowest = 0, 0.0
    while explorer.experiments < PATIENCE:
        began = time.process_time()
        proposal = explorer.propose()
        slowest = max(slowest, time.process_time() - began)
        if proposal is None:
            break
        faults = frozenset(map(str, proposal))
        blamed = world.blamed(faults)
        if blamed is None:
            support = world.faults - faults
            explorer.record(injected=faults, succeeded=True, support=support)
        else:
            failed += 1
            explorer.record(injected=faults, succeeded=False, blame=blamed)
    found = {frozenset(map(str, each)) for each in explorer.findings}
    missed = sum(not any(each.within(one) for one in found) for each in world.findable)
    extra = sum(world.blamed(each) is None for each in found)
    certificate = explorer.certificate()
    return {
        "kinds": len(world.kinds),
        "size": world.size,
        "alike": world.alike,
        "experiments": explorer.experiments,
        "failed": failed,
        "planted": len(world.findable),
        "missed": missed,
        "extra": extra,
        "presumed": len(certificate.data["axioms"]["bounds"].get("presumed", ())),
        "complete": certificate.complete and not check(certificate.data),
        "slowest_proposal_ms": round(slowest * 1e3, 1),
    }


def measured(seeds: int, sizes: Sequence[int]) -> tuple[list[Row], dict[str, Target]]:
    """Explore every world, and hold what it took against the targets."""
    rows: list[Row] = []
    targets: dict[str, Target] = {}
    for size in sizes:
        for alike in (False, True):
            every = STATUSES if alike else KINDS
            name = f"size {size}{', alike' if alike else ''}"
            pairs = [
                [explore(world(s, size, kinds, alike=alike), s) for kinds in (every[:1], every)]
                for s in range(seeds)
            ]
            rows += [row for pair in pairs for row in pair]
            targets |= _held(name, pairs, size, alike=alike)
    return rows, targets


def columns(size: int) -> list[int]:
    """Return how many values each column of the array has: the points that hurt alone have none."""
    left = POINTS - GENERAL - len(SPECIFIC) - 2 * GENERAL * (size > 1)
    return [2 * len(KINDS)] * (GENERAL * (size > 1)) + [len(KINDS)] * left


def _held(
    name: str, pairs: Sequence[Sequence[Row]], size: int, *, alike: bool
) -> dict[str, Target]:
    """Hold five kinds against one, in the worst of the seeds."""
    specific = 0 if alike else len(SPECIFIC) * size

    def number(row: Row, figure: str) -> float:
        return float(str(row[figure]))

    more = max(number(five, "failed") - number(one, "failed") for one, five in pairs)
    targets = {
        f"failed besides those of one kind: {name}": at_most(more, 2 * specific),
        f"missed or extra: {name}": at_most(
            max(number(row, "missed") + number(row, "extra") for _, row in pairs), 0
        ),
        f"complete, and checked: {name}": at_least(
            min(bool(row["complete"]) for _, row in pairs), 1
        ),
    }
    if size == 1 or alike:
        times = max(number(five, "experiments") / number(one, "experiments") for one, five in pairs)
        targets[f"experiments, times those of one kind: {name}"] = at_most(round(times, 2), 2)
    else:
        array = len(best(columns(size)))
        most = max(number(five, "experiments") for _, five in pairs)
        good = max(number(five, "experiments") - number(five, "failed") for _, five in pairs)
        targets[f"experiments (array: {array} rows): {name}"] = at_most(most, SLACK * array)
        targets[f"of which survived: {name}"] = at_most(good, SLACK * array)
    return targets


def main() -> int:
    """Print the table; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--kinds", type=_kinds, default=KINDS, help="on real processes")
    given = parser.parse_args()
    tables: dict[str, list[Row]] = {}
    targets: dict[str, Target] = {}
    if given.only in (None, "counted"):
        tables["worlds"], targets = measured(given.seeds, given.sizes)
    if given.only in (None, "real"):
        tables["real processes"], held = kinds_real.measured(given.kinds)
        targets |= held
    return 0 if say(tables, targets, as_json=given.json) else 1


def _kinds(text: str) -> tuple[str, ...]:
    return tuple(map(kind_of, text.split(",")))


if __name__ == "__main__":
    sys.exit(main())
