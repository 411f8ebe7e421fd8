"""``python -m benchmarks.protocols [--json]``: executions per protocol, ours and others'."""

from __future__ import annotations

import argparse
import json
import sys
import time
from statistics import mean
from typing import Any

from benchmarks.outcome import Target, at_least, at_most, say
from benchmarks.protocols.catalogue import CATALOGUE, Known
from benchmarks.protocols.suite import explore
from ldfi.checker.solving import check

SEEDS = 5


def measure(known: Known) -> dict[str, Any]:
    """Measure one row: worst and mean over the seeds, and whether the answer is the known one."""
    started = time.perf_counter()
    results = [explore(known.setting, max_size=known.max_size, seed=seed) for seed in range(SEEDS)]
    firsts = [result.to_first for result in results if result.to_first is not None]
    setting = known.setting
    return {
        "protocol": known.name,
        "bounds": f"{setting.eot}/{setting.eff}/{setting.crashes}",
        "counterexamples": len(known.counterexamples),
        "equal": all(result.counterexamples == known.counterexamples for result in results),
        "certificates_hold": all(
            check(json.loads(each.to_json())) == [] for each in results[0].certificates
        ),
        "executions_mean": mean(result.executions for result in results),
        "executions_worst": max(result.executions for result in results),
        "others_all": known.all,
        "first_mean": mean(firsts) if firsts else None,
        "first_worst": max(firsts, default=None),
        "others_first": known.first,
        "seconds": round((time.perf_counter() - started) / SEEDS, 3),
    }


def main() -> int:
    """Print the table; 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = [measure(known) for known in CATALOGUE]
    met = say({"protocols": rows}, targets(rows), as_json=arguments.json)
    return 0 if met else 1


def targets(rows: list[dict[str, Any]]) -> dict[str, Target]:
    """Hold the rows against the targets: the known answers, in no more executions than others
    needed."""
    found = {
        "rows equal to the catalogue": at_least(sum(row["equal"] for row in rows), len(rows)),
        "rows with certificates that hold": at_least(
            sum(row["certificates_hold"] for row in rows), len(rows)
        ),
    }
    for row in rows:
        name = f"{row['protocol']} {row['bounds']}"
        if row["others_first"] is not None:
            found[f"to the first: {name}"] = at_most(row["first_worst"], row["others_first"])
        if row["others_all"] is not None:
            found[f"to the end: {name}"] = at_most(row["executions_worst"], row["others_all"])
    return found


if __name__ == "__main__":
    sys.exit(main())
