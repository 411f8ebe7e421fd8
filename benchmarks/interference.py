"""``python -m benchmarks.interference [--runs N] [--json]``: requests that hurt each other.

Simulated applications (``ldfi.testing.world``: the real engine) that can do without a service, and
whose requests share a circuit breaker or a pool of connections in front of it: one experiment each,
in a world of its own, with limits and times drawn anew. The experiment's own class feels it, or
another one that reaches the same service. A pool is waited for before the call or in it.

- ``inconclusive``: where others are hurt and the treated are not, that is interference.
- ``tolerated``: how many are said to be survived; ``though hurt``: although others were hurt, which
  none may be. (A pool may be so large that it never ran empty.)
- ``treated``, ``harmed``, ``seen``: devices treated; devices that failed beside them before the
  rules were taken down; and how many of their failures had been reported by then. Who lies between
  ``seen`` and ``harmed`` asked while reports were under way (0.4 to 0.5 seconds here, until a trace
  counts as whole), so that number grows with the traffic: here 20 requests a second in all.
- ``neither``: the same application without breaker and pool, and one in a hundred requests failing
  by itself.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import select

from benchmarks.outcome import Target, at_least, at_most, say
from benchmarks.pieces import carried_out
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.store.schema import ExperimentRow
from ldfi.testing.programs import Caller, CallFailed, Unserved
from ldfi.testing.sharing import Breaker, Pool
from ldfi.testing.world import Application, World

STARS, LIST = "api>http:GET:ratings/stars", "api>http:GET:ratings/list"
SETTINGS: Final = Settings(
    kinds=("error",),
    treatment=0.1,
    control=0.1,
    min_traffic=100,
    settle=1.0,
    follow=0.0,
    rechecks=0,
    window=60.0,
)
REQUESTS, SECONDS = 2, 0.1
"""Requests of all classes in a step, and how long that is."""
STEPS = 1_200
NATURE = 0.01
"""Share of requests that fail by themselves, in the companion."""

Shared = Breaker | Pool


@dataclass(frozen=True)
class Tried:
    """One experiment. ``outcome``: its verdict, or how it ended without one."""

    outcome: str
    treated: int
    harmed: int
    seen: int


def breaker(rng: random.Random) -> Shared:
    """Draw a circuit breaker."""
    return Breaker(rng.randint(3, 6), rng.uniform(3, 12))


def pool(rng: random.Random) -> Shared:
    """Draw a pool of connections."""
    return Pool(rng.randint(3, 6), rng.uniform(3, 12), inside=rng.random() < 0.5)


def using(shared: Shared, point: str) -> Application:
    """Make an application that can do without ``point``."""

    def serve(request: Caller) -> None:
        with suppress(CallFailed):
            shared.call(request, point)

    return serve


def alone(rng: random.Random) -> Application:
    """Make one whose requests share nothing, and fail by themselves now and then."""

    def serve(request: Caller) -> None:
        with suppress(CallFailed):
            request.call(STARS)
        if rng.random() < NATURE:
            raise Unserved("by itself")

    return serve


def own_class(make: Callable[[random.Random], Shared], rng: random.Random) -> dict[str, Any]:
    """Make programs where the class of the experiment feels it."""
    return {"/boot": using(make(rng), STARS)}


def other_class(make: Callable[[random.Random], Shared], rng: random.Random) -> dict[str, Any]:
    """Make programs where another class feels it as well."""
    shared = make(rng)
    return {"/boot": using(shared, STARS), "/list": using(shared, LIST)}


CASES: Final[dict[str, Callable[[random.Random], dict[str, Any]]]] = {
    "breaker, own class": lambda rng: own_class(breaker, rng),
    "breaker, another class": lambda rng: other_class(breaker, rng),
    "pool, own class": lambda rng: own_class(pool, rng),
    "pool, another class": lambda rng: other_class(pool, rng),
    "neither": lambda rng: {"/boot": alone(rng)},
}


def tried(programs: dict[str, Any]) -> Tried:
    """Let a campaign try one experiment."""
    with World.in_memory(programs) as world:
        world.start(SETTINGS, classes=("GET /boot",))
        harmed = 0
        for _ in range(STEPS):
            world.step(REQUESTS // len(programs), SECONDS)
            for experiment in world.rules():
                harmed = len(world.harmed[experiment])
            with world.database.read() as session:
                over = ExperimentRow.state.in_(("decided", "aborted"))
                row = session.scalars(select(ExperimentRow).where(over)).first()
                if row is not None:
                    seen = re.search(r"are hurt: (\d+) of", row.reason)
                    return Tried(
                        row.verdict or row.state,
                        len(world.exposed[row.id]),
                        max(harmed, len(world.harmed[row.id])),
                        int(seen[1]) if seen else 0,
                    )
    return Tried("none", 0, 0, 0)


def drawn(piece: tuple[str, int]) -> Tried:
    """Try one experiment in a case, with limits and times drawn by its seed."""
    name, seed = piece
    return tried(CASES[name](random.Random(f"{name} {seed}")))


def summed(name: str, all_tried: list[Tried]) -> dict[str, Any]:
    """Sum up one case."""
    outcomes = [each.outcome for each in all_tried]
    treated, harmed, seen = (
        sum(getattr(each, what) for each in all_tried) for what in ("treated", "harmed", "seen")
    )
    return {
        "case": name,
        "runs": len(all_tried),
        **{each: outcomes.count(each) for each in ("tolerated", "harmful", "inconclusive")},
        "though hurt": sum(each.outcome == "tolerated" and each.harmed > 0 for each in all_tried),
        "aborted": outcomes.count("aborted") + outcomes.count("none"),
        "treated": treated,
        "harmed": harmed,
        "seen": seen,
        "harmed_per_treated": round(harmed / max(1, treated), 2),
        "seen_per_treated": round(seen / max(1, treated), 2),
    }


def targets(rows: list[dict[str, Any]]) -> dict[str, Target]:
    """Hold the sums against what is wanted."""
    shared = [row for row in rows if row["case"] != "neither"]
    (neither,) = (row for row in rows if row["case"] == "neither")
    treated = max(1, sum(row["treated"] for row in shared))
    return {
        "tolerated where others are hurt": at_most(sum(row["though hurt"] for row in shared), 0),
        "bystanders harmed before the stop, for one treated": at_most(
            round(sum(row["harmed"] for row in shared) / treated, 2), 2
        ),
        "of these, reported before the stop": at_most(
            round(sum(row["seen"] for row in shared) / treated, 2), 2
        ),
        "tolerated with neither breaker nor pool": at_least(
            round(neither["tolerated"] / neither["runs"], 4), 0.95
        ),
    }


def main() -> int:
    """Print the table; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=300, help="experiments with something shared")
    given = parser.parse_args()
    found: dict[str, list[Tried]] = {name: [] for name in CASES}
    pieces = list(_runs(given.runs))
    for (name, _), one in zip(pieces, carried_out(drawn, pieces), strict=True):
        found[name].append(one)
    rows = [summed(name, all_tried) for name, all_tried in found.items()]
    return 0 if say({"cases": rows}, targets(rows), as_json=given.json) else 1


def _runs(runs: int) -> Iterator[tuple[str, int]]:
    """So many over the cases in which something is shared, and a third of it without."""
    shared = [name for name in CASES if name != "neither"]
    for number in range(runs):
        yield shared[number % len(shared)], number
    for number in range(max(1, runs // 3)):
        yield "neither", number


if __name__ == "__main__":
    sys.exit(main())
