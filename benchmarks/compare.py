"""``python -m benchmarks.compare [--runs N] [--told N] [--keep FOLDER]``: how often replays err.

Two versions are asked in turns, 20,000 requests each in five classes, and compared by the code that
``ldfi replay`` uses; latencies are lognormal (a tail of σ = 0.5 and 0.7), in four weathers:

- ``calm``: requests are independent;
- ``together``: a load that comes and goes slows both versions alike, for seconds at a time;
- ``pauses``: each version by itself stands still every ten seconds, for 50 ms on average, and what
  is due meanwhile waits;
- ``drift``: both become slower all the time, and 1 % of requests fail.

``the same``: how often any difference at all is claimed where there is none, over all classes and
metrics. ``slower``: everything takes 10 % more; ``slower tail``: half of the requests take what
they took and the p99 grows by 10 %. How often that is told (exit code 1). ``one after the other``:
the same of two runs that are compared afterwards.

A pair takes a quarter of a second of a core. All kinds go on side by side, and what is known of
each is said on stderr all the time.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.outcome import Row, Target, at_least, at_most, say
from benchmarks.pieces import carried_out
from ldfi.scenarios.replays.arrivals import RateProfile, arrivals, stretches
from ldfi.scenarios.replays.comparing import compared
from ldfi.scenarios.replays.series import Series
from ldfi.scenarios.replays.verdict import verdict_of

REQUESTS: Final = 20_000
SECONDS: Final = 100.0
RUNS: Final = 500
"""Pairs of each kind without a difference: so many tell 5 % from 7 %."""
TOLD: Final = 200
"""Pairs of each kind with one: it is told in nearly all of them."""
CHUNK: Final = 10
"""Pairs that one process compares at a time."""
SLOWER: Final = 0.1
P99: Final = 2.3263478740408408
"""Where 1 % of a normal distribution are beyond."""
CLASSES: Final[Mapping[str, tuple[float, float, float]]] = {
    "GET /": (0.40, 0.012, 0.5),
    "GET /search": (0.25, 0.060, 0.5),
    "GET /items/*": (0.20, 0.020, 0.5),
    "POST /orders": (0.10, 0.045, 0.7),
    "GET /orders/*": (0.05, 0.030, 0.7),
}
"""Share of the requests, median in seconds, σ of the logarithm."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of pair of versions that is compared many times."""

    name: str
    noise: str
    change: str = "the same"
    in_turns: bool = True
    target: bool = True


CELLS: Final = (
    *(Cell("the same", each) for each in ("calm", "together", "pauses", "drift")),
    *(
        Cell("the same, one after the other", each, in_turns=False)
        for each in ("calm", "pauses", "drift")
    ),
    *(Cell("slower", each, "slower") for each in ("calm", "together", "drift")),
    Cell("slower", "pauses", "slower", target=False),
    *(Cell("slower tail", each, "slower tail") for each in ("calm", "together", "drift")),
    Cell("slower, one after the other", "calm", "slower", in_turns=False),
)


def measured(rng: random.Random, cell: Cell, *, new: bool, load: list[float]) -> dict[str, Series]:
    """Simulate what is measured of one version."""
    slower = cell.change if new else "the same"
    names = list(CLASSES)
    drawn = rng.choices(names, [CLASSES[name][0] for name in names], k=REQUESTS)
    made = {name: Series(name) for name in names}
    stops = _pauses(rng) if cell.noise == "pauses" else []
    due_at = arrivals(stretches(RateProfile.CONSTANT, REQUESTS / SECONDS, SECONDS))
    for due, name in zip(due_at, drawn, strict=True):
        _share, median, sigma = CLASSES[name]
        normal = rng.gauss(0.0, 1.0)
        seconds = median * math.exp(sigma * normal + load[int(due)]) * _factor(slower, normal)
        while stops and stops[0][1] <= due:
            stops.pop(0)
        if stops and stops[0][0] <= due:
            seconds += stops[0][1] - due
        failed = cell.noise == "drift" and rng.random() < 0.01
        made[name].take(due, seconds, "status-500" if failed else None)
    return made


def _factor(change: str, normal: float) -> float:
    match change:
        case "slower":
            return 1 + SLOWER
        case "slower tail":  # more and more above the median, a tenth at the p99
            return float((1 + SLOWER) ** (max(0.0, normal) / P99))
    return 1.0


def _pauses(rng: random.Random) -> list[tuple[float, float]]:
    stops, at = [], rng.expovariate(0.1)
    while at < SECONDS:
        end = at + rng.expovariate(1 / 0.05)
        stops.append((at, end))
        at = end + rng.expovariate(0.1)
    return stops


def _load(rng: random.Random, noise: str) -> list[float]:
    """Draw what slows both versions in each second, as a logarithm."""
    match noise:
        case "together":
            level, made = 0.0, []
            for _ in range(int(SECONDS) + 1):
                level = 0.8 * level + 0.15 * rng.gauss(0.0, 1.0)
                made.append(level)
            return made
        case "drift":
            return [0.5 * second / SECONDS for second in range(int(SECONDS) + 1)]
    return [0.0] * (int(SECONDS) + 1)


def chunk(cell: Cell, seed: int) -> Counter[str]:
    """Compare some pairs: in how many a difference is claimed, called worse, called the same."""
    rng = random.Random(f"{cell} {seed}")
    found = Counter(pairs=CHUNK)
    for _ in range(CHUNK):
        load = _load(rng, cell.noise)
        old = measured(rng, cell, new=False, load=load)
        new = measured(rng, cell, new=True, load=load)
        classes = compared(old, new, in_turns=cell.in_turns)
        found["claimed"] += any(metric.claimed for each in classes for metric in each.metrics)
        found[verdict_of(classes)] += 1
    return found


def _chunk(work: tuple[Cell, int]) -> Counter[str]:
    return chunk(*work)


def report(
    runs: int, told: int, share: Callable[[Cell], bool], kept: Path | None
) -> tuple[list[Row], dict[str, Target]]:
    """Compare ``runs`` pairs of each kind without a difference, ``told`` of each with one: some of
    each kind in turn, so that whoever stops it knows a little of all. ``kept``: see
    ``carried_out``."""
    pieces = {
        cell: max(1, (runs if cell.change == "the same" else told) // CHUNK)
        for cell in filter(share, CELLS)
    }
    work = [
        (cell, piece)
        for piece in range(max(pieces.values(), default=0))
        for cell, most in pieces.items()
        if piece < most
    ]
    totals = {cell: Counter[str]() for cell in pieces}
    for (cell, _), found in zip(work, carried_out(_chunk, work, "comparing", kept), strict=True):
        totals[cell] += found
        so_far = totals[cell]
        said = f"{so_far['claimed']} claimed, {so_far['worse']} worse of {so_far['pairs']}"
        print(f"{cell.name}, {cell.noise}: {said}", file=sys.stderr)
    return _table(totals)


def _table(totals: Mapping[Cell, Counter[str]]) -> tuple[list[Row], dict[str, Target]]:
    rows: list[Row] = []
    targets: dict[str, Target] = {}
    for cell, found in totals.items():
        claimed, worse, same = (
            found[each] / found["pairs"] for each in ("claimed", "worse", "same")
        )
        rows.append(
            {
                "pair": cell.name,
                "weather": cell.noise,
                "runs": found["pairs"],
                "difference claimed": claimed,
                "worse": worse,
                "same": same,
            }
        )
        name = f"{cell.name}, {cell.noise}"
        if cell.change == "the same":
            targets[f"{name}: claimed"] = at_most(claimed, 0.05)
        elif cell.target:
            targets[f"{name}: told"] = at_least(worse, 0.9)
    return rows, targets


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=RUNS, help="pairs of each kind that is alike")
    parser.add_argument("--told", type=int, default=TOLD, help="pairs of each kind that is not")
    parser.add_argument("--only", default="", help="kinds whose name and weather contain this")
    parser.add_argument(
        "--keep", type=Path, help="keep what is done in this folder, and go on from there"
    )
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows, targets = report(
        given.runs,
        given.told,
        lambda cell: given.only in f"{cell.name}, {cell.noise}",
        given.keep,
    )
    return 0 if say({"comparisons": rows}, targets, as_json=given.json) else 1


if __name__ == "__main__":
    sys.exit(main())
