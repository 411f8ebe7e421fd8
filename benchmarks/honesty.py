"""``python -m benchmarks.honesty [--full] [--keep FOLDER] [--json]``: how often verdicts are wrong.

Experiments of the service's own code, fed as it is fed: requests begin at random, failures are
known at once and successes up to five seconds later, devices come again and are admitted in stages;
an experiment is disarmed, its edges stop a second later, and it settles. The weather
(``benchmarks.weather``): calm; slow successes in the treated arm alone, as with a fallback; a fifth
of the reports lost; failures that come together by device or by network; an incident in mid-window,
in both arms; outcomes counted elsewhere.

- ``no effect``: 1, 5, 10, 20 % fail in both arms. How often that is called harmful (by what one
  experiment must prove alone, at α = 0.001), how often it becomes a finding (two slots), how often
  it is tolerated.
- ``enough traffic``: the same at 10 and 20 %, with more devices and a longer window: what is
  tolerated there. Where one in five fails by itself two hundred treated devices do not suffice.
- ``effect``: control fails at 2 %, treated at 95 %: how often that becomes a finding, at the first
  level of e-LOND and at the thousandth.
- ``lost because of it``: some of the treated crash and never report, or more of their reports are
  lost. That must never be tolerated, and the reason must say so.
- ``through the service``: the same through edges, assembler, join, scheduler, rules board and store
  (``benchmarks.honest_worlds``), where that starts experiments at all: it does not where one in ten
  fails already. What hurts once is confirmed there. ``interference``: others failed more than
  before, which the arms do not tell; that is inconclusive, and no finding. ``agrees``: whether the
  shares of the other verdicts are those of the simulation (Fisher's exact test, at 0.001).

The bounds are exact (Clopper and Pearson, Biometrika 1934), at 95 %, one-sided. Every piece has a
seed of its own, so the figures do not depend on how many processes there are.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Final, Literal

from benchmarks import honest_worlds
from benchmarks.honest_experiments import MANY, PATIENT, Ended, finding, run
from benchmarks.outcome import Row, Target, at_least, at_most, say
from benchmarks.pieces import carried_out
from benchmarks.weather import Sky
from ldfi.experiments.domain.judging.comparison import differ
from ldfi.experiments.domain.judging.online_fdr import OnlineFdr

RATES: Final = (0.01, 0.05, 0.1, 0.2)
STEADY_RATES: Final = (0.01, 0.05)
"""Those at which the service starts experiments."""
ALPHA: Final = 1e-3
BOUND: Final = 3e-3
"""What the exact upper bound of a share of α at most shall not exceed."""
THOUSANDTH: Final = 1_000
CHUNK: Final = 50
"""Experiments in one piece of work."""
FULL: Final = 4.0
RUNS, FINDINGS, EFFECTS, CRASHES, WORLDS, ENOUGH = 520, 320, 2_000, 600, 300, 300
"""Experiments in a cell of each kind, in the plain run: 10,000 that may become findings."""

Kind = Literal[
    "no effect",
    "enough traffic",
    "finding",
    "effect",
    "lost",
    "service",
    "service effect",
    "service lost",
]

SKIES: Final[Mapping[str, Callable[[float], Sky]]] = {
    "calm": Sky,
    "treated slow": lambda rate: Sky(rate, slow="treatment"),
    "a fifth lost": lambda rate: Sky(rate, lost=0.2),
    "by device": lambda rate: Sky(rate, by="device"),
    "by network": lambda rate: Sky(rate, by="network"),
    "incident": lambda rate: Sky(rate, incident=True),
    "counted elsewhere": lambda rate: Sky(rate, counted=True),
    "counted elsewhere, by device": lambda rate: Sky(rate, by="device", counted=True),
}
SUFFICES: Final = ("calm", "treated slow", "a fifth lost", "by device", "counted elsewhere")
"""Where traffic suffices: a bad network or an incident may use the window up, or hurt so many in
control that it is called off."""
EFFECT: Final = Sky(0.95, control=0.02)
BORDER: Final = "a third crash"
"""Little more than the rise that matters."""
SILENT: Final[Mapping[str, Sky]] = {
    BORDER: Sky(0.01, crashing=1 / 3),
    "half crash": Sky(0.01, crashing=0.5),
    "nearly all crash": Sky(0.01, crashing=0.95),
    "half crash, a fifth lost": Sky(0.01, crashing=0.5, lost=0.2),
    "half lost, of the treated alone": Sky(0.01, muted=0.5),
}


@dataclass(frozen=True)
class Cell:
    """Experiments that are alike. ``level``: of e-LOND. ``weather`` and ``rate``: see ``Sky``."""

    kind: Kind
    weather: str
    sky: Sky
    count: int
    level: float = 1.0

    def done(self, number: int) -> list[Ended]:
        """Do the piece of work of this number."""
        rng = random.Random(f"{self.kind} {self.weather} {self.sky.rate} {number}")
        count = min(CHUNK, self.count - number * CHUNK)
        if self.kind == "service effect":
            return honest_worlds.ended(self.sky, rng, count, level=self.level)
        if self.kind.startswith("service"):
            return honest_worlds.ended(self.sky, rng, count, confirm=self.kind == "service")
        if self.kind in {"finding", "effect"}:
            return [finding(self.sky, rng, self.level) for _ in range(count)]
        if self.kind == "enough traffic":
            return [run(self.sky, rng, PATIENT, crowd=MANY) for _ in range(count)]
        return [run(self.sky, rng) for _ in range(count)]


def cells(scale: float) -> Iterator[Cell]:
    """List all there is to do. ``scale``: 1 for the plain run."""

    def count(plain: float) -> int:
        return max(1, round(plain * scale))

    for weather, under in SKIES.items():
        for rate in RATES:
            yield Cell("no effect", weather, under(rate), count(RUNS))
            yield Cell("finding", weather, under(rate), count(FINDINGS), ALPHA)
        for rate in RATES if weather in SUFFICES else ():
            if rate not in STEADY_RATES and not under(rate).counted:
                yield Cell("enough traffic", weather, under(rate), count(ENOUGH))
        for rate in STEADY_RATES:
            yield Cell("service", weather, under(rate), count(WORLDS / len(STEADY_RATES)))
    for name, level in levels().items():
        for counted in (False, True):
            by = "counted elsewhere" if counted else "devices"
            sky = replace(EFFECT, counted=counted)
            yield Cell("effect", f"{by}, {name} level", sky, count(EFFECTS), level)
            yield Cell("service effect", f"{by}, {name} level", sky, count(WORLDS), level)
    for name, silent in SILENT.items():
        yield Cell("lost", name, silent, count(CRASHES))
    yield Cell("service lost", "half crash", SILENT["half crash"], count(WORLDS))


def levels() -> dict[str, float]:
    """Give the first level of e-LOND and the thousandth, if nothing was discovered before."""
    stream = OnlineFdr()
    all_levels = [stream.next_level() for _ in range(THOUSANDTH)]
    return {"first": all_levels[0], "thousandth": all_levels[-1]}


def upper(count: int, total: int) -> float:
    """Give the exact upper bound of a share of which ``count`` of ``total`` were seen."""
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
        low, high = (middle, high) if below > 0.05 else (low, middle)
    return high


def bound(name: str, of: list[Ended], verdict: str) -> Row:
    """Give the share of a verdict, and its exact upper bound."""
    found = sum(each.verdict == verdict for each in of)
    return {name: found / len(of), f"{name}, at most": upper(found, len(of))}


def no_effect(name: str, alone: list[Ended], slots: list[Ended]) -> Row:
    """Count the verdicts where nothing differs between the arms."""
    return {
        "weather": name,
        "runs": len(alone),
        **bound("harmful", alone, "harmful"),
        "two slots": len(slots),
        "findings": sum(each.verdict == "harmful" for each in slots),
        "tolerated": sum(each.verdict == "tolerated" for each in alone) / len(alone),
        "treated": mean(each.treated for each in alone),
    }


def enough(name: str, ended: list[Ended]) -> Row:
    """Count what is tolerated where nothing differs, and there is traffic enough to tell."""
    return {
        "weather": name,
        "runs": len(ended),
        **bound("harmful", ended, "harmful"),
        "tolerated": sum(each.verdict == "tolerated" for each in ended) / len(ended),
        "treated": mean(each.treated for each in ended),
    }


def effect(name: str, slots: list[Ended]) -> Row:
    """Count the findings where nearly all of the treated fail."""
    missed = sum(each.verdict != "harmful" for each in slots)
    return {
        "level": name,
        "runs": len(slots),
        "found": 1 - missed / len(slots),
        "missed, at most": upper(missed, len(slots)),
    }


def lost(name: str, ended: list[Ended]) -> Row:
    """Count what becomes of experiments whose treated devices are never heard of."""
    inconclusive = [each for each in ended if each.verdict == "inconclusive"]
    return {
        "lost": name,
        "runs": len(ended),
        **bound("tolerated", ended, "tolerated"),
        "inconclusive": len(inconclusive) / len(ended),
        "and says so": sum("never reported" in each.reason for each in inconclusive) / len(ended),
    }


def through(name: str, ended: list[Ended], simulated: list[Ended]) -> Row:
    """Count the verdicts of the whole service, and hold them against the simulation."""
    told = [each for each in ended if not honest_worlds.interfered(each)]
    return {
        "through the service": name,
        "runs": len(ended),
        "harmful": sum(each.verdict == "harmful" for each in told) / len(ended),
        "interference": 1 - len(told) / len(ended),
        "tolerated": sum(each.verdict == "tolerated" for each in told) / len(ended),
        "agrees": not any(_differ(told, simulated, each) for each in ("harmful", "tolerated")),
    }


def _differ(some: list[Ended], others: list[Ended], verdict: str) -> bool:
    count = [sum(each.verdict == verdict for each in group) for group in (some, others)]
    return differ(count[0], len(some), count[1], len(others), 0.001)


Results = Mapping[Cell, list[Ended]]
Measured = tuple[dict[str, list[Row]], dict[str, Target]]


def tables_of(results: Results) -> dict[str, list[Row]]:
    """Sum up: a row for each cell of the simulation, and one for each weather."""
    all_of: defaultdict[tuple[str, str], list[Ended]] = defaultdict(list)
    steady: defaultdict[str, list[Ended]] = defaultdict(list)
    each_of: dict[tuple[str, str, float], list[Ended]] = {}
    for cell, ended in results.items():
        all_of[cell.kind, cell.weather] += ended
        each_of[cell.kind, cell.weather, cell.sky.rate] = ended
        if cell.kind == "finding" and cell.sky.rate in STEADY_RATES:
            steady[cell.weather] += ended
    tables = dict[str, list[Row]]()
    for name in ("each rate", "enough", "no effect", "effect", "lost"):
        tables[name] = []
    services: list[Row] = []
    for weather in SKIES:
        for rate in RATES:
            found = (each_of[kind, weather, rate] for kind in ("no effect", "finding"))
            tables["each rate"].append(no_effect(f"{weather}, {rate:.0%} fail", *found))
        alone = all_of["no effect", weather]
        tables["no effect"].append(no_effect(weather, alone, all_of["finding", weather]))
        for rate in RATES:
            ended = each_of.get(("enough traffic", weather, rate), [])
            if ended:
                tables["enough"].append(enough(f"{weather}, {rate:.0%} fail", ended))
        services.append(through(weather, all_of["service", weather], steady[weather]))
    for (kind, name), ended in all_of.items():
        if kind in {"effect", "lost"}:
            tables[kind].append(effect(name, ended) if kind == "effect" else lost(name, ended))
        if kind in {"service effect", "service lost"}:
            simulated = all_of[kind.removeprefix("service "), name]
            services.append(through(name, ended, simulated))
    everything = [each for weather in SKIES for each in all_of["no effect", weather]]
    slots = [each for weather in SKIES for each in all_of["finding", weather]]
    tables["no effect"].append(no_effect(ALL, everything, slots))
    return {**tables, "service": services}


ALL: Final = "all weathers"


def targets_of(tables: Mapping[str, list[Row]]) -> dict[str, Target]:
    """Hold the rows against what is promised."""
    targets: dict[str, Target] = {}
    for row in tables["no effect"]:
        name = row["weather"]
        targets[f"harmful: {name}"] = at_most(_of(row, "harmful"), ALPHA)
        targets[f"harmful, upper bound: {name}"] = at_most(_of(row, "harmful, at most"), BOUND)
        targets[f"findings: {name}"] = at_most(_of(row, "findings"), 0)
    steady = {f"{name}, {rate:.0%} fail" for name in SUFFICES for rate in STEADY_RATES}
    for row in tables["each rate"]:
        if str(row["weather"]) in steady:
            targets[f"tolerated: {row['weather']}"] = at_least(_of(row, "tolerated"), 0.95)
    for row in tables["enough"]:
        targets[f"tolerated: {row['weather']}, enough traffic"] = at_least(
            _of(row, "tolerated"), 0.95
        )
    for row in tables["effect"]:
        targets[f"found: {row['level']}"] = at_least(_of(row, "found"), 0.999)
    for row in tables["lost"]:
        few = 0.05 if row["lost"] == BORDER else 0.0  # that is what a single *tolerated* promises
        targets[f"tolerated: {row['lost']}"] = at_most(_of(row, "tolerated"), few)
        targets[f"inconclusive, and says so: {row['lost']}"] = at_least(
            _of(row, "and says so"), 0.95
        )
    for row in tables["service"]:
        name = f"through the service: {row['through the service']}"
        targets[f"agrees, {name}"] = at_least(int(bool(row["agrees"])), 1)
        if row["through the service"] in SKIES:
            targets[f"harmful, {name}"] = at_most(_of(row, "harmful"), ALPHA)
    return targets


def _of(row: Row, column: str) -> float:
    return float(str(row[column]))


def measure(scale: float, kept: Path | None = None) -> Measured:
    """Do it all, on as many processes as there are processors; ``kept``: see ``carried_out``."""
    wanted = list(cells(scale))
    work = [(cell, n) for cell in wanted for n in range(-(-cell.count // CHUNK))]
    results: dict[Cell, list[Ended]] = {cell: [] for cell in wanted}
    for (cell, _), ended in zip(work, carried_out(_done, work, kept=kept), strict=True):
        results[cell] += ended
    tables = tables_of(results)
    return tables, targets_of(tables)


def _done(work: tuple[Cell, int]) -> list[Ended]:
    cell, number = work
    return cell.done(number)


def main() -> int:
    """Print the tables; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--full", action="store_true", help="four times as many, tighter bounds")
    parser.add_argument(
        "--keep", type=Path, help="keep what is done in this folder, and go on from there"
    )
    given = parser.parse_args()
    tables, targets = measure(FULL if given.full else 1.0, given.keep)
    return 0 if say(tables, targets, as_json=given.json) else 1


if __name__ == "__main__":
    sys.exit(main())
