"""Request classes of applications that nobody tuned anything to: are they the kinds there are?

    python -m benchmarks.classes --json

Fifty kinds of request (:mod:`benchmarks.generated_application`), a hundred thousand requests. What
is learned from their spans is held against further requests, as the edge sees them: whether the
classes are the kinds, whom a class would merge, what it would be called, which share of the
requests that a rule claims reaches the points it is about, and what deciding costs.

In one request of fifty some call fails and something else stands in for it, and the session is
answered from a cache now and then, so that nothing is quite as regular as it was planted. A second
part has traces whose names say nothing: six ways to go under one root operation. A third runs
campaigns over learned classes (``--only hits``, :mod:`benchmarks.reached`).
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.arriving import at_the_edge, entry, scope_of
from benchmarks.generated_application import KINDS, Application, Asked, Kind
from benchmarks.outcome import Row, Target, at_least, at_most, say
from benchmarks.reached import campaign
from ldfi.experiments.domain.traffic.catalogue import Catalogue
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.fit import asgi
from ldfi.fit.protocol.predicate import Predicate
from ldfi.lineage.classes import discover
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.operation import operation
from ldfi.lineage.shapes import Shapes
from ldfi.lineage.span import Span, Trace

CHOSEN = "header.x-device-type,header.x-plan,baggage.plan"
WATCHED = 20_000
"""Requests that are watched before a campaign, at most."""
EXACT = 0.99
"""Share of a kind's requests that its class must have, and of the class's that must be its."""


@dataclass(frozen=True)
class Found:
    """What was learned of one application, and what it was learned from."""

    application: Application
    catalogue: Catalogue
    names: frozenset[str]
    """Every name that a class ever had."""
    rules: Mapping[str, Predicate]
    """Each class as an edge would receive it."""


def run_of(kind: Kind, asked: Asked, rng: random.Random) -> Lineage:
    """Make the lineage of a request, by way of the spans that its services would export."""
    points = [
        p for p in sorted(kind.points) if not (p.endswith("/session") and rng.random() < 0.03)
    ]
    lost = rng.choice(points) if rng.random() < 0.02 else ""
    spans = [Span("0" * 32, "root", None, 0, 1000, entry(asked))]
    for at, point in enumerate(points):
        status = 2 if point == lost else 1
        what = operation("edge", "call", "client", status, False, (("point", point),))
        spans.append(Span("0" * 32, f"c{at}", "root", at + 1, at + 2, what))
    run = learn(Trace.of("0" * 32, spans))
    assert run is not None
    return run


def learned(application: Application, count: int, seed: int) -> Found:
    """Learn the classes of so many requests."""
    catalogue, rng, names = Catalogue(), random.Random(seed), set[str]()
    for serial, (kind, asked) in enumerate(application.requests(count, seed)):
        run = replace(run_of(kind, asked, rng), trace_id=f"{serial:032x}")
        outcome = Outcome(run.trace_id, f"d{serial}", "", not run.root_error)
        catalogue.observe(Observation(run, outcome), serial / 50)
        if catalogue.unsettled:
            names |= {change.known.name for change in catalogue.changes()}
    rules = {name: known.rule for name, known in catalogue.classes.items()}
    return Found(application, catalogue, frozenset(names), rules)


def judged(found: Found, count: int, seed: int) -> Row:
    """Hold what was learned against further requests, as the edge sees them."""
    rng = random.Random(seed)
    of_kind: dict[str, Counter[str]] = defaultdict(Counter)
    of_class: dict[str, Counter[str]] = defaultdict(Counter)
    points = {kind.name: kind.points for kind in found.application.kinds}
    hits: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    expected = {
        name: known.traffic.usual_support() for name, known in found.catalogue.classes.items()
    }
    edge_differs = 0
    for kind, asked in found.application.requests(count, seed):
        run, seen = run_of(kind, asked, rng), at_the_edge(asked)
        known = found.catalogue.class_of(run.features, run.service)
        name = known.name if known else ""
        of_kind[kind.name][name] += 1
        of_class[name][kind.name] += 1
        claimed = [each for each, rule in found.rules.items() if rule.holds(seen)]
        edge_differs += claimed != ([name] if name else [])
        for each in claimed:
            hits[each][0] += len(expected[each] & kind.points)
            hits[each][1] += len(expected[each])
    same = [kind for kind in of_kind if _is_one(of_kind[kind], of_class)]
    merged = [name for name in of_class if name and _merges(of_class[name], points)]
    reached = {name: hit / total for name, (hit, total) in hits.items() if total}
    personal = {w for w in found.application.words.personal if len(w) > 1}
    return {
        "kinds": len(of_kind),
        "classes": len(found.catalogue.classes),
        "equal": round(len(same) / KINDS, 3),
        "merged": len(merged),
        "named after somebody": sum(_tells(name, personal) for name in found.names),
        "edge and spans differ": round(edge_differs / count, 4),
        "classes reached < 95 %": sum(share < 0.95 for share in reached.values()),
        "least hit rate": round(min(reached.values(), default=0.0), 3),
        "without": ", ".join(sorted(set(of_kind) - set(same))[:6]),
    }


def _is_one(classes: Counter[str], of_class: Mapping[str, Counter[str]]) -> bool:
    (name, most), *_ = classes.most_common(1)
    kinds = of_class[name]
    return bool(name) and most >= EXACT * classes.total() and most >= EXACT * kinds.total()


def _merges(kinds: Counter[str], points: Mapping[str, frozenset[str]]) -> bool:
    large = {points[kind] for kind, n in kinds.items() if n > (1 - EXACT) * kinds.total()}
    return len(large) > 1


def _tells(name: str, personal: Iterable[str]) -> bool:
    words = set(name.replace("/", " ").replace(".", " ").replace(",", " ").split())
    words |= set(name.replace("/", " ").split())
    return bool(words & set(personal))


def deciding(found: Found, count: int, rules: int) -> float:
    """Measure microseconds for reading the features of a request and asking so many rules."""
    requests = found.application.requests(count, seed=77)
    asked = [(scope_of(each), each.body or None) for _, each in requests]
    armed = list(found.rules.values())[:rules]
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        for scope, body in asked:
            seen = asgi._features(scope, body=body)
            for rule in armed:
                rule.holds(seen)
        best = min(best, time.process_time() - begin)
    return best / count * 1e6


def silent(seed: int, ways: int = 6, count: int = 3_000) -> Row:
    """Plant some ways to go under one root operation, and count the varieties that are found."""
    rng = random.Random(seed)
    planted = [frozenset(f"edge>call:{rng.random():.6f}" for _ in range(4)) for _ in range(ways)]
    shapes = Shapes(spans=False)
    for _ in range(count):
        kind = Kind(
            "", rng.choice(planted) | {"edge>http:GET:auth/session"}, lambda _: Asked("", "")
        )
        shapes.add(run_of(kind, Asked("GET", "/do"), rng))
    (only,) = discover(shapes)
    found = {
        frozenset(each.support) - {"edge>http:GET:auth/session"}
        for each in getattr(only, "varieties", ())
    }
    return {"planted": ways, "found": len(found), "equal": found == set(planted)}


def main() -> int:
    """Print the tables; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description="the classes of generated applications")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", choices=("classes", "hits"), help="one part of it")
    parser.add_argument("--seconds", type=int, default=1_200, help="of a campaign, simulated")
    given = parser.parse_args()
    os.environ["FIT_FEATURES"] = CHOSEN
    tables: dict[str, list[Row]] = {}
    held: dict[str, Target] = {}
    if given.only != "hits":
        held |= _learning(given, tables)
    if given.only != "classes":
        watched = min(given.requests, WATCHED)
        found: list[Row] = [{"seed": n, **campaign(n, watched, given.seconds)} for n in given.seeds]
        tables["campaigns"] = found
        held |= reach(found)
    return 0 if say(tables, held, as_json=given.json) else 1


def _learning(given: argparse.Namespace, tables: dict[str, list[Row]]) -> dict[str, Target]:
    rows, costs = list[Row](), list[float]()
    for seed in given.seeds:
        found = learned(Application.of(seed), given.requests, seed + 1_000)
        rows.append({"seed": seed, **judged(found, given.requests // 5, seed + 2_000)})
        costs.append(deciding(found, 2_000, rules=10))
    varieties = [silent(seed) for seed in given.seeds]
    tables |= {"applications": rows, "varieties": varieties}
    return targets(rows, varieties, max(costs))


def reach(rows: Sequence[Row]) -> dict[str, Target]:
    """Hold what campaigns reached against what is promised."""
    return {
        "treated requests that reach the points meant": at_least(
            min(float(str(row["reached"])) for row in rows), 0.95
        ),
        "classes where fewer than 95 % do, beyond chance": at_most(
            max(int(str(row["of them beyond chance"])) for row in rows), 0
        ),
        "classes in which a campaign treated somebody, the fewest": at_least(
            min(int(str(row["tried"])) for row in rows), 0.95 * KINDS
        ),
    }


def targets(rows: Sequence[Row], varieties: Sequence[Row], cost: float) -> dict[str, Target]:
    """Hold the worst of the applications against what is promised."""

    def worst(name: str, pick: Any = max) -> float:
        return float(pick(float(str(row[name])) for row in rows))

    return {
        "share of kinds that are a class": at_least(worst("equal", min), 0.95),
        "classes that merge kinds": at_most(worst("merged"), 0),
        "classes for each kind": at_most(worst("classes") / KINDS, 1.2),
        "names that tell of somebody": at_most(worst("named after somebody"), 0),
        "classes whose points < 95 % of claimed requests reach": at_most(
            worst("classes reached < 95 %"), 0
        ),
        "µs of a request at the edge, ten rules": at_most(round(cost, 2), 15.0),
        "worlds without names whose varieties are as planted": at_least(
            sum(bool(row["equal"]) for row in varieties) / len(varieties), 1.0
        ),
    }


if __name__ == "__main__":
    sys.exit(main())
