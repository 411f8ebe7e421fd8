"""Campaigns on classes whose requests vary: caches, tokens and batches, of which some are weak.

    python -m benchmarks.varying --json

Applications drawn at random. Each request asks one to three caches, which hit in 5 to 95 % of
requests; who misses asks the store behind and fills the cache. One request in eight has to fetch a
token, some bring a batch along; besides there are calls that every request makes. Each of these
calls may be needed, optional, or have another one to stand in for it. A campaign runs over the
class through the domain's own objects, and what it has confirmed is held against brute force over
the ways in which requests go: a set of faults hurts where a request fails with it, and with no
smaller one.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from benchmarks.outcome import Row, Target, at_least, at_most, say
from ldfi.experiments.domain.campaign.campaign import Campaign, Definition
from ldfi.experiments.domain.judging.experiment import Experiment
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.catalogue import Catalogue
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.native import gone
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.operation import operation
from ldfi.lineage.span import Span, Trace

APPLICATIONS = 60
WATCHED = 600
"""Requests that are seen before the campaign."""
PER_SECOND = 5.0
"""Treated requests that come in a second, and as many in control."""
SETTINGS = Settings(
    kinds=("error",),
    window=20.0,
    settle=1.0,
    follow=0.0,
    apart=0.0,
    verify=False,
    rechecks=0,
    members=10_000,
    max_size=2,
)

Faults = frozenset[str]


@dataclass(frozen=True)
class Asked:
    """A call that a share of the requests makes: what becomes of the request where it fails, and
    the cache whose miss makes it."""

    point: str
    share: float
    mode: str
    """``needed``, ``optional``, or ``spare``: another call stands in."""
    behind: str = ""


@dataclass(frozen=True)
class Application:
    """What its requests call, in order."""

    calls: tuple[Asked, ...]

    @classmethod
    def drawn(cls, rng: random.Random) -> Application:
        """Draw one."""
        calls: list[Asked] = []
        for number in range(rng.randint(1, 3)):
            hits = rng.choice((0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95))
            cache = f"web>db:GET:cache{number}"
            calls.append(Asked(cache, 1.0, "cache"))
            mode = rng.choice(("needed", "needed", "spare", "optional"))
            calls.append(Asked(f"web>db:SELECT:store{number}", 1 - hits, mode, cache))
            calls.append(Asked(f"web>db:SET:cache{number}", 1 - hits, "optional", cache))
        for name, share in (("token", 0.125), ("batch", rng.choice((0.1, 0.3, 0.5)))):
            if rng.random() < 0.5:
                calls.append(Asked(f"web>http:POST:{name}/", share, rng.choice(_MODES)))
        parts = (f"web>http:GET:part{number}/" for number in range(rng.randint(0, 3)))
        calls += [Asked(part, 1.0, rng.choice(_MODES)) for part in parts]
        return cls(tuple(calls))

    def ways(self) -> Iterator[frozenset[str]]:
        """List the ways in which requests go: what each would call by chance."""
        chance = [each.point for each in self.calls if each.share < 1 and "SET" not in each.point]
        for size in range(len(chance) + 1):
            yield from map(frozenset, itertools.combinations(chance, size))

    def way(self, rng: random.Random) -> frozenset[str]:
        """Draw one."""
        return frozenset(each.point for each in self.calls if rng.random() < each.share)

    def serve(
        self, way: frozenset[str], faults: Faults, would: bool = False
    ) -> tuple[list[Span], bool]:
        """Serve a request under faults (or in control of them)."""
        served = _Served(faults, would)
        missed: set[str] = set()
        for each in self.calls:
            filled = each.point.replace("SET", "SELECT").replace("cache", "store")
            due = filled in way if ":SET:" in each.point else each.point in way
            if each.mode == "cache":
                if not served.call(each.point):
                    missed.add(each.point)
            elif each.share == 1 or due or each.behind in missed:
                fine = served.call(each.point)
                if not fine and each.mode == "spare":
                    fine = served.call(_spare(each.point))
                if not fine and each.mode != "optional":
                    return served.spans, False
        return served.spans, True

    def weaknesses(self) -> set[Faults]:
        """Find every minimal set of at most two faults with which some request fails, by trying."""
        points = {p for way in self.ways() for s in self.serve(way, frozenset())[0] for p in _of(s)}
        points |= {_spare(each.point) for each in self.calls if each.mode == "spare"}
        found: set[Faults] = set()
        for size in (1, 2):
            for chosen in map(frozenset, itertools.combinations(sorted(points), size)):
                if any(known <= chosen for known in found):
                    continue
                if any(not self.serve(way, chosen)[1] for way in self.ways()):
                    found.add(chosen)
        return found


_MODES = ("needed", "optional", "optional", "spare")


@dataclass
class _Served:
    faults: Faults
    would: bool
    spans: list[Span] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.spans = []

    def call(self, point: str) -> bool:
        """Make a call; whether it went well."""
        hit = point in self.faults
        said = (("would_fire" if self.would else "fired", gone(point)),) if hit else ()
        fails, at = hit and not self.would, len(self.spans)
        what = operation(
            "web", "call", "client", 2 if fails else 1, False, (("point", point), *said)
        )
        self.spans.append(Span("0" * 32, f"c{at}", "root", 2 * at + 1, 2 * at + 2, what))
        return not fails


def _spare(point: str) -> str:
    """Name what stands in: another system's."""
    return f"web>http:GET:spare-{point.rpartition(':')[2].strip('/')}/"


def _of(span: Span) -> list[str]:
    return [span.operation.point] if span.operation.point else []


@dataclass
class Site:
    """An application, and everybody who asks it."""

    application: Application
    rng: random.Random
    serial: int = 0

    def request(self, experiment: Experiment | None = None, arm: Arm = "treatment") -> Observation:
        """One request of a device of its own."""
        self.serial += 1
        faults = frozenset(f.point for f in experiment.faults) if experiment else frozenset[str]()
        calls, good = self.application.serve(
            self.application.way(self.rng), faults, would=arm == "control"
        )
        run = replace(_learned(calls, good), trace_id=f"{self.serial:032x}")
        if experiment is not None:
            run = replace(run, experiment=experiment.id, arm=arm)
        return Observation(run, Outcome(run.trace_id, f"d{self.serial}", "", good))


def _learned(calls: list[Span], good: bool) -> Lineage:
    fields = (("method", "GET"), ("path", "/"))
    what = operation("web", "GET /", "server", 1 if good else 2, False, fields)
    run = learn(Trace.of("0" * 32, [Span("0" * 32, "root", None, 0, 10_000, what), *calls]))
    assert run is not None
    return run


def explored(site: Site) -> tuple[set[Faults], int, str]:
    """Run a campaign to its end: what it confirmed, its experiments, and why there was none."""
    catalogue = Catalogue(sample=500)
    for number in range(WATCHED):
        catalogue.observe(site.request(), number / 10)
    (known,) = catalogue.classes.values()
    ids = itertools.count(1)
    campaign = Campaign("c", Definition(SETTINGS), lambda: f"e{next(ids)}")
    classes = dict(catalogue.classes)
    for step in range(600):
        now = 1_000.0 * (step + 1)
        campaign.enroll(classes, lambda _: ())
        for experiment in campaign.propose(classes, lambda _n, _e: None, 1, now):
            _carried_out(site, campaign, experiment, now)
            campaign.close(experiment)
        if known.name in campaign.explorations and campaign.complete(classes):
            break
    exploration = campaign.explorations.get(known.name)
    knowledge = exploration.knowledge if exploration else None
    found = {
        frozenset(fault.point for fault in knowledge.expand(faults))
        for faults, state in (exploration.states.items() if exploration else ())
        if knowledge is not None and state == "open"
    }
    return found, next(ids) - 1, known.unfit_for() or ""


def _carried_out(site: Site, campaign: Campaign, experiment: Experiment, now: float) -> None:
    experiment.arm(now, campaign.fdr.next_level(SETTINGS.fdr))
    experiment.taken()
    settings, at = experiment.settings, now
    while at < now + settings.window:
        at += 1 / PER_SECOND
        for arm in ("control", "treatment"):
            campaign.observe(site.request(experiment, arm))
        if experiment.review(at):
            break
    else:
        experiment.review(now + settings.window)
    quiet = now + settings.window + 60
    experiment.settle(quiet, disarmed=True)
    experiment.settle(quiet + settings.settle, disarmed=True)


def measure(seed: int) -> list[Row]:
    """Explore all applications."""
    rows: list[Row] = []
    for number in range(APPLICATIONS):
        rng = random.Random(f"{seed} {number}")
        application = Application.drawn(rng)
        found, experiments, unfit = explored(Site(application, rng))
        planted = application.weaknesses()
        rows.append(
            {
                "application": number,
                "planted": len(planted),
                "found": len(found & planted),
                "false": len(found - planted),
                "experiments": experiments,
                "unfit": unfit,
            }
        )
    return rows


def targets(rows: list[Row]) -> dict[str, Target]:
    """Hold all of them together against what is promised."""

    def total(name: str) -> int:
        return sum(int(str(row[name])) for row in rows)

    return {
        "planted weaknesses found": at_least(round(total("found") / total("planted"), 3), 0.9),
        "false findings": at_most(total("false"), 0),
        "applications unfit for exploration": at_most(sum(bool(r["unfit"]) for r in rows), 0),
    }


def main() -> int:
    """Print the table; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description="campaigns on classes whose requests vary")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rows = measure(given.seed)
    return 0 if say({"applications": rows}, targets(rows), as_json=given.json) else 1


if __name__ == "__main__":
    sys.exit(main())
