"""``python -m benchmarks.honesty [--runs N] [--json]``: how often verdicts are wrong.

Experiments of the service's own code, fed as it is fed: requests begin at random, failures are
known at once and successes up to five seconds later (a fallback takes its time), reports get lost,
trouble begins in mid-window in both arms. Devices are admitted in stages; an experiment is
disarmed, its edges stop a second later, and it settles.

- ``no effect``: how often that is called harmful (by what one experiment must prove alone, at
  α = 0.001), how often it becomes a finding (two slots), how often it is tolerated.
- ``effect``: control fails at 2 %, treated at 95 %: how often both slots say so, at the first level
  of e-LOND and at the thousandth.
- ``lost because of it``: half of the treated crash and never report. That must never be tolerated.

The bounds are exact (Clopper and Pearson, Biometrika 1934), at 95 %.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from statistics import mean

from rich.console import Console
from rich.progress import track

from benchmarks.outcome import Row, Target, at_least, at_most, say
from ldfi.experiments.domain.judging.experiment import Experiment, Purpose
from ldfi.experiments.domain.judging.online_fdr import OnlineFdr
from ldfi.experiments.domain.judging.slots import Opening
from ldfi.experiments.domain.judging.verdict import Verdict
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.fit.context import Arm
from ldfi.fit.faults import Fault
from ldfi.fit.predicate import Condition, Predicate
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.span import Trace
from ldfi.testing.spans import span

RATES = (0.01, 0.05, 0.1, 0.2)
ALPHA = 1e-3
STEP = 0.25
"""Seconds between two looks; the service's are closer together."""
EDGE = 1.0
"""Seconds until an edge follows."""
SLOWEST = 5.0
SETTINGS = Settings(
    treatment=0.01, control=0.1, window=120.0, settle=8.0, members=200, confirm=False
)
PER_SECOND = 30.0
"""Requests under the experiment, in both arms."""
THOUSANDTH = 1_000

Weather = Callable[[random.Random, Arm, float], tuple[bool, bool]]
"""Whether a request that begins then (seconds) fails, and whether its report is lost."""


@dataclass(frozen=True)
class Ended:
    """How an experiment ended, what it proved, and how many of its members were hurt."""

    verdict: Verdict | None
    evidence: float
    treated: int


def calm(rate: float, control: float | None = None, lost: float = 0.0) -> Weather:
    """Failures and losses come one by one."""

    def weather(rng: random.Random, arm: Arm, _: float) -> tuple[bool, bool]:
        fails = rate if arm == "treatment" or control is None else control
        return rng.random() < fails, rng.random() < lost

    return weather


def incident(rate: float, begins: float = 10.0, lasts: float = 15.0) -> Weather:
    """For a while a quarter more fail, in both arms."""

    def weather(rng: random.Random, _: Arm, at: float) -> tuple[bool, bool]:
        return rng.random() < rate + 0.25 * (begins <= at < begins + lasts), False

    return weather


def crashing(share: float) -> Weather:
    """So many of the treated crash and are never heard of again."""

    def weather(rng: random.Random, arm: Arm, _: float) -> tuple[bool, bool]:
        crashed = arm == "treatment" and rng.random() < share
        return crashed or rng.random() < 0.01, crashed

    return weather


def run(
    weather: Weather,
    rng: random.Random,
    settings: Settings,
    level: float = 1.0,
    purpose: Purpose = "explore",
    opening: Opening | None = None,
) -> Ended:
    """Run one experiment to its end."""
    fault = Fault("a", "error")
    experiment = Experiment(
        *("e", "GET /", Predicate.of([Condition("path", "/")]), frozenset({str(fault)}), (fault,)),
        settings,
        purpose,
        opening=opening,
    )
    experiment.arm(0.0, level)
    experiment.taken()
    treated = settings.treatment / (settings.treatment + settings.control)
    reports: list[tuple[float, int, Observation]] = []
    now, begins, number = 0.0, rng.expovariate(PER_SECOND), 0
    allowed, used, enrolled, stops = experiment.admission(0.0), 0, 0, math.inf
    while True:
        now += STEP
        while begins < now:
            if begins < stops and used < allowed:
                number += 1
                arm: Arm = "treatment" if rng.random() < treated else "control"
                used, enrolled = used + (arm == "treatment"), enrolled + (arm == "control")
                failed, lost = weather(rng, arm, begins)
                if not lost:
                    late = 0.1 if failed else rng.uniform(0.0, SLOWEST)
                    seen = _observation(arm, number, begins, failed=failed)
                    heapq.heappush(reports, (begins + late, number, seen))
            begins += rng.expovariate(PER_SECOND)
        while reports and reports[0][0] <= now:
            experiment.observe(heapq.heappop(reports)[2])
        experiment.used, experiment.controls = used, enrolled
        experiment.enrolled = enrolled if now >= stops else None
        if experiment.review(now):
            stops = now + EDGE
        elif experiment.state == "observing":
            allowed = experiment.admission(now)
        if experiment.settle(now, disarmed=now >= stops):
            return Ended(experiment.verdict, experiment.tests.log_worse, used)


def finding(weather: Weather, rng: random.Random, level: float) -> bool:
    """Whether two slots make a finding."""
    settings = replace(SETTINGS, confirm=True)
    one = run(weather, rng, settings, level)
    if one.verdict != "harmful":
        return False
    opening = Opening(one.evidence, min(level, settings.alpha_harmful))
    return run(weather, rng, settings, 1.0, "confirm", opening).verdict == "harmful"


@cache
def _lineage(arm: Arm) -> Lineage:
    fired = arm == "treatment"
    call = span("a", "root", fired="error") if fired else span("a", "root", would_fire="error")
    spans = [span("root", kind="server"), call]
    learned = learn(Trace.of("0" * 32, spans))
    if learned is None:
        raise AssertionError("these spans have a root")
    return replace(learned, experiment="e", arm=arm)


def _observation(arm: Arm, number: int, begins: float, *, failed: bool) -> Observation:
    trace_id = f"{number:032x}"
    lineage = replace(_lineage(arm), trace_id=trace_id, start=int(begins * 1e9))
    return Observation(lineage, Outcome(trace_id, f"d{number}", "", not failed))


def upper(count: int, total: int) -> float:
    """Give the exact upper bound of a share of which ``count`` of ``total`` were seen."""
    low, high = count / total, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        below = sum(
            math.comb(total, k) * middle**k * (1 - middle) ** (total - k) for k in range(count + 1)
        )
        low, high = (middle, high) if below > 0.05 else (low, middle)
    return high


def no_effect(name: str, weather: Weather, runs: int, rng: random.Random) -> Row:
    """Count the verdicts where nothing differs between the arms."""
    ended = [run(weather, rng, SETTINGS) for _ in range(runs)]
    harmful = sum(each.verdict == "harmful" for each in ended)
    return {
        "weather": name,
        "harmful": harmful / runs,
        "at most": upper(harmful, runs),
        "findings": sum(finding(weather, rng, ALPHA) for _ in range(runs)),
        "tolerated": sum(each.verdict == "tolerated" for each in ended) / runs,
        "treated": mean(each.treated for each in ended),
    }


def effect(name: str, level: float, runs: int, rng: random.Random) -> Row:
    """Count the findings where nearly all of the treated fail."""
    found = sum(finding(calm(0.95, 0.02), rng, level) for _ in range(runs))
    return {"level": name, "found": found / runs, "missed": upper(runs - found, runs)}


def crashed(share: float, runs: int, rng: random.Random) -> Row:
    """Count what becomes of experiments whose treated devices are never heard of."""
    ended = [run(crashing(share), rng, SETTINGS) for _ in range(runs)]
    tolerated = sum(each.verdict == "tolerated" for each in ended)
    return {"crashed": share, "tolerated": tolerated, "inconclusive": runs - tolerated}


def main() -> int:
    """Print the tables; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=500, help="experiments for each row")
    given = parser.parse_args()
    tables: dict[str, list[Row]] = {"no effect": [], "effect": [], "lost because of it": []}
    steps = list(_steps(given.runs, random.Random(1)))
    for name, step in track(steps, "simulating", console=Console(stderr=True), transient=True):
        tables[name].append(step())
    return 0 if say(tables, _targets(tables), as_json=given.json) else 1


def _steps(runs: int, rng: random.Random) -> Iterator[tuple[str, Callable[[], Row]]]:
    for rate in RATES:
        kinds = {
            "calm": calm(rate),
            "a fifth lost": calm(rate, lost=0.2),
            "incident": incident(rate),
        }
        for name, weather in kinds.items():
            title = f"{rate:.0%} fail, {name}"
            yield "no effect", lambda t=title, w=weather: no_effect(t, w, runs, rng)  # type: ignore[misc]
    stream = OnlineFdr()
    levels = [stream.next_level() for _ in range(THOUSANDTH)]
    yield "effect", lambda: effect("first", levels[0], runs, rng)
    yield "effect", lambda: effect("thousandth", levels[-1], runs, rng)
    for share in (0.5, 0.95):
        yield "lost because of it", lambda s=share: crashed(s, runs, rng)  # type: ignore[misc]


def _targets(tables: dict[str, list[Row]]) -> dict[str, Target]:
    targets: dict[str, Target] = {}
    for row in tables["no effect"]:
        targets[f"harmful: {row['weather']}"] = at_most(float(str(row["harmful"])), ALPHA)
        targets[f"findings: {row['weather']}"] = at_most(float(str(row["findings"])), 0)
        if "calm" in str(row["weather"]) or "lost" in str(row["weather"]):
            targets[f"tolerated: {row['weather']}"] = at_least(float(str(row["tolerated"])), 0.95)
    for row in tables["effect"]:
        targets[f"found: {row['level']} level"] = at_least(float(str(row["found"])), 0.999)
    for row in tables["lost because of it"]:
        targets[f"tolerated where {row['crashed']} crash"] = at_most(
            float(str(row["tolerated"])), 0
        )
    return targets


if __name__ == "__main__":
    sys.exit(main())
