"""``python -m benchmarks.explore [--json] [--seeds N] [--plot FILE]``: experiments until certain.

Strategies side by side on the same App Boot trees. Every strategy but ``exhaustive`` and ``random``
runs until the explorer has nothing left to propose, and its certificate is checked by
``ldfi.solver.check``. ``random`` tries random sets of faults and keeps what it learns by the same
rules.

``ratio_to_lower_bound`` is to |T_k| + c_k - 1, where c_k counts the given failure-free run, and is
bounded from below by a packing. ``ratio_to_weak_bound`` lets the failure-free run stand in for one
of the good runs even where it cannot.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.appboot import AppBoot, app_boot
from benchmarks.outcome import Target, at_least, at_most, say
from ldfi.solver import Explorer
from ldfi.solver.check import check

SEEDS = 30
PATIENCE = 1500
"""Experiments after which ``random`` is stopped."""
SMALL = (20, 26)
"""Points of the trees that exhaustive search is tried on."""
NATURE = (500, 0.003)
"""Requests watched beforehand, and how often each call fails in them by itself: about a quarter of
the requests carry an error, as in production."""


@dataclass(frozen=True)
class Campaign:
    """One exploration of one tree."""

    points: int
    planted: int
    experiments: int
    failed: int
    first: int
    last: int
    all_found: bool
    certified: bool
    bound: int
    weak_bound: int
    largest: int
    harmed: int
    """Faults injected in failed experiments, all together."""
    seconds: float


def campaign(
    app: AppBoot,
    *,
    strategy: str,
    max_size: int,
    seed: int,
    blame: bool,
    cap: int | None = None,
    nature: tuple[int, float] = (0, 0.0),
) -> Campaign:
    """Explore one tree to the end."""
    started = time.perf_counter()
    explorer = Explorer(
        max_size=max_size,
        strategy="smallest" if strategy == "random" else strategy,
        seed=seed,
        max_union=cap,
        time_limit=None,
    )
    explorer.observe(app.run(frozenset()).support)
    rng = random.Random(seed)
    for request in app.natural(nature[0], rng, nature[1]):
        if request.succeeded:
            explorer.observe(request.support, failed=request.fired)
    failed = first = last = largest = harmed = 0
    found = 0
    while explorer.experiments < PATIENCE:
        if strategy == "random":
            faults = _random_set(app, rng)
            if explorer.open_count(1) == 0:
                break
        else:
            proposal = explorer.propose()
            if proposal is None:
                break
            faults = frozenset(map(str, proposal))
        outcome = app.run(faults)
        if outcome.succeeded:
            explorer.record(injected=faults, succeeded=True, support=outcome.support)
        else:
            failed += 1
            harmed += len(faults)
            explorer.record(
                injected=faults, succeeded=False, blame=outcome.blame if blame else None
            )
            if len(explorer.findings) > found:
                found = len(explorer.findings)
                last = explorer.experiments
                first = first or last
        largest = max(largest, len(faults))
    certificate = explorer.certificate()
    complete = certificate.complete and check(json.loads(certificate.to_json())) == []
    bound = certificate.data["lower_bound"]
    return Campaign(
        points=len(app.points),
        planted=len(app.minimal_failing_sets),
        experiments=explorer.experiments,
        failed=failed,
        first=first,
        last=last,
        all_found=set(explorer.findings) == app.minimal_failing_sets,
        certified=complete,
        bound=bound["total"],
        weak_bound=bound["failing"] + max(len(bound["packing"]) - 1, 0),
        largest=largest,
        harmed=harmed,
        seconds=time.perf_counter() - started,
    )


def exhaustive(app: AppBoot, max_size: int) -> Campaign:
    """Try every set that contains no known failing one."""
    started = time.perf_counter()
    found: list[frozenset[str]] = []
    count = first = last = 0
    for size in range(1, max_size + 1):
        for each in combinations(app.points, size):
            faults = frozenset(each)
            if not any(known <= faults for known in found):
                count += 1
                if not app.run(faults).succeeded:
                    found.append(faults)
                    last = count
                    first = first or last
    bound = len(found) + 1
    return Campaign(
        points=len(app.points),
        planted=len(app.minimal_failing_sets),
        experiments=count,
        failed=len(found),
        first=first,
        last=last,
        all_found=set(found) == app.minimal_failing_sets,
        certified=True,
        bound=bound,
        weak_bound=bound,
        largest=max_size,
        harmed=sum(map(len, found)),
        seconds=time.perf_counter() - started,
    )


def _random_set(app: AppBoot, rng: random.Random) -> frozenset[str]:
    return frozenset(rng.sample(app.points, rng.randint(1, 8)))


def summary(name: str, max_size: int, campaigns: list[Campaign]) -> dict[str, object]:
    """Sum up one row: means over the seeds."""

    def average(value: Callable[[Campaign], float]) -> float:
        return round(mean(map(value, campaigns)), 2)

    return {
        "strategy": name,
        "max_size": max_size,
        "seeds": len(campaigns),
        "points": average(lambda c: c.points),
        "to_first_finding": average(lambda c: c.first),
        "to_last_finding": average(lambda c: c.last),
        "to_certificate": average(lambda c: c.experiments),
        "to_certificate_worst": max(c.experiments for c in campaigns),
        "failed": average(lambda c: c.failed),
        "failed_per_finding": average(lambda c: c.failed / c.planted),
        "ratio_to_lower_bound": average(lambda c: c.experiments / c.bound),
        "ratio_to_weak_bound": average(lambda c: c.experiments / c.weak_bound),
        "all_planted_found": all(c.all_found for c in campaigns),
        "certified": sum(c.certified for c in campaigns),
        "largest_fault_set": max(c.largest for c in campaigns),
        "seconds": average(lambda c: c.seconds),
    }


def rows(seeds: int) -> Iterator[dict[str, object]]:
    """Make the rows of the table."""
    big = [app_boot(seed) for seed in range(seeds)]
    for max_size in (2, 3):
        for name, strategy, blame, nature in (
            ("union with blame", "union", True, (0, 0.0)),
            ("union", "union", False, (0, 0.0)),
            ("union with blame, after nature", "union", True, NATURE),
            ("likeliest", "likeliest", False, (0, 0.0)),
            ("smallest", "smallest", False, (0, 0.0)),
            ("smallest, after nature", "smallest", False, NATURE),
            ("random", "random", False, (0, 0.0)),
        ):
            if max_size == 3 and strategy != "union":
                continue  # thousands of triples: see the small trees
            yield summary(
                name,
                max_size,
                [
                    campaign(
                        app,
                        strategy=strategy,
                        max_size=max_size,
                        seed=seed,
                        blame=blame,
                        nature=nature,
                    )
                    for seed, app in enumerate(big)
                ],
            )
    small = [app_boot(seed, size=SMALL) for seed in range(seeds)]
    for max_size in (2, 3):
        for name in ("union", "likeliest", "smallest"):
            yield summary(
                f"{name}, small trees",
                max_size,
                [
                    campaign(app, strategy=name, max_size=max_size, seed=seed, blame=False)
                    for seed, app in enumerate(small)
                ],
            )
        yield summary(
            "exhaustive, small trees", max_size, [exhaustive(app, max_size) for app in small]
        )


def main() -> int:
    """Print the table and the curve; 1 if a planted failure was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--plot", help="write the curve to this PNG file")
    arguments = parser.parse_args()
    # Imported here because the curve measures by what this module defines.
    from benchmarks.explore_curve import curve, plot

    table = list(rows(arguments.seeds))
    drawn = [curve(arguments.seeds, blame=blame) for blame in (True, False)]
    if arguments.plot:
        plot(drawn, Path(arguments.plot))
    points = [asdict(point) for each in drawn for point in each]
    met = say({"strategies": table, "curve": points}, targets(table), as_json=arguments.json)
    return 0 if met else 1


def targets(table: list[dict[str, Any]]) -> dict[str, Target]:
    """Hold the table against what it has to show."""
    wanted = {
        f"{row['strategy']}, size {row['max_size']}": row
        for row in table
        if row["strategy"] in {"union", "union with blame"}
    }
    found: dict[str, Target] = {}
    for name, row in wanted.items():
        blame = "blame" in name
        experiments, failed = (16, 2.2) if blame else (50, 5)
        found[f"experiments to the certificate: {name}"] = at_most(
            row["to_certificate"], experiments
        )
        found[f"failed per finding: {name}"] = at_most(row["failed_per_finding"], failed)
        if blame:
            found[f"ratio to the lower bound: {name}"] = at_most(row["ratio_to_lower_bound"], 2.0)
    exploring = [row for row in table if row["strategy"] != "random"]
    complete = sum(bool(row["all_planted_found"]) for row in exploring)
    found["rows in which no planted failure was missed"] = at_least(complete, len(exploring))
    return found


if __name__ == "__main__":
    sys.exit(main())
