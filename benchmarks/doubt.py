"""``python -m benchmarks.doubt [--runs N] [--json]``: how often a certificate is false.

Worlds with planted failing sets of one, two and three faults among optional calls and fallbacks
are explored by the service's own code, run after run, as a campaign on one class does it. What
is wrong is drawn at random: so many experiments that truly hurt are called ``tolerated`` (their
requests then look as if nobody had needed what failed), or each point loses all its spans of an
experiment.

A certificate is false when it is complete although a minimal failing set within the bounds is not
among its findings, or a finding hurts nobody. Beside each world stands the same one without doubt:
everything is believed the first time, but for harm, which is confirmed. The bounds are exact
(Clopper and Pearson, Biometrika 1934), at 95 %.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from statistics import mean

from benchmarks.honesty import upper
from benchmarks.outcome import Row, Target, at_least, at_most, say
from benchmarks.pieces import carried_out
from ldfi.experiments.domain.campaign.exploration import Exploration, Plan
from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.campaign.lifecycle import CONFIRMED, FindingState, next_state
from ldfi.experiments.domain.campaign.result import ExperimentResult, Hypothesis
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.observation import Observation, Outcome
from ldfi.lineage.blame import blame
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.span import Trace
from ldfi.testing.programs import Call, Run, Step

RUNS = 6
SEEN = 10
"""Requests seen before anything is tried."""
MOST = 400
"""Experiments in one run, at most: one that has no end would be a fault."""


@dataclass(frozen=True)
class Wrong:
    """What goes wrong: how many of those that hurt are ``tolerated``, how often a point's spans
    are lost, and how many of those that do not hurt are ``harmful``."""

    tolerated: float = 0.0
    lost: float = 0.0
    harmful: float = 0.0


CELLS = {
    "nothing wrong": Wrong(),
    "1 % wrongly tolerated": Wrong(tolerated=0.01),
    "5 % wrongly tolerated": Wrong(tolerated=0.05),
    "5 % of spans lost": Wrong(lost=0.05),
    "1 % wrong both ways": Wrong(tolerated=0.01, harmful=0.01),
}
FALSE = {
    "nothing wrong": 0.0,
    "1 % wrongly tolerated": 0.005,
    "5 % wrongly tolerated": 0.02,
    "5 % of spans lost": 0.02,
}
"""Shares of false certificates that are borne."""


@dataclass(frozen=True)
class World:
    """A program; the same where nothing hurts; and what hurts in truth, within the bounds."""

    strict: Call
    lenient: Call
    truth: frozenset[Hypothesis]

    @classmethod
    def drawn(cls, rng: random.Random) -> World:
        """Draw one: a handful of planted sets, and some dozen of optional calls and fallbacks."""
        sizes = [1] * rng.randint(1, 3) + [2] * rng.randint(1, 2) + [3] * rng.randint(0, 1)
        spare = [1] * rng.randint(6, 14) + [2] * rng.randint(1, 3)
        kinds = [(size, True) for size in sizes] + [(size, False) for size in spare]
        rng.shuffle(kinds)
        steps, truth, number = list[Step](), set[Hypothesis](), 0
        for size, needed in kinds:
            points = [f"p{number + each:02d}" for each in range(size)]
            number += size
            mode = ("critical" if size == 1 else "fallback") if needed else "optional"
            steps.append(Step(mode, tuple(map(Call, points))))
            if needed and size <= Settings().max_size:
                truth.add(frozenset(f"error@{point}" for point in points))
        lenient = tuple(replace(step, mode="optional") for step in steps)
        return cls(Call("root", tuple(steps)), Call("root", lenient), frozenset(truth))


class Believing(Exploration):
    """An exploration that doubts nothing but harm: what was survived once is survived."""

    def _judge(self, result: ExperimentResult) -> None:
        if result.succeeded:
            self._survived[result.injected] += 1
        super()._judge(result)

    def _repetition(self, *, outdated: bool = False) -> Plan | None:
        del outdated
        return None

    def _once_more(self) -> Plan | None:
        return None


@dataclass
class Lab:
    """One campaign on one class of one world."""

    world: World
    wrong: Wrong
    seed: int
    doubting: bool
    tried: list[int] = field(default_factory=list)
    """Experiments of each run."""
    findings: dict[Hypothesis, FindingState] = field(default_factory=dict)
    """What the service has on record."""

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.traffic = Traffic()
        for number in range(SEEN):
            seen = replace(self._served(frozenset())[0], trace_id=f"{number:032x}")
            self.traffic.observe(Observation(seen, Outcome(seen.trace_id, "d", "", True)), 0.0)
        knowledge = Knowledge("GET /", Settings(kinds=("error",), seed=self.seed), self.traffic)
        self.exploration = (Exploration if self.doubting else Believing)(knowledge)

    def run(self) -> None:
        """Run the campaign once more, to its end."""
        exploration = self.exploration
        exploration.begin_run([each for each, is_ in self.findings.items() if is_ in CONFIRMED])
        for tried in range(MOST):
            plan = exploration.plan()
            if plan is None:
                self.tried.append(tried)
                return
            for change in exploration.learn(self._result_of(plan)):
                self.findings[change.faults] = next_state(
                    self.findings.get(change.faults), change.state
                )
        raise AssertionError(f"no end after {MOST} experiments")

    def false(self, certificate: dict[str, object]) -> bool:
        """Return whether what the certificate finds is not what there is."""
        found: Iterable[list[str]] = certificate["findings"]  # type: ignore[assignment]
        return frozenset(map(frozenset, found)) != self.world.truth

    def _result_of(self, plan: Plan) -> ExperimentResult:
        faults = frozenset(map(str, self.exploration.knowledge.expand(plan.hypothesis)))
        lineage, good = self._served(faults)
        if not good and self.rng.random() < self.wrong.tolerated:
            lineage, good = self._served(faults, self.world.lenient)
        elif good and self.rng.random() < self.wrong.harmful:
            good = False
        if self.wrong.lost:
            lost = {p for p in sorted(lineage.called) if self.rng.random() < self.wrong.lost}
            lineage = self._served(faults, self.world.strict, frozenset(lost))[0]
        self.traffic.topology.learn(lineage)
        if not lineage.fired:
            return ExperimentResult(plan.hypothesis, succeeded=None, purpose=plan.purpose)
        if not good:
            return ExperimentResult(
                plan.hypothesis,
                succeeded=False,
                fired=lineage.fired,
                suspects=frozenset(blame(lineage.tree, self.traffic.usual_support())),
                purpose=plan.purpose,
            )
        return ExperimentResult(
            plan.hypothesis,
            succeeded=True,
            fired=lineage.fired,
            relied_on=lineage.relied_on,
            called=lineage.called,
            survived=lineage.survived,
            purpose=plan.purpose,
        )

    def _served(
        self, faults: Hypothesis, program: Call | None = None, lost: frozenset[str] = frozenset()
    ) -> tuple[Lineage, bool]:
        run = Run(faults).execute(program or self.world.strict)
        spans = [each for each in run.spans if each.operation.point not in lost]
        lineage = learn(Trace.of("0" * 32, spans))
        if lineage is None:
            raise AssertionError("these spans have a root")
        return lineage, run.good


@dataclass(frozen=True)
class Ended:
    """What a campaign came to after all its runs."""

    complete: bool
    false: bool
    unsettled: bool
    tried: tuple[int, ...]


def ended(world: World, wrong: Wrong, seed: int, *, doubting: bool) -> Ended:
    """Run a campaign on a world six times."""
    lab = Lab(world, wrong, seed, doubting)
    for _ in range(RUNS):
        lab.run()
    knowledge = lab.exploration.knowledge
    if doubting:
        certificate = knowledge.certificate()["certificate"]
        unsettled = bool(certificate["doubt"]["unsettled"])
    else:
        certificate, unsettled = knowledge.solver_input.explorer.certificate().data, False
    complete = bool(certificate["open_complete"]) and not certificate["open"]
    return Ended(complete, complete and lab.false(certificate), unsettled, tuple(lab.tried))


def both_ended(piece: tuple[str, int]) -> tuple[Ended, Ended]:
    """Explore one world, with doubt and without."""
    name, seed = piece
    world = World.drawn(random.Random(seed))
    return (
        ended(world, CELLS[name], seed, doubting=True),
        ended(world, CELLS[name], seed, doubting=False),
    )


def cell(name: str, doubting: list[Ended], believing: list[Ended]) -> Row:
    """Compare the campaigns of a cell, with doubt and without."""
    runs, false = len(doubting), sum(each.false for each in doubting)
    first, first_before = (mean(each.tried[0] for each in all_) for all_ in (doubting, believing))
    later, later_before = (
        mean(mean(each.tried[1:]) for each in all_) for all_ in (doubting, believing)
    )
    return {
        "wrong": name,
        "worlds": runs,
        "false": false / runs,
        "at most": upper(false, runs),
        "false without doubt": sum(each.false for each in believing) / runs,
        "complete": sum(each.complete for each in doubting) / runs,
        "complete but unsettled": sum(each.complete and each.unsettled for each in doubting),
        "experiments, first run": first,
        "times": first / first_before,
        "later runs": later,
        "times later": later / later_before,
    }


def main() -> int:
    """Print the table; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=60, help="worlds for each row")
    given = parser.parse_args()
    worlds = [(name, seed) for name in CELLS for seed in range(given.runs)]
    found: dict[str, tuple[list[Ended], list[Ended]]] = {name: ([], []) for name in CELLS}
    for (name, _), both in zip(worlds, carried_out(both_ended, worlds, "exploring"), strict=True):
        for one, kept in zip(both, found[name], strict=True):
            kept.append(one)
    rows = [cell(name, *both) for name, both in found.items()]
    return 0 if say({"after six runs": rows}, _targets(rows), as_json=given.json) else 1


def _targets(rows: list[Row]) -> dict[str, Target]:
    targets: dict[str, Target] = {}
    for row in rows:
        name = str(row["wrong"])
        if name in FALSE:
            targets[f"false: {name}"] = at_most(float(str(row["false"])), FALSE[name])
        targets[f"complete: {name}"] = at_least(float(str(row["complete"])), 0.95)
        unsettled = float(str(row["complete but unsettled"]))
        targets[f"complete but unsettled: {name}"] = at_most(unsettled, 0)
        targets[f"first run: {name}"] = at_most(float(str(row["times"])), 2.2)
        targets[f"later runs: {name}"] = at_most(float(str(row["times later"])), 1.3)
    return targets


if __name__ == "__main__":
    sys.exit(main())
