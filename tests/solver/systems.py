"""Small monotone systems, simulated exactly, and the brute-force truth about them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st

from ldfi.solver import Explorer

Set = frozenset[str]

many = settings(max_examples=max(100, settings().max_examples))
"""For what everything else rests on: it has more cases than a few systems meet."""


@dataclass(frozen=True)
class System:
    """Succeeds if one of the supports is untouched; a run shows that support and some more."""

    supports: tuple[Set, ...]
    points: tuple[str, ...]
    domains: Mapping[str, Set] = field(default_factory=dict)
    exclusions: tuple[Set, ...] = ()
    protected: Set = frozenset()
    down: Set = frozenset()
    inflation: float = 0.5
    seed: int = 0

    def expand(self, faults: Iterable[str]) -> Set:
        points: set[str] = set(self.down)
        for fault in faults:
            points |= self.domains.get(fault, {fault})
        return frozenset(points)

    def fails(self, faults: Iterable[str]) -> bool:
        touched = self.expand(faults)
        return all(support & touched for support in self.supports)

    def run(self, faults: Iterable[str]) -> Set | None:
        """The support of a good run, None for a bad one. The same faults give the same answer."""
        touched = self.expand(faults)
        rng = random.Random(f"{self.seed} {sorted(touched)}")
        whole = [support for support in self.supports if not support & touched]
        if not whole:
            return None
        extra = {p for p in self.points if p not in touched and rng.random() < self.inflation}
        return rng.choice(whole) | extra

    def admissible(self, faults: Set) -> bool:
        if any(({f} | self.domains.get(f, {f})) & self.protected for f in faults):
            return False
        for exclusion in self.exclusions:
            parts = [frozenset(self.domains.get(f, {f})) for f in faults]
            if exclusion <= frozenset().union(*(p for p in parts if not exclusion <= p)):
                return False
        return not any(self.domains.get(f, {f}) <= self.down for f in faults)

    def minimal_failing_sets(self, max_size: int) -> set[Set]:
        variables = [*self.points, *self.domains]
        found: set[Set] = set()
        for size in range(max_size + 1):
            for each in itertools.combinations(variables, size):
                faults = frozenset(each)
                if any(small <= faults for small in found) or not self.admissible(faults):
                    continue
                if self.fails(faults):
                    found.add(faults)
        return found


def sets_of(points: tuple[str, ...], min_size: int = 1) -> st.SearchStrategy[Set]:
    return st.frozensets(st.sampled_from(points), min_size=min_size, max_size=len(points))


@st.composite
def systems(draw: st.DrawFn, *, rich: bool = False) -> System:
    """``rich``: with domains, exclusions, protected points and points that are down."""
    points = tuple("abcdefg"[: draw(st.integers(2, 7))])
    supports = tuple(draw(st.lists(sets_of(points), min_size=1, max_size=5, unique=True)))
    inflation = draw(st.sampled_from([0.0, 0.3, 1.0]))
    seed = draw(st.integers(0, 5))
    if not rich:
        return System(supports, points, inflation=inflation, seed=seed)
    domains = dict(
        zip(("X", "Y"), draw(st.lists(sets_of(points, 2), max_size=2, unique=True)), strict=False)
    )
    exclusions = draw(st.lists(sets_of(points, 2), max_size=2, unique=True))
    return System(
        supports,
        points,
        domains,
        tuple(exclusions),
        protected=draw(st.frozensets(st.sampled_from(points), max_size=1)),
        down=draw(st.frozensets(st.sampled_from(points), max_size=1)),
        inflation=inflation,
        seed=seed,
    )


def explorer_of(system: System, **options: object) -> Explorer:
    return Explorer(
        domains=system.domains,
        exclusions=system.exclusions,
        protected=system.protected,
        down=system.down,
        **options,  # type: ignore[arg-type]
    )


def explore(explorer: Explorer, system: System, *, blame: str = "none", limit: int = 300) -> int:
    """Drive the explorer to its end; returns the number of experiments."""
    for count in range(limit):
        proposal = explorer.propose()
        if proposal is None:
            return count
        faults = frozenset(str(each) for each in proposal)
        assert system.admissible(faults), f"{faults} may not be proposed"
        support = system.run(faults)
        if support is not None:
            explorer.record(injected=faults, succeeded=True, support=support)
        else:
            explorer.record(injected=faults, succeeded=False, blame=_blame(blame, faults, system))
    raise AssertionError(f"no end after {limit} experiments")


def _blame(kind: str, faults: Set, system: System) -> Set | None:
    if kind == "right":
        for fault in sorted(faults):
            if system.fails(faults - {fault}):
                faults -= {fault}
        return faults
    if kind == "wrong":
        return frozenset(sorted(faults)[:1])
    return None
