"""``make soak-stack``: parts of the whole stack killed many times while it works.

    python -m soak.stack --target leader --kills 30 --json

Real Kafka, PostgreSQL and Collector, the service in its roles, light traffic with real edges. Exit
status 1 where anything was found wrong, 2 where a server is missing. Progress goes to standard
error.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from deploy.stack.topology import missing
from ldfi.cli import exits
from soak.kills import Plan
from soak.rounds import say
from soak.stack_kills import Count, Result, assault
from soak.victims import TARGETS

LIVES = {
    "worker": (1.0, 6.0),  # a group needs six seconds to notice that one of it is gone
    "broker": (0.3, 2.5),  # it takes six to start
    "postgresql": (0.5, 4.0),
    "leader": (0.5, 4.0),
    "collector": (0.5, 4.0),
}
"""Seconds that a victim lives once all is well, at least and at most."""

WARM_UP = 8.0
PATIENCE = 300.0


@dataclass(frozen=True, slots=True)
class Row:
    """What the kills of one target came to. Times in seconds; ``leads_again``: from each kill
    until somebody led, half of them and the longest; ``up_again``: until all was well."""

    target: str
    kills: int
    count: Count
    campaigns: int
    experiments: dict[str, int]
    findings: int
    leads_again: tuple[float, float]
    up_again: tuple[float, float]
    seconds: float
    wrong: list[str]


def main() -> int:
    """Kill the targets asked for, one after the other."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))  # leave nothing behind
    if absent := missing():
        say("\n".join(absent))
        return exits.USAGE
    rows = [_row(target, options) for target in options.target or TARGETS]
    for row in rows:
        say(_line(row))
        for wrong in row.wrong:
            say(f"   WRONG: {wrong}")
    if options.json:
        sys.stdout.write(json.dumps([asdict(row) for row in rows]) + "\n")
    return int(any(row.wrong for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m soak.stack")
    parser.add_argument("--target", action="append", choices=TARGETS, help="default: all of them")
    parser.add_argument("--kills", type=int, default=30, help="of each target; default: 30")
    parser.add_argument("--rate", type=float, default=40.0, help="requests a second; default: 40")
    parser.add_argument("--seed", type=int, default=0, help="of the instants of the kills")
    parser.add_argument("--keep", action="store_true", help="keep notes and logs")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser.parse_args()


def _row(target: str, options: argparse.Namespace) -> Row:
    say(f"== {target}: {options.kills} kills")
    plan = Plan(options.kills, LIVES[target], options.seed, WARM_UP, PATIENCE)
    folder = Path(tempfile.mkdtemp(prefix=f"ldfi-soak-{target}-"))
    began = time.monotonic()
    try:
        result = assault(folder, [target], plan, rate=options.rate, say=say)
    finally:
        if options.keep:
            say(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return _told(target, result, time.monotonic() - began)


def _told(target: str, result: Result, seconds: float) -> Row:
    record = result.attack.last
    armed = [row for row in record.experiments.values() if row.armed_at is not None]
    return Row(
        target=target,
        kills=len(result.victims.killed),
        count=result.count,
        campaigns=len(result.attack.started),
        experiments=dict(Counter(row.verdict or row.state for row in armed)),
        findings=len(record.findings),
        leads_again=_half_and_all(result.victims.recovered.get(target, [])),
        up_again=_half_and_all(result.victims.started_in),
        seconds=round(seconds, 1),
        wrong=result.wrong,
    )


def _half_and_all(times: list[float]) -> tuple[float, float]:
    return round(statistics.median(times or [0.0]), 2), round(max(times, default=0.0), 2)


def _line(row: Row) -> str:
    ended = ", ".join(f"{count} {name}" for name, count in sorted(row.experiments.items()))
    count = row.count
    return (
        f"{row.target:10} {row.kills} kills; {count.sent} requests sent, {count.lost} lost, "
        f"{count.in_kafka} in Kafka; {count.counted} of {count.undisturbed} counted; "
        f"{row.campaigns} campaigns, {ended}; {row.findings} findings; led again within "
        f"{row.leads_again[1]} s, up again within {row.up_again[1]} s; {len(row.wrong)} wrong; "
        f"{row.seconds:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
