"""``python -m benchmarks.verdicts [--json]``: how soon verdicts come, and how often they are wrong.

Simulated experiments, one control and one treated device at a time, looked at after each.

- ``speed``: what a verdict costs, with the default thresholds.
- ``false alarms``: how often no effect at all is called harmful at α = 0.05 if nothing stops the
  looking. Counted from the first block, without the wait for ``min_samples``: no reading of the
  evidence alarms more often.
- ``many experiments``: days of campaigns of 500 experiments a day, 5 % of them harmful, twenty at a
  time; levels by e-LOND, and for comparison at a fixed α and by the published threshold rule.
  ``fdr`` is the mean over the campaigns of the share of false ones among the discoveries,
  ``devices`` and ``hurt`` are treated devices a day and the failures expected among them.
- ``power``: what e-LOND finds of the harmful ones, by how often treated devices fail.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from statistics import mean
from typing import Any

from rich.console import Console
from rich.progress import track

from benchmarks.outcome import Target, at_most, say
from ldfi.experiments.domain.judging.online_fdr import OnlineFdr
from ldfi.experiments.domain.judging.verdict import Verdict, tests_for
from ldfi.experiments.domain.settings import Thresholds, VerdictRule

EFFECTS = (
    (0.01, 0.95), (0.01, 0.75), (0.01, 0.5), (0.05, 0.3), (0.0, 0.0), (0.01, 0.01), (0.05, 0.05),
)  # fmt: skip
"""Failure rates in control and treatment."""
RATES = (0.01, 0.05, 0.3)
LOOKS = 1_000

DAYS = 10
A_DAY = 500
SIDE_BY_SIDE = 20
HARMFUL_SHARE = 0.05
WINDOWS = (200, 50)
"""Treated devices that one window lets through at most: busy classes, quiet ones."""
CONTROL = (0.01, 0.05)
HARM = (0.3, 1.0)
"""Between which failure rates control, and treatment where it is harmful, are drawn evenly."""
STRENGTHS = ((0.3, 0.4), (0.4, 0.5), (0.5, 0.75), (0.75, 1.0))


@dataclass(frozen=True)
class Tried:
    """One experiment of a campaign: what was true, and what was found with how many devices."""

    treated: float
    harmful: bool
    verdict: Verdict
    devices: int


def simulate(
    control: float,
    treated: float,
    rng: random.Random,
    thresholds: Thresholds,
    looks: int = LOOKS,
    rule: VerdictRule = "sequential",
) -> tuple[Verdict, int]:
    """Simulate one experiment at these failure rates: its verdict, and its treated devices."""
    tests = tests_for(rule, thresholds)
    for devices in range(1, looks + 1):
        tests.add(treated=False, failed=rng.random() < control)
        tests.add(treated=True, failed=rng.random() < treated)
        verdict = tests.verdict()
        if verdict is not None:
            return verdict, devices
    return tests.final(), looks


def speed(control: float, treated: float, times: int, rng: random.Random) -> dict[str, Any]:
    """Measure how soon an effect is decided, with the default thresholds."""
    runs = [simulate(control, treated, rng, Thresholds()) for _ in range(times)]
    verdicts = [verdict for verdict, _ in runs]
    devices = sorted(looks for _, looks in runs)
    return {
        "control": control,
        "treated": treated,
        "harmful": verdicts.count("harmful") / times,
        "tolerated": verdicts.count("tolerated") / times,
        "devices": round(mean(devices), 2),
        "devices_p95": devices[int(0.95 * times)],
    }


def alarms(rate: float, times: int, rng: random.Random) -> dict[str, Any]:
    """Measure how often no effect at all is called harmful at α = 0.05, if nothing stops the
    looking."""
    patient = Thresholds(alpha_harmful=0.05, alpha_tolerated=1e-300, min_samples=1)
    wrong = sum(simulate(rate, rate, rng, patient)[0] == "harmful" for _ in range(times))
    return {"rate": rate, "looks": LOOKS, "false_harmful": wrong / times}


def campaign(
    rng: random.Random,
    levels: OnlineFdr | float,
    window: int,
    rule: VerdictRule = "sequential",
) -> Iterator[Tried]:
    """Simulate ten days of experiments, ``SIDE_BY_SIDE`` of them at a time: their levels are
    fixed when they start, so none knows what those beside it will find."""
    for _ in range(DAYS * A_DAY // SIDE_BY_SIDE):
        started = [
            levels.next_level() if isinstance(levels, OnlineFdr) else levels
            for _ in range(SIDE_BY_SIDE)
        ]
        for level in started:
            tried = _experiment(rng, level, window, rule)
            if tried.verdict == "harmful" and isinstance(levels, OnlineFdr):
                levels.discovered()
            yield tried


def _experiment(rng: random.Random, level: float, window: int, rule: VerdictRule) -> Tried:
    control = rng.uniform(*CONTROL)
    harmful = rng.random() < HARMFUL_SHARE
    treated = rng.uniform(*HARM) if harmful else control
    thresholds = replace(Thresholds(), alpha_harmful=level)
    verdict, devices = simulate(control, treated, rng, thresholds, window, rule)
    return Tried(treated, harmful, verdict, devices)


def many(name: str, campaigns: list[list[Tried]]) -> dict[str, Any]:
    """Sum up one way to decide, over all its campaigns."""
    everything = [tried for each in campaigns for tried in each]
    harmful = [tried for tried in everything if tried.harmful]
    days = len(campaigns) * DAYS
    return {
        "rule": name,
        "campaigns": len(campaigns),
        "false": sum(tried.verdict == "harmful" and not tried.harmful for tried in everything),
        "fdr": mean(false_share(each) for each in campaigns),
        "found": _share(harmful, "harmful"),
        "missed": _share(harmful, "tolerated"),
        "devices": round(sum(tried.devices for tried in everything) / days),
        "hurt": round(sum(tried.devices * tried.treated for tried in everything) / days),
    }


def false_share(tried: list[Tried]) -> float:
    """Measure the share of false ones among a campaign's discoveries; 0 where there are none."""
    discoveries = [each for each in tried if each.verdict == "harmful"]
    return sum(not each.harmful for each in discoveries) / max(1, len(discoveries))


def power(window: int, tried: list[Tried]) -> Iterator[dict[str, Any]]:
    """Measure what was found of the harmful ones, and what it took; and the price of harmless
    ones."""
    for low, high in STRENGTHS:
        alike = [each for each in tried if each.harmful and low <= each.treated < high]
        yield {"window": window, **_price(f"{low:.0%} to {high:.0%}", alike)}
    yield {"window": window, **_price("no effect", [each for each in tried if not each.harmful])}


def _price(name: str, alike: list[Tried]) -> dict[str, Any]:
    return {
        "treated": name,
        "experiments": len(alike),
        "harmful": _share(alike, "harmful"),
        "tolerated": _share(alike, "tolerated"),
        "inconclusive": _share(alike, "inconclusive"),
        "devices": round(mean(each.devices for each in alike), 2),
    }


def _share(tried: list[Tried], verdict: Verdict) -> float:
    return sum(each.verdict == verdict for each in tried) / len(tried)


def main() -> int:
    """Print the tables; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--times", type=int, default=2_000, help="experiments for each row")
    parser.add_argument("--campaigns", type=int, default=20, help="campaigns of ten days each")
    given = parser.parse_args()
    rng = random.Random(1)

    steps = list(_steps(given.times, given.campaigns, rng))
    results: dict[str, list[Any]] = {name: [] for name, _ in steps}
    console = Console(stderr=True)
    for name, step in track(steps, "simulating", console=console, transient=True):
        results[name].append(step())
    tables: dict[str, list[dict[str, Any]]] = {
        "speed": results.pop("speed"),
        "false alarms": results.pop("false alarms"),
        "power": [
            row
            for window in WINDOWS
            for row in power(window, [one for each in results[_e_lond(window)] for one in each])
        ],
        "many experiments": [many(name, campaigns) for name, campaigns in results.items()],
    }
    return 0 if say(tables, _targets(tables), as_json=given.json) else 1


def _e_lond(window: int) -> str:
    return f"e-LOND, at most {window} devices"


def _steps(
    times: int, campaigns: int, rng: random.Random
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """List everything to simulate, as pieces that progress can be counted in."""
    for control, treated in EFFECTS:
        yield "speed", partial(speed, control, treated, times, rng)
    for rate in RATES:
        yield "false alarms", partial(alarms, rate, times, rng)
    for window in WINDOWS:
        for _ in range(campaigns):
            yield _e_lond(window), partial(_ten_days, rng, 0.05, window, online=True)
    for _ in range(max(1, campaigns // 4)):
        yield "always α = 0.05", partial(_ten_days, rng, 0.05, WINDOWS[0])
        yield "always α = 0.001", partial(_ten_days, rng, 0.001, WINDOWS[0])
        yield "threshold rule", partial(_ten_days, rng, 0.05, WINDOWS[0], rule="threshold")


def _ten_days(
    rng: random.Random,
    alpha: float,
    window: int,
    *,
    online: bool = False,
    rule: VerdictRule = "sequential",
) -> list[Tried]:
    return list(campaign(rng, OnlineFdr() if online else alpha, window, rule))


def _targets(tables: dict[str, list[dict[str, Any]]]) -> dict[str, Target]:
    plain = tables["speed"][0]
    return {
        "treated devices until harmful, 1 % against 95 %": at_most(plain["devices"], 12),
        **{
            f"false harmful at {row['rate']:.0%} of failures": at_most(row["false_harmful"], 0.05)
            for row in tables["false alarms"]
        },
        **{
            f"false discoveries, {row['rule']}": at_most(row["fdr"], 0.05)
            for row in tables["many experiments"]
            if row["rule"].startswith("e-LOND")
        },
    }


if __name__ == "__main__":
    sys.exit(main())
