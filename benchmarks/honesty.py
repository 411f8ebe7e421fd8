"""``python -m benchmarks.honesty [--worlds NAME …] [--campaigns N] [--keep FILE] [--json]``: does
what is announced hold?

Whole campaigns in drawn worlds (``benchmarks.honest_worlds``), through the service's own engine,
scheduler and store with its ticks, leases and delays; the clock alone is simulated.

- Where nothing hurts whatever is confirmed is a **false finding**.
- Where a fault hurts in a way that is easily missed, a campaign that ends *complete* without it has
  a **false certificate**. So that nobody is right by never being complete, the same worlds without
  any harm stand beside them. Where no fault can reach what hurts, both have to name it. Where too
  few devices report a campaign may say so before it treats anybody: it is *refused*, and no other.
- Where a fault hurts openly it has to be **found**, with no more devices than before (``BEFORE``).

Worlds are drawn anew in every run. ``--keep`` adds a line for each campaign to a file and counts
all that were kept there by the same code: what was judged by other code (``digest``) is not added
up. Intervals are exact (Clopper and Pearson, Biometrika 1934), at 95 %. ``--seed`` with one world
runs one campaign again and tells its story.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import secrets
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Final

from benchmarks.honest_traffic import Told, run
from benchmarks.honest_worlds import (
    DECEPTIVE,
    FAULT,
    NAMES,
    OUT_OF_REACH,
    PLAIN,
    TROUBLED,
    drawn,
)
from benchmarks.outcome import Row, Target, at_least, at_most, say
from benchmarks.pieces import carried_out

ENOUGH: Final = 100
"""Campaigns of each world."""
HERE: Final = Path(__file__).resolve().parents[1]
JUDGING: Final = (
    *("experiments/domain/**/*.py", "experiments/scheduler/*.py", "lineage/*.py", "solver/**/*.py"),
    "benchmarks/honest_*.py",
)
"""What decides how a campaign ends."""


BEFORE: Final[Mapping[str, float]] = {
    "always hurts": 227.7,
    "half hurts": 226.0,
    "a pair hurts": 306.9,
    "hurts among outages": 212.9,
    "hurts among lost reports": 287.1,
    "a quarter hurts": 300.0,
    "hurts, counted elsewhere": 150.2,
}
"""Devices treated in a campaign that found what hurts, on average, at commit f032c981. All of 50 in
each world found it; of the last two worlds 23 and 24 of 24."""
MORE: Final = 1.3
"""How many times as many devices a finding may cost as before."""


@dataclass(kw_only=True)
class Ended(Told):
    """What a campaign came to, and by whom: ``digest`` is of the code that judged it."""

    world: str
    seed: int
    commit: str
    digest: str
    cpu: float


def digest() -> str:
    """Return a digest of the code that judges."""
    files = sorted(file for each in JUDGING for file in HERE.glob(each))
    whole = hashlib.sha256()
    for file in files:
        whole.update(file.read_bytes())
    return whole.hexdigest()[:12]


def told(world: str, seed: int) -> tuple[str, Told]:
    """Run the campaign of a seed; returns what was drawn, too."""
    rng = random.Random(f"{world} {seed}")
    scene = drawn(world, rng)
    return scene.story, run(scene, rng)


def ended(piece: tuple[str, int, str, str]) -> Ended:
    """Run one campaign, and measure what it takes of the processor; its story is left out."""
    world, seed, commit, of = piece
    began = time.process_time()
    one = {**vars(told(world, seed)[1]), "story": []}
    cpu = round(time.process_time() - began, 2)
    return Ended(**one, world=world, seed=seed, commit=commit, digest=of, cpu=cpu)


def upper(count: int, total: int, alpha: float = 0.05) -> float:
    """Return the exact upper bound of a share of which ``count`` of ``total`` were seen."""
    low, high = count / total, 1.0
    for _ in range(60 if count < total else 0):
        middle = (low + high) / 2
        below = sum(
            math.exp(
                math.log(math.comb(total, k))
                + k * math.log(middle)
                + (total - k) * math.log1p(-middle)
            )
            for k in range(count + 1)
        )
        low, high = (middle, high) if below > alpha else (low, middle)
    return high


def interval(count: int, total: int) -> tuple[float, float]:
    """Return the exact two-sided interval of such a share."""
    return 1 - upper(total - count, total, 0.025), upper(count, total, 0.025)


def share(count: int, total: int) -> str:
    """Write a count with its interval in percent."""
    if not total:
        return ""
    low, high = interval(count, total)
    return f"{count} [{100 * low:.1f}, {100 * high:.1f}]"


def tables_of(all_ended: Sequence[Ended]) -> dict[str, list[Row]]:
    """Sum up: a row for each world."""
    rows: list[Row] = []
    for world in NAMES:
        of = [each for each in all_ended if each.world == world]
        found, hurts = [each for each in of if each.found], _hurts(world)
        row: Row = {
            "world": world,
            "campaigns": len(of),
            "false findings": share(_false_findings(of), len(of)),
            "false certificates": share(_false_certificates(of), len(of)) if hurts else "",
            "refused": sum(each.refused for each in of),
            "complete": share(sum(e.complete for e in of), sum(not e.refused for e in of)),
            "found": share(len(found), len(of)) if hurts else "",
            "devices": mean(each.devices for each in found or of) if of else None,
            "seconds of cpu": mean(each.cpu for each in of) if of else None,
        }
        rows += [row] if of else []
    return {"honesty": rows}


def _hurts(world: str) -> bool:
    return world in DECEPTIVE or world in PLAIN


def _false_findings(of: Iterable[Ended]) -> int:
    return sum(bool(each.false) for each in of)


def _false_certificates(of: Iterable[Ended]) -> int:
    return sum(_hurts(each.world) and each.complete and not each.found for each in of)


def targets_of(all_ended: Sequence[Ended]) -> dict[str, Target]:
    """Hold what was seen against what is promised."""
    of = {world: [each for each in all_ended if each.world == world] for world in NAMES}
    of = {world: each for world, each in of.items() if each}
    targets: dict[str, Target] = {
        "campaigns, of the world with the fewest": at_least(min(map(len, of.values())), ENOUGH),
        "false findings: all": at_most(_false_findings(all_ended) / len(all_ended), 0.005),
    }
    for world, those in of.items():
        targets[f"false findings: {world}"] = at_most(_false_findings(those) / len(those), 0.0)
        tried = [each for each in those if not each.refused]
        complete = sum(each.complete for each in tried) / len(tried) if tried else 1.0
        if _hurts(world):
            false = _false_certificates(those) / len(those)
            targets[f"false certificates: {world}"] = at_most(false, 0.01)
        elif world not in TROUBLED and world not in OUT_OF_REACH:
            targets[f"complete: {world}"] = at_least(complete, 0.8)
        if world in OUT_OF_REACH:
            named = sum(each.left == [FAULT] for each in those) / len(those)
            targets[f"only the fault is left out, by name: {world}"] = at_least(named, 0.8)
        found = [each.devices for each in those if each.found]
        if world in PLAIN:
            targets[f"found: {world}"] = at_least(len(found) / len(those), 0.95)
        if world in BEFORE and found:
            times = mean(found) / BEFORE[world]
            targets[f"devices, times as many as before: {world}"] = at_most(times, MORE)
    return targets


def measure(worlds: Sequence[str], campaigns: int, kept: Path | None) -> list[Ended]:
    """Run so many campaigns in each world, add them to what was kept, and return all of it."""
    head = ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=False).stdout.strip()
    now = digest()
    pieces = [
        (world, secrets.randbits(32), commit, now) for _ in range(campaigns) for world in worlds
    ]
    known = read(kept, now) if kept and kept.exists() else []
    for each in carried_out(ended, pieces, "campaigns") if pieces else ():
        known.append(each)
        if kept:
            with kept.open("a") as file:
                file.write(json.dumps(vars(each)) + "\n")
    return known


def read(kept: Path, of: str) -> list[Ended]:
    """Read what was kept of the same code."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in kept.read_text().splitlines()]
    return [Ended(**each) for each in lines if each["digest"] == of]


def main() -> int:
    """Print the tables, or the story of one campaign; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worlds", nargs="+", choices=NAMES, default=list(NAMES), metavar="NAME")
    parser.add_argument("--campaigns", type=int, default=4, help="in each world, in this run")
    parser.add_argument("--keep", type=Path, help="a file of campaigns to add to, and to sum up")
    parser.add_argument("--seed", type=int, help="run one campaign again, and tell its story")
    given = parser.parse_args()
    if given.seed is not None:
        for world in given.worlds:
            drawn_, one = told(world, given.seed)
            found = f"found: {one.found}, false: {one.false}, complete: {one.complete}"
            print(f"{world}: {drawn_}", *one.story, found, sep="\n")
        return 0
    all_ended = measure(given.worlds, given.campaigns, given.keep)
    all_ended = [each for each in all_ended if each.world in given.worlds]
    return 0 if say(tables_of(all_ended), targets_of(all_ended), as_json=given.json) else 1


if __name__ == "__main__":
    sys.exit(main())
