"""``python -m benchmarks.verdicts [--json]``: how soon verdicts come, and how often they are wrong.

Simulated experiments, one control and one treated device at a time, looked at after each.
"""

from __future__ import annotations

import argparse
import random
import sys
from statistics import mean
from typing import Any

from benchmarks.outcome import Target, at_most, say
from experiments.domain.verdict import SequentialTests, Thresholds

EFFECTS = ((0.01, 0.95), (0.01, 0.5), (0.01, 0.01), (0.05, 0.05))
RATES = (0.01, 0.05, 0.3)
LOOKS = 1_000


def simulate(
    control: float, treated: float, rng: random.Random, thresholds: Thresholds
) -> tuple[str, int]:
    """The verdict of one experiment at these failure rates, and its treated devices."""
    tests = SequentialTests(thresholds)
    for looks in range(1, LOOKS + 1):
        tests.add(treated=False, failed=rng.random() < control)
        tests.add(treated=True, failed=rng.random() < treated)
        verdict = tests.verdict()
        if verdict is not None:
            return verdict, looks
    return "none", LOOKS


def speed(control: float, treated: float, times: int, rng: random.Random) -> dict[str, Any]:
    """How soon an effect is decided, with the default thresholds."""
    runs = [simulate(control, treated, rng, Thresholds()) for _ in range(times)]
    verdicts = [verdict for verdict, _ in runs]
    return {
        "control": control,
        "treated": treated,
        "harmful": verdicts.count("harmful") / times,
        "tolerated": verdicts.count("tolerated") / times,
        "devices": round(mean(looks for _, looks in runs), 2),
    }


def alarms(rate: float, times: int, rng: random.Random) -> dict[str, Any]:
    """How often no effect at all is called harmful at α = 0.05, if nothing stops the looking."""
    patient = Thresholds(alpha_harmful=0.05, alpha_tolerated=1e-300)
    wrong = sum(simulate(rate, rate, rng, patient)[0] == "harmful" for _ in range(times))
    return {"rate": rate, "looks": LOOKS, "false_harmful": wrong / times}


def main() -> int:
    """Print the tables; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--times", type=int, default=1_000, help="experiments for each row")
    given = parser.parse_args()
    rng = random.Random(1)
    soon = [speed(control, treated, given.times, rng) for control, treated in EFFECTS]
    wrong = [alarms(rate, given.times, rng) for rate in RATES]
    targets: dict[str, Target] = {
        "treated devices until harmful, 1 % against 95 %": at_most(soon[0]["devices"], 12),
        **{
            f"false harmful at {row['rate']:.0%} of failures": at_most(row["false_harmful"], 0.05)
            for row in wrong
        },
    }
    met = say({"speed": soon, "false alarms": wrong}, targets, as_json=given.json)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
