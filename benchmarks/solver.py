"""``python -m benchmarks.solver [--json]``: how fast hypotheses are found and listed.

``next``: the next hypothesis while supports keep coming, at 300 faults and 1,000 supports.
``hard``: smallest hypotheses of random instances whose hitting sets are large, against the clock.
``list``: all minimal hitting sets up to size 3, against PySAT's sorted Hitman and OR-tools CP-SAT.
``next`` and ``list`` are in CPU time, ``hard`` in wall-clock time.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from pysat.examples.hitman import Hitman

from benchmarks.outcome import Target, at_least, at_most, say
from ldfi.solver import Explorer, OutOfTime
from ldfi.solver.bits import mask_of
from ldfi.solver.branch import HittingSets
from tests.solver.appboot import app_boot

LIMIT = 2.0
"""Seconds that a hard proposal may take."""


def timed(call: Callable[[], object]) -> float:
    """Measure seconds of CPU time that a call takes: what else the machine does must not count."""
    started = time.process_time()
    call()
    return time.process_time() - started


def supports(count: int, faults: int, size: tuple[int, int], seed: int) -> list[frozenset[str]]:
    """Draw supports; a small core is in most of them, as the critical calls of a page are."""
    rng = random.Random(seed)
    names = [f"f{number:03d}" for number in range(faults)]
    core = names[:6]
    return [
        frozenset(rng.sample(names, rng.randint(*size)))
        | frozenset(fault for fault in core if rng.random() < 0.9)
        for _ in range(count)
    ]


def next_hypothesis(kind: str, max_size: int, seed: int = 0) -> dict[str, object]:
    """Propose and record, 50 times, with 1,000 supports learnt beforehand.

    ``call tree``: an App Boot with 300 points of which 10 are critical, watched while calls fail by
    themselves. ``dense``: random supports of 100 to 200 of the faults, which no system would show.
    """
    row: dict[str, object] = {"measure": f"next, {kind}, size {max_size}"}
    row |= {"faults": 300, "supports": 1000}
    for strategy in ("smallest", "union"):
        explorer = Explorer(strategy=strategy, max_size=max_size, seed=seed, time_limit=LIMIT)
        app = app_boot(seed, size=(300, 300), planted=10)
        rng = random.Random(seed)
        known = supports(1050, 300, (100, 200), seed)
        if kind == "dense":
            for number, support in enumerate(known[:1000]):
                explorer.observe(support, failed={f"other{number}"} if number else set())
        else:
            explorer.observe(app.run(frozenset()).support)
            while len(explorer.runs.all) < 1000:
                for outcome in app.natural(500, rng, 0.01):
                    if outcome.succeeded:
                        explorer.observe(outcome.support, failed=outcome.fired)
        seconds = []
        for support in known[1000:]:
            started = time.process_time()
            proposal = explorer.propose()
            seconds.append(time.process_time() - started)
            if proposal is None:
                break
            faults = frozenset(map(str, proposal))
            if kind == "dense":
                explorer.record(injected=faults, succeeded=True, support=support - faults)
            else:
                outcome = app.run(faults)
                good = outcome.support if outcome.succeeded else None
                explorer.record(injected=faults, succeeded=outcome.succeeded, support=good)
        row[f"{strategy}_first_ms"] = round(1000 * seconds[0], 2)
        row[f"{strategy}_median_ms"] = round(1000 * median(seconds), 2)
        row[f"{strategy}_worst_ms"] = round(1000 * max(seconds), 2)
        row[f"{strategy}_proposals"] = len(seconds)
    return row


def hard_instances(count: int = 10) -> dict[str, object]:
    """Solve 60 elements, 400 sets: the proof that nothing smaller exists can take minutes."""
    seconds, optimal, nothing = [], 0, 0
    for seed in range(count):
        rng = random.Random(seed)
        explorer = Explorer(strategy="smallest", max_size=None, time_limit=LIMIT, seed=seed)
        names = [f"f{number:02d}" for number in range(60)]
        for number in range(400):
            # A group of its own for every support, so that every one of them is a clause.
            explorer.observe(rng.sample(names, rng.randint(4, 8)), failed={f"other{number}"})
        started = time.perf_counter()
        try:
            explorer.propose()
            optimal += explorer.optimal
        except OutOfTime:
            nothing += 1
        seconds.append(time.perf_counter() - started)
    return {
        "measure": "hard",
        "faults": 60,
        "supports": 400,
        "instances": count,
        "limit_seconds": LIMIT,
        "median_seconds": round(median(seconds), 3),
        "worst_seconds": round(max(seconds), 3),
        "proved_smallest": optimal,
        "minimal_only": count - optimal - nothing,
        "nothing_in_time": nothing,
    }


def listing(faults: int, count: int, size: tuple[int, int], seed: int = 0) -> dict[str, object]:
    """List all minimal hitting sets up to size 3, three ways, on the same input."""
    sets = [sorted(each) for each in supports(count, faults, size, seed)]
    numbers = [[int(name[1:]) for name in each] for each in sets]
    found: dict[str, set[frozenset[int]]] = {}

    def branching() -> None:
        masks = [mask_of(each) for each in numbers]
        hits: dict[int, int] = {}
        for position, each in enumerate(numbers):
            for element in each:
                hits[element] = hits.get(element, 0) | 1 << position
        search = HittingSets(masks, hits, 3)
        found["branching"] = {
            frozenset(element for element in range(faults) if mask >> element & 1)
            for mask in search
        }

    def hitman() -> None:
        found["hitman"] = set()
        with Hitman(bootstrap_with=numbers, htype="sorted") as enumerator:
            while (hit := enumerator.get()) is not None and len(hit) <= 3:
                found["hitman"].add(frozenset(hit))
                enumerator.block(hit)

    def cp_sat() -> None:
        found["cp_sat"] = _by_cp_sat(numbers, faults)

    ours, theirs, google = timed(branching), timed(hitman), timed(cp_sat)
    return {
        "measure": "list",
        "faults": faults,
        "supports": count,
        "hitting_sets": len(found["branching"]),
        "equal": found["branching"] == found["hitman"] == found["cp_sat"],
        "branching_seconds": round(ours, 4),
        "hitman_seconds": round(theirs, 4),
        "cp_sat_seconds": round(google, 4),
        "hitman_over_branching": round(theirs / ours, 1),
        "cp_sat_over_branching": round(google / ours, 1),
    }


def _by_cp_sat(sets: list[list[int]], faults: int) -> set[frozenset[int]]:
    """Solve size by size; what is found is blocked with its supersets."""
    from ortools.sat.python import cp_model

    found: set[frozenset[int]] = set()
    for size in (1, 2, 3):
        model = cp_model.CpModel()
        chosen = [model.new_bool_var(f"f{number}") for number in range(faults)]
        for each in sets:
            model.add_bool_or([chosen[element] for element in each])
        for known in found:
            model.add_bool_or([~chosen[element] for element in known])
        model.add(sum(chosen) == size)

        class Collect(cp_model.CpSolverSolutionCallback):
            """Keeps every solution."""

            def __init__(self, variables: list[cp_model.IntVar]) -> None:
                super().__init__()
                self.variables = variables
                self.solutions: list[frozenset[int]] = []

            def on_solution_callback(self) -> None:
                """Keep a solution; called by CP-SAT."""
                self.solutions.append(
                    frozenset(n for n, each in enumerate(self.variables) if self.value(each))
                )

        solver = cp_model.CpSolver()
        solver.parameters.enumerate_all_solutions = True
        solver.parameters.num_workers = 1
        collect = Collect(chosen)
        solver.solve(model, collect)
        found |= set(collect.solutions)
    return found


def main() -> int:
    """Print the rows; 1 if two ways of listing disagree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = [
        next_hypothesis("call tree", 2),
        next_hypothesis("call tree", 3),
        next_hypothesis("dense", 3),
        hard_instances(),
        listing(40, 12, (8, 20)),
        listing(60, 40, (20, 40)),
        listing(100, 30, (30, 60)),
    ]
    met = say({"rows": rows}, targets(rows), as_json=arguments.json)
    return 0 if met else 1


def targets(rows: list[dict[str, Any]]) -> dict[str, Target]:
    """Hold the rows against what they have to show."""
    medians = [row[f"{who}_median_ms"] for row in rows for who in ("smallest", "union")
               if f"{who}_median_ms" in row and "call tree" in row["measure"]]  # fmt: skip
    (hard,) = (row for row in rows if row["measure"] == "hard")
    lists = [row for row in rows if row["measure"] == "list"]
    slowest = min(row["hitman_over_branching"] for row in lists)
    return {
        "median ms to the next hypothesis, call trees": at_most(max(medians), 20),
        "worst seconds on hard instances": at_most(hard["worst_seconds"], hard["limit_seconds"]),
        "times faster than sorted Hitman, at least": at_least(slowest, 5),
        "lists equal to Hitman's and CP-SAT's": at_least(
            sum(row["equal"] for row in lists), len(lists)
        ),
    }


if __name__ == "__main__":
    sys.exit(main())
