"""``python -m benchmarks.edges [--json]``: ten thousand edges over four relays, on one machine.

The service is real: PostgreSQL, a leader and relays (``--role api``) as processes of their own,
with their defaults. The edges are simulated (:mod:`benchmarks.edges_simulated`): two processes hold
ten thousand of them, and each has its name, its stream of offers, its counters and connections, as
the protocol of edges has it; they stamp no requests and parse no document twice.

Devices come at random to random edges, all the time: some hundreds a second, out of a million. In
each round an operator tries one hypothesis (``POST /api/v1/experiments``) on a class of requests
that the service knows from spans, with the shares that a campaign has by default, and 50 members
who may all be let in at once. No device reports how it fared, so nothing but the halt ends the
experiment; after that the service may be resumed.

*A change reaches an edge*: from ``armed_at`` on record, which is before the transaction that arms,
or from the moment in which the halt is sent, until the edge has it, read off the machine's clock.
*The leader* is measured by its processor time on the wall's seconds: while nothing is armed, in the
three seconds after either change, and in between, with devices asked for and leases prolonged.
*Arrivals* are those of devices in either arm, until the 50th member is enrolled; the same devices
in the same order, before a single edge with all of the allowance, are what it is held against.
What comes while an edge does not know yet, or is answered too late, is so counted against us.

All processes share the machine with whatever else runs; its load is told. Edges of one process
share a loop, so the time of asks is too long rather than too short.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import mean
from typing import IO, Any, Final

from benchmarks.edges_fleet import Arrival, Plan
from benchmarks.edges_service import CLASS, POINT, TOKENS, Site, running, until
from benchmarks.edges_simulated import ASK_SECONDS
from benchmarks.outcome import Row, Target, at_least, at_most, say
from ldfi.fit.protocol.allocation import mark_of
from ldfi.fit.protocol.allowance import Allowances
from ldfi.fit.protocol.rules import Rule

FLEETS: Final = 2
"""Processes of edges."""

MEMBERS: Final = 50
POPULATION: Final = 1_000_000
CHANGE_SECONDS: Final = 3.0
"""What follows a change for so long is the change's."""

HEARD_SECONDS: Final = 15.0
"""So long after a halt everybody has heard of it, or never will."""

KNOWN_SECONDS, LEADER_SHARE, ARRIVALS = 2.0, 0.1, 1.3
"""The targets."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is simulated. Rates are per second; ``idle`` and ``armed`` are seconds."""

    edges: int = 10_000
    relays: int = 4
    rounds: int = 3
    opened: float = 200.0
    devices: float = 500.0
    idle: float = 20.0
    armed: float = 25.0
    seed: int = 0


class Fleets:
    """All edges, by the processes that they are in."""

    def __init__(self, processes: Sequence[subprocess.Popen[str]]) -> None:
        self._processes = processes

    def tell(self, what: str) -> None:
        """Have each process do something."""
        for process in self._processes:
            _pipe(process.stdin).write(f"{what}\n")
            _pipe(process.stdin).flush()

    def ask(self, what: str) -> list[Any]:
        """Have each process say something. Raises RuntimeError where one has ended."""
        self.tell(what)
        lines = [_pipe(process.stdout).readline() for process in self._processes]
        if not all(lines):
            raise RuntimeError("a process of edges has ended")
        return [json.loads(line) for line in lines]


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


@contextmanager
def fleets(site: Site, size: Size) -> Iterator[Fleets]:
    """Have the edges for as long as the block lasts."""
    processes = []
    for number in range(FLEETS):
        edges = size.edges // FLEETS + (number < size.edges % FLEETS)
        plan = Plan(
            relays=site.relays,
            token=TOKENS["edge"],
            edges=edges,
            opened=size.opened / FLEETS,
            devices=size.devices / FLEETS,
            population=POPULATION,
            seed=FLEETS * size.seed + number,
        )
        command = [sys.executable, "-m", "benchmarks.edges_fleet", plan.to_json()]
        processes.append(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
    try:
        yield Fleets(processes)
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@dataclass
class Meter:
    """Processor time by phase: what each process took, and how long the phase lasted in all."""

    site: Site
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    cpu: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """Count what the block takes as this phase's."""
        before, began = self.site.taken(), time.monotonic()
        yield
        after = self.site.taken()
        self.seconds[phase] += time.monotonic() - began
        for name, now in after.items():
            self.cpu[phase, name] += now.cpu - before[name].cpu

    def share(self, phase: str, name: str) -> float:
        """Return the share of a core that a process took."""
        return self.cpu[phase, name] / self.seconds[phase]

    def rows(self) -> list[Row]:
        """List shares of a core: the leader's, and that of a relay on average."""
        relays = self.site.names[1:]
        return [
            {
                "phase": phase,
                "seconds": round(seconds, 1),
                "leader": round(self.share(phase, "leader"), 4),
                "a_relay": round(mean(self.share(phase, name) for name in relays), 4),
                "cpu_s_of_the_relays": round(sum(self.cpu[phase, name] for name in relays), 2),
            }
            for phase, seconds in self.seconds.items()
        ]


@dataclass(frozen=True, slots=True)
class Round:
    """One experiment: when it was armed and halted, and what the processes of edges saw."""

    experiment: str
    armed_at: float
    halted_at: float
    reports: list[Mapping[str, Any]]

    def heard(self, what: str, since: float) -> list[float]:
        """Return how long after ``since`` each edge knew: that it is armed, or over."""
        times = [at for each in self.reports for at in each[what].get(self.experiment, [])]
        return sorted(at - since for at in times)

    @property
    def rule(self) -> Rule:
        """The rule as edges have it, with all members."""
        told = next(each["rules"][self.experiment] for each in self.reports)
        return Rule.from_json({**told, "members": MEMBERS})

    @property
    def arrivals(self) -> list[Arrival]:
        """Devices in either arm that came while it was armed, in order."""
        rule = self.rule
        return sorted(
            (at, device, became)
            for each in self.reports
            for at, device, became in each["arrivals"]
            if self.armed_at <= at < self.halted_at and rule.arm_of(device)
        )


def alone(rule: Rule, arrivals: Iterable[Arrival]) -> int:
    """Count arrivals until a single edge, with all of the allowance, has spent it."""
    allowances, passed = Allowances(), 0
    allowances.renew([rule])
    for _, device, _ in arrivals:
        passed += 1
        arm = rule.arm_of(device)
        if arm is not None:
            allowances.admit(rule.experiment, arm, mark_of(device))
        if allowances.report()[rule.experiment].treatment == rule.members:
            break
    return passed


def together(arrivals: Iterable[Arrival], members: int) -> tuple[int, int]:
    """Count arrivals until so many members were enrolled at whatever edge, and these members."""
    passed = enrolled = 0
    for _, _, became in arrivals:
        passed += 1
        enrolled += became == "treatment"
        if enrolled == members:
            break
    return passed, enrolled


def play(site: Site, edges: Fleets, meter: Meter, size: Size) -> Round:
    """Arm an experiment, let devices come, halt."""
    site.send(30)  # its requests must have gone well of late
    time.sleep(2.0)
    asked = {"request_class": CLASS, "hypothesis": [f"refused@{POINT}"], "members": MEMBERS}
    asked |= {"admission": "all", "settle": 1.0, "follow": 0.0, "window": 600.0}
    with meter.during("armed, the first seconds"):
        campaign = site.ask("POST", "/experiments", asked)["id"]
        time.sleep(CHANGE_SECONDS)
    until(lambda: _newest(site)["state"] in {"armed", "observing"}, "it is armed")
    with meter.during("armed"):
        time.sleep(size.armed)
    halted_at = time.time()
    with meter.during("halted, the first seconds"):
        site.ask("POST", "/halt", {"reason": "the round is over"})
        time.sleep(CHANGE_SECONDS)
    with meter.during("halted"):
        time.sleep(HEARD_SECONDS - CHANGE_SECONDS)
    until(lambda: _newest(site)["ended_at"] is not None, "it has ended")
    newest = _newest(site)
    site.ask("POST", f"/campaigns/{campaign}/stop")  # or it would try the same again
    site.ask("POST", "/resume")
    return Round(newest["id"], newest["armed_at"], halted_at, edges.ask("report"))


def _all_know(edges: Fleets, size: Size) -> bool:
    """Return whether all edges know the rules. Raises RuntimeError where most are refused."""
    counted = edges.ask("count")
    refused = sum((Counter(each["refused"]) for each in counted), Counter[str]())
    if refused.total() > size.edges:
        raise RuntimeError(f"edges are refused: {dict(refused)}")
    know: int = sum(each["know"] for each in counted)
    return know == size.edges


def _newest(site: Site) -> Any:
    return site.ask("GET", "/experiments?limit=1")["items"][0]


def measured(size: Size) -> tuple[dict[str, list[Row]], dict[str, Target]]:
    """Measure everything."""
    with running(size.relays) as site:
        empty = site.taken()
        with fleets(site, size) as edges:
            meter = Meter(site)
            with meter.during("streams are opened"):
                until(lambda: _all_know(edges, size), "all edges know the rules")
            full = site.taken()
            with meter.during("idle"):
                time.sleep(size.idle)
            edges.tell("arrive")
            rounds = [play(site, edges, meter, size) for _ in range(size.rounds)]
            load = os.getloadavg()[0]
    changes, spent, asks = _changes(rounds), _spent(rounds), _asks(rounds)
    grown = sum(full[name].memory - empty[name].memory for name in site.names[1:])
    relay: Row = {
        "edges": size.edges,
        "relays": size.relays,
        "kib_of_a_relay_per_edge": round(grown / size.edges / 1024, 1),
        "load_of_the_machine": round(load, 1),
    }
    tables: dict[str, list[Row]] = {
        "changes": changes,
        "shares of a core": meter.rows(),
        "arrivals": spent,
        "asks": [asks],
        "edges": [relay],
        "refused": [{"what": what, "times": n} for what, n in _refused(rounds).items()],
    }
    return tables, {**_reach(changes, size), **_leads(meter), **_spends(spent, rounds)}


def _changes(rounds: Iterable[Round]) -> list[Row]:
    rows: list[Row] = []
    for number, each in enumerate(rounds, 1):
        for what, kept, since in (
            ("armed", "known", each.armed_at),
            ("halted", "gone", each.halted_at),
        ):
            times = each.heard(kept, since)
            rows.append(
                {
                    "round": number,
                    "change": what,
                    "edges": len(times),
                    "p50_s": round(_quantile(times, 0.5), 3),
                    "p99_s": round(_quantile(times, 0.99), 3),
                    "max_s": round(_quantile(times, 1.0), 3),
                }
            )
    return rows


def _spent(rounds: Iterable[Round]) -> list[Row]:
    rows: list[Row] = []
    for number, each in enumerate(rounds, 1):
        arrivals, rule = each.arrivals, each.rule
        passed, enrolled = together(arrivals, MEMBERS)
        single = alone(rule, arrivals)
        became = Counter(what or "not known" for _, _, what in arrivals[:passed])
        rows.append(
            {
                "round": number,
                "members": enrolled,
                "arrivals": passed,
                "one_edge": single,
                "ratio": round(passed / max(1, single), 3),
                "in_control": became["control"],
                "came_before_it_was_known": became["not known"],
                "late_or_paused": became["late"] + became["paused"],
                "others": sum(became[w] for w in ("refused", "stale", "failed", "no lease")),
            }
        )
    return rows


def _asks(rounds: Sequence[Round]) -> Row:
    took = sorted(one for each in rounds for told in each.reports for one in told["asks"])
    late, paused = (sum(told[kind] for told in rounds[-1].reports) for kind in ("late", "paused"))
    return {
        "answered": len(took),
        "p50_ms": round(1e3 * _quantile(took, 0.5), 2),
        "p99_ms": round(1e3 * _quantile(took, 0.99), 2),
        f"later_than_{1e3 * ASK_SECONDS:.0f}_ms": late,
        "share_later": round(late / max(1, late + len(took)), 4),
        "not_asked_after_a_late_one": paused,
        "polls": sum(told["polls"] for told in rounds[-1].reports),
    }


def _refused(rounds: Sequence[Round]) -> Counter[str]:
    return sum((Counter(told["refused"]) for told in rounds[-1].reports), Counter[str]())


def _quantile(values: Sequence[float], share: float) -> float:
    """Return the least of sorted values that so many of them do not exceed; 0 where there are
    none."""
    return values[max(0, round(share * len(values)) - 1)] if values else 0.0


def _reach(changes: Iterable[Row], size: Size) -> dict[str, Target]:
    found: dict[str, Target] = {}
    for what in ("armed", "halted"):
        rows = [row for row in changes if row["change"] == what]
        worst = max(float(str(row["max_s"])) for row in rows)
        least = min(int(str(row["edges"])) for row in rows)
        found[f"seconds until the last edge knows: {what}"] = at_most(worst, KNOWN_SECONDS)
        found[f"edges that know: {what}"] = at_least(least, size.edges)
    return found


def _leads(meter: Meter) -> dict[str, Target]:
    return {
        f"the leader's share of a core: {phase}": at_most(
            round(meter.share(phase, "leader"), 4), LEADER_SHARE
        )
        for phase in meter.seconds
        if phase != "streams are opened"
    }


def _spends(spent: Iterable[Row], rounds: Sequence[Round]) -> dict[str, Target]:
    ratios = [float(str(row["ratio"])) for row in spent]
    members = [sum(became == "treatment" for _, _, became in each.arrivals) for each in rounds]
    return {
        "arrivals until all members are spent, of one edge's": at_most(max(ratios), ARRIVALS),
        "members enrolled, at least": at_least(min(members), MEMBERS),
        "members enrolled, at most": at_most(max(members), MEMBERS),
        "refused": at_most(_refused(rounds).total(), 0),
    }


def main() -> int:
    """Measure and say; 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.edges")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    for name, default in Size.__dataclass_fields__.items():
        parser.add_argument(f"--{name}", type=type(default.default), default=default.default)
    given = vars(parser.parse_args())
    as_json = given.pop("json")
    tables, targets = measured(Size(**given))
    return 0 if say(tables, targets, as_json=as_json) else 1


if __name__ == "__main__":
    sys.exit(main())
