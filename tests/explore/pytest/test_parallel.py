"""Runs abreast: whichever ends first, the same is found as with one run after the other."""

from __future__ import annotations

import random
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.campaign.exploration import Plan
from ldfi.experiments.domain.campaign.result import Hypothesis
from ldfi.explore.pytest.loop import explore
from ldfi.explore.pytest.marker import Bounds
from ldfi.explore.pytest.parallel import Abreast, Begun
from ldfi.explore.pytest.run import Execute, Run
from ldfi.fit.protocol.faults import Fault
from ldfi.testing.programs import Call
from tests.experiments.simulated import errors_of, failing_sets, working
from tests.explore.pytest.test_loop import (
    PAGE,
    found_by,
    running,
    simulated,
)


class Shuffled:
    """Several runs under way; which of them ends first is drawn."""

    def __init__(self, execute: Execute, most: int, drawn: random.Random) -> None:
        self.most = most
        self.together: list[frozenset[Hypothesis]] = []
        """What was under way together, each time that one began."""
        self._execute = execute
        self._drawn = drawn
        self._under_way: list[Begun] = []

    def begin(self, begun: Begun) -> None:
        self._under_way.append(begun)
        hypotheses = [each.plan.hypothesis for each in self._under_way]
        assert len(set(hypotheses)) == len(hypotheses) <= self.most
        self.together.append(frozenset(hypotheses))

    def ended(self) -> tuple[Begun, Run]:
        first = self._under_way.pop(self._drawn.randrange(len(self._under_way)))
        return first, self._execute(first.faults)


@given(
    working(points=6),
    st.integers(0, 3),
    st.integers(1, 3),
    st.integers(2, 5),
    st.randoms(use_true_random=False),
)
def test_in_whatever_order_runs_end_the_findings_are_the_minimal_failing_sets(
    program: Call, seed: int, size: int, most: int, drawn: random.Random
) -> None:
    bounds, execute = Bounds(max_size=size, seed=seed), running(program)
    making = Shuffled(execute, most, drawn)

    explored = explore("t", execute, bounds, making=making)

    in_turn = explore("t", execute, bounds)
    assert (
        found_by(explored) == found_by(in_turn) == failing_sets(program, errors_of(program), size)
    )
    assert explored.verdict == in_turn.verdict
    assert all(finding.confirmed for finding in explored.findings)
    assert explored.open == 0
    assert len(making.together) == len(explored.records)


@given(working(points=5), st.integers(2, 4), st.randoms(use_true_random=False))
def test_a_failure_by_chance_is_no_finding_abreast_either(
    program: Call, most: int, drawn: random.Random
) -> None:
    left = [1]

    def once(faults: tuple[Fault, ...]) -> Run:
        run = simulated(program, frozenset(map(str, faults)))
        if faults and left and drawn.random() < 0.2:
            left.pop()
            return replace(run, passed=False, error="by chance")
        return run

    explored = explore("t", once, Bounds(), making=Shuffled(once, most, drawn))

    assert found_by(explored) == failing_sets(program, errors_of(program), 2)


def test_more_than_one_is_under_way_where_there_is_something_to_try() -> None:
    making = Shuffled(running(PAGE), 2, random.Random(0))

    explore("t", running(PAGE), Bounds(max_size=3), making=making)

    assert max(map(len, making.together)) == 2


def test_runs_abreast_are_made_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=60)

    def execute(faults: tuple[Fault, ...]) -> Run:
        both.wait()
        return simulated(PAGE, frozenset(map(str, faults)))

    with Abreast(execute, 2) as abreast:
        for point in ("ratings", "layout"):
            faults = (Fault(point, "error"),)
            abreast.begin(Begun(Plan(frozenset({str(faults[0])}), "explore"), faults))
        ended = dict(abreast.ended() for _ in range(2))

    good = {begun.faults[0].point: run.passed for begun, run in ended.items()}
    assert good == {"ratings": True, "layout": False}


def test_what_a_run_raises_is_raised_to_whoever_waits() -> None:
    def execute(_: tuple[Fault, ...]) -> Run:
        raise OSError("no such command")

    with Abreast(execute, 1) as abreast:
        abreast.begin(Begun(Plan(frozenset({"error@ratings"}), "explore"), ()))
        with pytest.raises(OSError, match="no such command"):
            abreast.ended()
