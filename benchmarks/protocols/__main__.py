"""``python -m benchmarks.protocols [--json]``: executions per protocol, ours and others'."""

from __future__ import annotations

import argparse
import json
import sys
import time
from statistics import mean

from benchmarks.protocols.catalogue import CATALOGUE, Known
from benchmarks.protocols.suite import explore
from solver.check import check

SEEDS = 5


def measure(known: Known) -> dict[str, object]:
    """One row: worst and mean over the seeds, and whether the answer is the known one."""
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
    if arguments.json:
        print(json.dumps(rows, indent=1))
    else:
        for row in rows:
            print("  ".join(f"{key}={value}" for key, value in row.items()))
    return 0 if all(row["equal"] and row["certificates_hold"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
