"""Kills parts of the whole stack: light traffic with real edges, through the Collector and Kafka.

Everything that the crash test checks must hold here, too. Beyond that what was produced is counted
without the service (:mod:`soak.account`): Kafka must hold all that the sender
was told was taken, and the classes must have counted what Kafka holds, each request once.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.stack.topology import Stack, running
from ldfi.experiments.scheduler.record import LATE_SECONDS
from ldfi.experiments.store.schema import ExperimentRow
from soak import account, synthetic
from soak.checks import Kill
from soak.kills import Assault, Plan
from soak.traffic import planted
from soak.victims import OPTIONS, Victims, late_leaders

PATHS: Final = ("/boot", "/store")
CAMPAIGN: Final = {
    **synthetic.CAMPAIGN,
    "concurrency": 4,
    "window": 12.0,
    "settle": 5.0,  # the Collector judges a trace after a second, then it is to become quiet
    "follow": 0.0,
}
DRAIN_SECONDS: Final = 90.0
SETTLE_SECONDS: Final = 45.0
"""Nothing new for so long: more than one half of a request waits for the other."""
READ_SECONDS: Final = 20.0
"""An observation is read by the leader so soon after it was written, however busy the machine."""

LEADERS: Final = frozenset({"leader", "postgresql"})
"""Kills after which memory of experiments may be lost, and nobody can write to the record."""


@dataclass(frozen=True, slots=True)
class Count:
    """Requests: ``sent``, of which both halves were taken; of these ``lost``, not whole in Kafka;
    ``in_kafka``, whole; ``counted``, by the classes, of ``undisturbed`` that they should."""

    sent: int
    lost: int
    in_kafka: int
    undisturbed: int
    counted: int


@dataclass
class Result:
    """``wrong``: what must not be, in words."""

    attack: Assault
    victims: Victims
    count: Count
    wrong: list[str]


def assault(
    folder: Path,
    targets: Sequence[str],
    plan: Plan,
    *,
    rate: float,
    finish: bool = True,
    say: Callable[[str], None] = lambda _line: None,
) -> Result:
    """Kill these targets in turn. ``finish``: the campaigns come to their end, and find what is
    planted. ``rate``: requests a second. Raises Missing where there are no servers."""
    wanted = planted(list(PATHS)) if finish else None
    with running(folder, OPTIONS, say) as stack:
        victims = Victims(stack, targets, folder, random.Random(plan.seed + 1))
        attack = Assault(victims, folder / "notes", CAMPAIGN, plan, say=say)
        _start_traffic(stack, attack.notes, folder / "account", rate)
        attack.run(wanted)
        stack.processes.end("traffic", DRAIN_SECONDS)
        complaints = (folder / "traffic.log").read_text()
        assert "Traceback" not in complaints, complaints
        logged = _settled(stack)
        stack.processes.stop()
        attack.witnessed(wanted, [kill for kill in victims.killed if kill.aim == "leader"])
        counted = account.counted(stack.database)
    sent = account.taken(folder / "account")
    lost = account.lost(sent, logged)
    undisturbed = account.undisturbed(logged.values())
    wrong = [*attack.wrong, *late_leaders(victims.recovered)]
    wrong += account.miscounted(undisturbed, counted)
    wrong += account.ill_accounted(attack.last, logged.values(), _heard_until(victims.killed))
    if lost and "collector" not in targets:
        wrong.append(f"{len(lost)} requests were taken and are not in Kafka: {lost[:3]}")
    sums = (undisturbed.total(), counted.total())
    return Result(attack, victims, Count(len(sent), len(lost), len(logged), *sums), wrong)


def _start_traffic(stack: Stack, notes: Path, sent: Path, rate: float) -> None:
    stack.processes.start(
        "traffic",
        [
            *(sys.executable, "-m", "soak.traffic"),
            *("--url", stack.url, "--spans", stack.collector.url),
            *("--notes", str(notes), "--account", str(sent)),
            *("--paths", ",".join(PATHS), "--rate", f"{rate}"),
        ],
        {},
    )


def _settled(stack: Stack) -> dict[str, account.Logged]:
    """Wait until the classes have counted all that was written; return what Kafka holds."""
    before: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    end = time.monotonic() + SETTLE_SECONDS
    while True:
        time.sleep(3.0)
        logged = account.in_kafka(stack.broker.address, stack.topics)
        now = account.undisturbed(logged.values()), account.counted(stack.database)
        if now != before:
            end = time.monotonic() + SETTLE_SECONDS
        elif now[0] == now[1] or time.monotonic() > end:
            return logged  # the same twice: nothing comes any more, nor twice
        before = now


def _heard_until(killed: Sequence[Kill]) -> Callable[[ExperimentRow], float]:
    """Return until when an experiment must have heard of an observation, Unix seconds.

    It counts what is late for a while and then records it, if its leader lives that long."""
    ends = time.time()

    def heard_until(row: ExperimentRow) -> float:
        if row.state != "decided" or row.ended_at is None or row.armed_at is None:
            return 0.0
        from_, until = row.armed_at, row.ended_at + LATE_SECONDS + READ_SECONDS
        disturbed = any(from_ <= kill.at <= until and kill.aim in LEADERS for kill in killed)
        return 0.0 if disturbed or until > ends else row.ended_at + LATE_SECONDS - READ_SECONDS

    return heard_until
