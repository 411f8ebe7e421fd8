"""``make soak``: the crash test in its long form, on both databases and both kinds of traffic.

    python -m soak.crash --kills 100 --database sqlite --traffic demo --json

Exit status 1 where anything was found wrong. Progress goes to standard error.
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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from deploy.stack import postgresql
from soak import demo, synthetic
from soak.kills import Assault, Plan
from soak.rounds import say
from soak.traffic import PROGRAMS
from soak.treated import noted

LIVES = {"synthetic": (0.3, 4.0), "demo": (2.5, 6.0)}
WARM_UP = {"synthetic": 0.0, "demo": 25.0}
DATABASES = ("sqlite", "postgresql")


@dataclass(frozen=True, slots=True)
class Row:
    """What one assault came to. Times in seconds; ``latest``: from a kill to the last fault that
    fired for an experiment it left armed."""

    traffic: str
    database: str
    kills: int
    aims: dict[str, int]
    campaigns: int
    experiments: dict[str, int]
    findings: int
    treated: int
    charged: int
    latest: float
    start: float
    failed_ticks: int
    seconds: float
    wrong: list[str]


def main() -> int:
    """Run the assaults asked for, one after the other."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))  # leave nothing behind
    rows = []
    for traffic in options.traffic or LIVES:
        for database in options.database or DATABASES:
            say(f"== {traffic} traffic, {database}: {options.kills} kills")
            rows.append(_assault(traffic, database, options))
    for row in rows:
        say(_line(row))
        for wrong in row.wrong:
            say(f"   WRONG: {wrong}")
    if options.json:
        sys.stdout.write(json.dumps([asdict(row) for row in rows]) + "\n")
    return int(any(row.wrong for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m soak.crash")
    parser.add_argument("--kills", type=int, default=100, help="of each assault; default: 100")
    parser.add_argument("--database", action="append", choices=DATABASES, help="default: both")
    parser.add_argument("--traffic", action="append", choices=list(LIVES), help="default: both")
    parser.add_argument("--seed", type=int, default=0, help="of the instants of the kills")
    parser.add_argument("--keep", action="store_true", help="keep databases, notes and logs")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser.parse_args()


def _assault(traffic: str, database: str, options: argparse.Namespace) -> Row:
    plan = Plan(options.kills, LIVES[traffic], options.seed, WARM_UP[traffic], patience=600.0)
    folder = Path(tempfile.mkdtemp(prefix=f"ldfi-crash-{traffic}-{database}-"))
    began = time.monotonic()
    try:
        with _database(database, folder) as url:
            if traffic == "demo":
                attack = demo.assault(url, folder, plan, say)
            else:
                attack = synthetic.assault(url, folder, plan, paths=tuple(PROGRAMS), say=say)
        return _row(attack, traffic, database, time.monotonic() - began)
    finally:
        if options.keep:
            say(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _database(name: str, folder: Path) -> Iterator[str]:
    if name == "sqlite":
        yield f"sqlite:///{folder / 'ldfi.sqlite3'}"
    else:
        with postgresql.running() as server:
            yield server.url(server.create())


def _row(attack: Assault, traffic: str, database: str, seconds: float) -> Row:
    armed = {k: row for k, row in attack.last.experiments.items() if row.armed_at is not None}
    treated = noted(attack.notes)
    after = [
        (each.fired or each.stamped) - kill.at
        for each in treated
        if (row := armed.get(each.experiment)) is not None
        for kill in attack.kills
        if (row.armed_at or 0.0) < kill.at < (each.fired or each.stamped)
    ]
    return Row(
        traffic=traffic,
        database=database,
        kills=len(attack.kills),
        aims=dict(Counter(kill.aim for kill in attack.kills).most_common()),
        campaigns=len(attack.started),
        experiments=dict(Counter(row.verdict or row.state for row in armed.values())),
        findings=len(attack.last.findings),
        treated=len({(each.experiment, each.device) for each in treated}),
        charged=sum(row.members_charged for row in armed.values()),
        latest=round(max(after, default=0.0), 2),
        start=round(statistics.median(attack.service.started_in), 2),
        failed_ticks=attack.service.log.count("a tick failed"),
        seconds=round(seconds, 1),
        wrong=list(attack.wrong),
    )


def _line(row: Row) -> str:
    ended = ", ".join(f"{count} {name}" for name, count in sorted(row.experiments.items()))
    return (
        f"{row.traffic:10} {row.database:10} {row.kills} kills, {row.campaigns} campaigns, "
        f"{ended}; {row.findings} findings; {row.treated} devices treated, {row.charged} charged; "
        f"last fault {row.latest} s after a kill; up again in {row.start} s; "
        f"{row.failed_ticks} failed ticks; {len(row.wrong)} wrong; {row.seconds:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
