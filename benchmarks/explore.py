"""``python -m benchmarks.explore [--json] [--full] [--plot FILE]``: experiments until certain.

Strategies side by side on the same App Boot trees. Every strategy but ``exhaustive`` and ``random``
runs until the explorer has nothing left to propose, and its certificate is checked by
``ldfi.checker.solving``. ``random`` tries random sets of faults and keeps what it learns by the
same rules.

``ratio_to_lower_bound`` is to |T_k| + c_k - 1, where c_k counts the given failure-free run, and is
bounded from below by a packing. ``ratio_to_weak_bound`` lets the failure-free run stand in for one
of the good runs even where it cannot.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks import explore_curve as curve
from benchmarks.explore_campaign import Campaign, Cell, explored
from benchmarks.outcome import Target, at_least, at_most, say

SEEDS = 30
FULL = 100
SMALL = (20, 26)
"""Points of the trees that exhaustive search is tried on."""
NATURE = (500, 0.003)
"""Requests watched beforehand, and how often each call fails in them by itself: about a quarter of
the requests carry an error, as in production."""


def summary(cell: Cell, campaigns: list[Campaign]) -> dict[str, object]:
    """Make one row: means over the seeds."""

    def average(value: Callable[[Campaign], float]) -> float:
        return round(mean(map(value, campaigns)), 2)

    return {
        "strategy": cell.name,
        "max_size": cell.max_size,
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


def cells() -> Iterator[Cell]:
    """Return what the rows of the table are made of."""
    for max_size in (2, 3):
        yield Cell("union with blame", "union", max_size, blame=True)
        yield Cell("union", "union", max_size)
        yield Cell("union with blame, after nature", "union", max_size, blame=True, nature=NATURE)
    # Sets of three take these thousands of experiments: see the small trees.
    yield Cell("likeliest", "likeliest", 2)
    yield Cell("smallest", "smallest", 2)
    yield Cell("smallest, after nature", "smallest", 2, nature=NATURE)
    yield Cell("random", "random", 2)
    for max_size in (2, 3):
        for name in ("union", "likeliest", "smallest", "exhaustive"):
            yield Cell(f"{name}, small trees", name, max_size, size=SMALL)


def main() -> int:
    """Print the table and the curve; 1 if a planted failure was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--full", action="store_true", help=f"{FULL} trees in place of {SEEDS}")
    parser.add_argument("--seeds", type=int, help="so many trees")
    parser.add_argument("--plot", help="write the curve to this PNG file")
    arguments = parser.parse_args()
    seeds = arguments.seeds or (FULL if arguments.full else SEEDS)
    table_of, curve_of = list(cells()), [curve.cells(blame=blame) for blame in (True, False)]
    found = iter(explored([*table_of, *curve_of[0], *curve_of[1]], seeds))
    table = [summary(cell, next(found)) for cell in table_of]
    drawn = [[curve.point(cell, next(found)) for cell in each] for each in curve_of]
    if arguments.plot:
        curve.plot(drawn, Path(arguments.plot))
    points = [asdict(point) for each in drawn for point in each]
    met = say({"strategies": table, "curve": points}, targets(table), as_json=arguments.json)
    return 0 if met else 1


def targets(table: list[dict[str, Any]]) -> dict[str, Target]:
    """Return what the table has to show."""
    held = {"union", "union with blame", "union with blame, after nature"}
    wanted = {
        f"{row['strategy']}, size {row['max_size']}": row
        for row in table
        if row["strategy"] in held
    }
    found: dict[str, Target] = {}
    for name, row in wanted.items():
        blame = "blame" in name
        experiments, failed = (16, 2.2) if blame else (50, 5)
        failed = 1.6 if "nature" in name else failed
        found[f"experiments to the certificate: {name}"] = at_most(
            row["to_certificate"], experiments
        )
        found[f"failed per finding: {name}"] = at_most(row["failed_per_finding"], failed)
        if blame:
            found[f"ratio to the lower bound: {name}"] = at_most(row["ratio_to_lower_bound"], 1.7)
    exploring = [row for row in table if row["strategy"] != "random"]
    complete = sum(bool(row["all_planted_found"]) for row in exploring)
    found["rows in which no planted failure was missed"] = at_least(complete, len(exploring))
    return found


if __name__ == "__main__":
    sys.exit(main())
