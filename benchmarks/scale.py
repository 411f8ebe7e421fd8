"""``python -m benchmarks.scale [--json] [--seeds N]``: what it takes where there is much.

Worlds as bare as can be: every call is optional but for what is planted, and a good request relied
on all that did not fail. Three single faults and two pairs hurt, among a hundred to three thousand;
or services of five replicas of which three have to answer. With *blame* a failed request names what
it failed of; no union is larger than a failure context carries. Figures are the worst of the seeds,
processor time and not waiting; proposals, certificates and bounds are all timed.

What is compared with: Schönheim's bound on the good runs that cover all pairs, with two failed ones
for each planted set (the union's and its own); and, where failures name nothing, the number of bits
that tell three faults and two pairs of faults.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.outcome import Row, Target, at_least, at_most, say
from ldfi.experiments.domain.campaign.solver_input import explorer_of
from ldfi.experiments.domain.settings import Settings
from ldfi.fit.protocol.context import room
from ldfi.solver import Explorer
from ldfi.solver.covering import schoenheim

SEEDS = 3
SINGLES, PAIRS = 3, 2
SHARD, QUORUM = 5, 3
SLACK = 1.3
BITS = 1.6
DEADLINE = 2.0
PROPOSAL = 0.05
PATIENCE = 400
"""Experiments after which an exploration is stopped."""

Set = frozenset[str]


@dataclass(frozen=True)
class World:
    """``points``, of which all of one of the ``failing`` sets may not be lost."""

    points: tuple[str, ...]
    failing: tuple[Set, ...]
    shards: tuple[Set, ...] = ()

    def blamed(self, faults: Set) -> Set | None:
        """Name what a request fails of, the first that hurts; None if it does not fail."""
        for each in self.failing:
            if each <= faults:
                return each
        for shard in self.shards:
            if len(shard & faults) >= QUORUM:
                return shard & faults
        return None


def planted(count: int, seed: int) -> World:
    """Plant three faults and two pairs among so many points."""
    # Named as campaigns name faults, which tell kind and place by that.
    points = [f"error@service{number % 97:02}/op{number:04}" for number in range(count)]
    hurt = random.Random(seed).sample(points, SINGLES + 2 * PAIRS)
    failing = [frozenset({each}) for each in hurt[:SINGLES]]
    failing += [frozenset(hurt[at : at + 2]) for at in range(SINGLES, len(hurt), 2)]
    random.Random(seed + 1).shuffle(failing)
    return World(tuple(points), tuple(failing))


def quorums(count: int) -> World:
    """Make so many services of five replicas, of which three have to answer."""
    shards = [[f"shard{one:02}/replica{each}" for each in range(SHARD)] for one in range(count)]
    points = tuple(each for one in shards for each in one)
    return World(points, (), tuple(map(frozenset, shards)))


def explore(world: World, explorer: Explorer, *, blame: bool) -> Row:
    """Explore to the end; what it took."""
    explorer.observe(world.points)
    failed = 0
    slowest = largest = 0.0
    while explorer.experiments < PATIENCE:
        began = time.process_time()
        proposal = explorer.propose()
        slowest = max(slowest, time.process_time() - began)
        if proposal is None:
            break
        faults = frozenset(map(str, proposal))
        largest = max(largest, len(faults))
        blamed = world.blamed(faults)
        if blamed is None:
            support = frozenset(world.points) - faults
            explorer.record(injected=faults, succeeded=True, support=support)
        else:
            failed += 1
            explorer.record(injected=faults, succeeded=False, blame=blamed if blame else None)
    began = time.process_time()
    certificate = explorer.certificate()
    certified = time.process_time() - began
    began = time.process_time()
    bound = explorer.statement().lower_bound()
    return {
        "points": len(world.points),
        "blame": blame,
        "experiments": explorer.experiments,
        "failed": failed,
        "found": len(explorer.findings),
        "planted": len(world.failing),
        "complete": certificate.complete,
        "largest": largest,
        "bound": bound.total,
        "slowest_proposal_ms": round(slowest * 1e3, 1),
        "certificate_seconds": round(certified, 3),
        "bound_seconds": round(time.process_time() - began, 3),
    }


def worst(rows: Sequence[Row]) -> dict[str, float]:
    """Take the worst of each figure; of what should be much, the least."""
    least = ("found", "complete", "bound")
    figures = {name: [float(str(row[name] + 0)) for row in rows] for name in rows[0]}  # type: ignore[operator]
    return {name: (min if name in least else max)(each) for name, each in figures.items()}


def covering(count: int) -> float:
    """Bound from below what covering takes that is told of what it fails."""
    return schoenheim(count, room({"error"}), 2) + 2 * (SINGLES + PAIRS)


def bits(count: int) -> float:
    """Count the bits that tell three faults and two pairs of faults of so many."""
    return math.log2(math.comb(count, SINGLES) * math.comb(math.comb(count, 2), PAIRS))


def measured(seeds: int, sizes: Sequence[int]) -> tuple[list[Row], dict[str, Target]]:
    """Explore every world, and hold what it took against the targets."""
    rows: list[Row] = []
    targets: dict[str, Target] = {}

    def take(
        name: str, worlds: Sequence[World], *, blame: bool, most: float, default: bool = False
    ) -> None:
        runs = []
        for seed, world in enumerate(worlds):
            if default:
                explorer = explorer_of(Settings(seed=seed, kinds=("error",)))
            else:
                carried = room({"error"}) if blame else None
                explorer = Explorer(max_size=2, seed=seed, max_faults=carried)
            runs.append({"world": name, **explore(world, explorer, blame=blame)})
        rows.extend(runs)
        found = worst([{n: v for n, v in run.items() if n != "world"} for run in runs])
        targets[f"experiments: {name}"] = at_most(found["experiments"], most)
        targets[f"found: {name}"] = at_least(found["found"], found["planted"])
        targets[f"complete: {name}"] = at_least(found["complete"], 1)
        slowest = found["slowest_proposal_ms"] / 1e3
        targets[f"seconds of CPU a proposal: {name}"] = at_most(round(slowest, 4), PROPOSAL)
        targets[f"seconds for the certificate: {name}"] = at_most(
            found["certificate_seconds"], DEADLINE
        )
        targets[f"seconds for the bound: {name}"] = at_most(found["bound_seconds"], DEADLINE)
        if worlds[0].shards:
            shards = len(worlds[0].shards)
            targets[f"failed a shard: {name}"] = at_most(found["failed"] / shards, 3)

    for count in sizes:
        worlds = [planted(count, seed) for seed in range(seeds)]
        most = 18 if count == 100 else math.floor(SLACK * covering(count))
        take(f"with blame, {count} points", worlds, blame=True, most=most)
        if count == 100:
            take("the campaign's default, 100 points", worlds, blame=True, most=25, default=True)
    for count in (100, 300, 1_000):
        if count <= max(sizes):
            worlds = [planted(count, seed) for seed in range(seeds)]
            most = math.floor(BITS * bits(count))
            take(f"without blame, {count} points", worlds, blame=False, most=most)
    for shards, most in ((5, 40), (10, 80)):
        worlds = [quorums(shards)] * seeds
        take(f"{shards} quorums of 3 in 5", worlds, blame=True, most=most)
    return rows, targets


def main() -> int:
    """Print the table; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--points", type=int, nargs="*", default=[100, 1_000, 3_000])
    given = parser.parse_args()
    rows, targets = measured(given.seeds, given.points)
    return 0 if say({"worlds": rows}, targets, as_json=given.json) else 1


if __name__ == "__main__":
    sys.exit(main())
