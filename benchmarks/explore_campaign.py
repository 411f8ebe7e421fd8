"""One exploration of one App Boot tree, from the failure-free run to the checked certificate; and
many of them, on all cores at once."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from benchmarks.appboot import AppBoot, app_boot
from benchmarks.pieces import carried_out
from ldfi.checker.solving import check
from ldfi.solver import Explorer, Faults

PATIENCE = 1500
"""Experiments after which ``random`` is stopped."""
LARGE = (80, 150)
"""Points of a tree."""


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
    """Of processor time: the certificate, its check, and the simulation are part of it."""


@dataclass(frozen=True)
class Cell:
    """One row of the table, or one point of the curve: explored once for each seed.

    ``cap`` and ``nature`` as of :func:`campaign`; ``size``: how many points a tree has.
    """

    name: str
    strategy: str
    max_size: int
    blame: bool = False
    nature: tuple[int, float] = (0, 0.0)
    size: tuple[int, int] = LARGE
    cap: int | None = None

    def explore(self, seed: int) -> Campaign:
        """Explore the tree of this seed."""
        app = app_boot(seed, size=self.size)
        if self.strategy == "exhaustive":
            return exhaustive(app, self.max_size)
        return campaign(
            app,
            strategy=self.strategy,
            max_size=self.max_size,
            seed=seed,
            blame=self.blame,
            cap=self.cap,
            nature=self.nature,
        )


def explored(cells: Sequence[Cell], seeds: int) -> list[list[Campaign]]:
    """Explore so many trees for each of the cells, on all cores."""
    found = carried_out(_explored, [(c, seed) for c in cells for seed in range(seeds)], "exploring")
    return [list(islice(found, seeds)) for _ in cells]


def _explored(piece: tuple[Cell, int]) -> Campaign:
    cell, seed = piece
    return cell.explore(seed)


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
    """Explore one tree to the end.

    ``cap``: on the size of a union. ``nature``: how many requests are watched beforehand, and how
    often each call fails in them by itself.
    """
    started = time.process_time()
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
        elif blame:
            explorer.suspect(request.blame, request.fired)
    tally = _Tally()
    faults: Faults | None
    while explorer.experiments < PATIENCE:
        if strategy == "random":
            faults = _random_set(app, rng) if explorer.open_count(1) else None
        else:
            faults = explorer.propose()
        if faults is None:
            break
        tally.learn(explorer, frozenset(map(str, faults)), app, blame=blame)
    return _concluded(app, explorer, tally, started)


@dataclass
class _Tally:
    """What the experiments so far have cost, and when they paid."""

    failed: int = 0
    first: int = 0
    last: int = 0
    largest: int = 0
    harmed: int = 0
    found: int = 0

    def learn(
        self, explorer: Explorer, faults: frozenset[str], app: AppBoot, *, blame: bool
    ) -> None:
        """Carry out one experiment and let the explorer learn from it."""
        outcome = app.run(faults)
        self.largest = max(self.largest, len(faults))
        if outcome.succeeded:
            explorer.record(injected=faults, succeeded=True, support=outcome.support)
            return
        self.failed += 1
        self.harmed += len(faults)
        explorer.record(injected=faults, succeeded=False, blame=outcome.blame if blame else None)
        if len(explorer.findings) > self.found:
            self.found = len(explorer.findings)
            self.last = explorer.experiments
            self.first = self.first or self.last


def _concluded(app: AppBoot, explorer: Explorer, tally: _Tally, started: float) -> Campaign:
    certificate = explorer.certificate()
    bound = certificate.data["lower_bound"]
    return Campaign(
        points=len(app.points),
        planted=len(app.minimal_failing_sets),
        experiments=explorer.experiments,
        failed=tally.failed,
        first=tally.first,
        last=tally.last,
        all_found=set(explorer.findings) == app.minimal_failing_sets,
        certified=certificate.complete and check(json.loads(certificate.to_json())) == [],
        bound=bound["total"],
        weak_bound=bound["failing"] + max(len(bound["packing"]) - 1, 0),
        largest=tally.largest,
        harmed=tally.harmed,
        seconds=time.process_time() - started,
    )


def exhaustive(app: AppBoot, max_size: int) -> Campaign:
    """Try every set that contains no known failing one."""
    started = time.process_time()
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
        seconds=time.process_time() - started,
    )


def _random_set(app: AppBoot, rng: random.Random) -> frozenset[str]:
    return frozenset(rng.sample(app.points, rng.randint(1, 8)))
