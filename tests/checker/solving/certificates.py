"""Certificates of small random systems: finished or not, with and without doubt."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

from ldfi.solver import Doubt, Explorer
from tests.solver.systems import Set, System


def system_of(rng: random.Random) -> System:
    """A random system of up to six points, perhaps with domains, exclusions and the like."""
    points = tuple("abcdef"[: rng.randint(3, 6)])

    def some(least: int = 1) -> Set:
        return frozenset(rng.sample(points, rng.randint(least, len(points))))

    rich = rng.random() < 0.5
    return System(
        supports=tuple({some() for _ in range(rng.randint(1, 4))}),
        points=points,
        domains={"X": some(2)} if rich and rng.random() < 0.6 else {},
        exclusions=(some(2),) if rich and rng.random() < 0.5 else (),
        protected=frozenset(rng.sample(points, 1)) if rich and rng.random() < 0.3 else frozenset(),
        down=frozenset(rng.sample(points, 1)) if rich and rng.random() < 0.3 else frozenset(),
        inflation=rng.choice([0.0, 0.3, 1.0]),
        seed=rng.randint(0, 9),
    )


def explorer_for(system: System, rng: random.Random, size: int, strategy: str) -> Explorer:
    return Explorer(
        max_size=size,
        strategy=strategy,
        seed=rng.randint(0, 9),
        domains=system.domains,
        exclusions=system.exclusions,
        protected=system.protected,
        down=system.down,
    )


def certificate_of(rng: random.Random) -> dict[str, Any]:
    """One certificate, as JSON has it."""
    system = system_of(rng)
    size, strategy = rng.randint(1, 3), rng.choice(["union", "smallest", "likeliest"])
    explorer = explorer_for(system, rng, size, strategy)
    support = system.run(())
    if support is not None:
        explorer.observe(support, traces=["0af7651916cd43dd8448eb211c80319c"])
        explorer.widen(frozenset(rng.sample(system.points, 1)), frozenset())
    tried: list[dict[str, Any]] = []
    for _ in range(rng.choice([0, 1, 3, 100, 100])):
        proposal = explorer.recheck() if rng.random() < 0.1 else None
        proposal = explorer.propose() if proposal is None else proposal
        if proposal is None:
            break
        tried.append(_try(explorer, system, frozenset(map(str, proposal)), rng))
    if rng.random() < 0.3:
        explorer.imply(*rng.sample(system.points, 2))
    doubt = None
    if rng.random() < 0.4:
        doubt = _doubted(explorer, tried, explorer_for(system, rng, size, strategy), rng)
    document: dict[str, Any] = json.loads(explorer.certificate(doubt).to_json())
    return document


def _try(explorer: Explorer, system: System, faults: Set, rng: random.Random) -> dict[str, Any]:
    support = system.run(faults)
    run: dict[str, Any] = {"injected": faults, "succeeded": support is not None}
    if support is not None and (rng.random() < 0.9 or not faults):
        run["support"] = support
    if rng.random() < 0.05 and faults:
        run = {"injected": faults, "succeeded": None}
    explorer.record(**run)
    return run


def _doubted(
    explorer: Explorer, tried: list[dict[str, Any]], firm: Explorer, rng: random.Random
) -> Doubt:
    """Try most of it once more, and believe that alone."""
    for run in [run for run in tried if rng.random() < 0.7]:
        explorer.record(**run)
        tried.append(run)
    times = Counter((run["injected"], run["succeeded"]) for run in tried)
    for seen in explorer.runs.all:
        if seen.origin == "observed":
            firm.observe(seen.support or (), seen.failed)
    places = []
    for place, run in enumerate(tried):
        if run["succeeded"] is None or times[run["injected"], run["succeeded"]] > 1:
            places.append(place)
            firm.record(**run)
    impossible = set(explorer.doubtful)
    unsettled = [run["injected"] for run in tried if run["injected"] in impossible]
    return Doubt(firm.runs, places, survived=2, failed=2, unsettled=unsettled)
