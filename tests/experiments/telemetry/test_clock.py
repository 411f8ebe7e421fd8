"""Time within a process: it goes forward, whatever anybody does to the machine's clock."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.stack.missing import Missing
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.scheduler.rules_board import FRESH_SECONDS, RulesBoard
from ldfi.experiments.store import audit, halts
from ldfi.experiments.telemetry.clock import SLEW, STEP, Clock
from ldfi.fit.protocol.predicate import Predicate
from ldfi.fit.protocol.rules import Rule
from ldfi.testing.world import World
from soak import faketime


class Machine:
    """A machine with a clock that somebody sets."""

    def __init__(self, wall: float = 1_000_000.0) -> None:
        self.wall, self.steady = wall, 50.0
        self.clock = Clock(lambda: self.wall, lambda: self.steady)

    def pass_by(self, seconds: float, steps: float = 0.0) -> float:
        self.steady += seconds
        self.wall += seconds + steps
        return self.clock.now()


@given(
    st.lists(
        st.tuples(
            st.floats(0, 5),
            st.one_of(st.just(0.0), st.floats(-0.9, 0.9), st.floats(-9_000, 9_000)),
        ),
        max_size=40,
    )
)
def test_time_goes_forward_and_every_step_is_noticed(what: list[tuple[float, float]]) -> None:
    machine = Machine()
    before, steps = machine.clock.now(), 0
    for seconds, step in what:
        after = machine.pass_by(seconds, step)
        steps += abs(step) >= STEP + 1e-6
        if abs(abs(step) - STEP) < 1e-3:
            return  # too close to say
        # it never goes back, nor slower than it may; it is faster only for a step forward
        assert after - before >= seconds * (1 - SLEW) - 1e-6
        if step < STEP:
            assert after - before <= seconds * (1 + SLEW) + 1e-6
        else:
            assert after >= machine.wall - 1e-6 or after >= before + seconds * (1 - SLEW) - 1e-6
        before = after
    assert machine.clock.steps == steps
    # and in the end it agrees with the machine's again
    behind = machine.clock.now() - machine.wall
    machine.pass_by(abs(behind) / SLEW + 1)
    machine.pass_by(0.0)
    assert machine.clock.skew == pytest.approx(0, abs=1e-3)


def test_a_process_that_was_stopped_between_two_looks_takes_it_for_no_step() -> None:
    steady = iter([0.0, 0.0, 1.0, 31.0, 31.001, 32.0, 32.001])
    wall = iter([100.0, 101.0, 131.0, 132.0])  # the first is read before the process is stopped
    clock = Clock(lambda: next(wall), lambda: next(steady))
    assert clock.now() == pytest.approx(131, abs=0.1)
    assert clock.steps == 0


def _jumped(machine: Machine) -> float:
    return sum(by for _, by in machine.clock.jumps)


def test_time_that_was_jumped_over_is_kept_in_mind_for_a_day() -> None:
    machine = Machine()
    machine.pass_by(10, 3_600)
    assert _jumped(machine) == pytest.approx(3_600)
    machine.pass_by(5, -600)
    machine.pass_by(5, 600)  # back where it was: no time is jumped over
    assert _jumped(machine) == pytest.approx(3_600, abs=1)
    machine.pass_by(100_000)
    assert _jumped(machine) == 0


@pytest.mark.parametrize("step", [-120.0, 120.0, -86_400.0])
def test_a_step_disarms_is_on_record_and_holds_up_nothing(step: float) -> None:
    with World.in_memory() as world:
        # Given an experiment that is armed
        world.start(Settings(kinds=("error",), min_traffic=50, follow=0.0))
        world.until_armed()
        machine = Machine(world.now)
        world.engine._clock = machine.clock

        async def at_work() -> None:
            running = asyncio.create_task(world.engine.run())
            await asyncio.sleep(0.2)
            assert world.engine.board.armed()
            # When the machine's clock is set
            machine.wall += step
            deadline = time.monotonic() + 20
            while world.engine.board.armed() and time.monotonic() < deadline:
                await asyncio.sleep(0.01)
            # Then everything is disarmed, and the engine goes on
            assert not world.engine.board.armed()
            ticked = world.engine.ticked_at
            machine.steady += 1.0
            machine.wall += 1.0
            while world.engine.ticked_at == ticked and time.monotonic() < deadline:
                await asyncio.sleep(0.01)
            assert ticked < world.engine.ticked_at
            running.cancel()

        asyncio.run(at_work())
        with world.database.read() as session:
            entries = audit.after(session, 0, 1_000)
            # and after a restart, and elsewhere, it is known what has not passed
            jumped = halts.jumped(session, world.now + 130)
        [why] = [entry.why for entry in entries if entry.what == "disarmed"]
        assert why == f"the machine's clock was set by {step:+.0f} s"
        assert jumped == pytest.approx(max(0.0, step), abs=2)


def test_no_lease_without_a_step_of_the_engine_within_the_last_second() -> None:
    board = RulesBoard("e", 10.0)
    board.heard("edge", "", {}, 100.0)
    board.renew(110.0)
    board.tick(100.0)
    board.put(Rule("x", "x", Predicate.of([]), 0.1, 0.1, (), 0), 10, 100.0)
    assert board.lease("edge", 100.0 + FRESH_SECONDS)["lease_seconds"] == pytest.approx(9)
    assert board.lease("edge", 100.1 + FRESH_SECONDS)["lease_seconds"] == 0
    board.tick(102.0)
    assert board.lease("edge", 102.0)["lease_seconds"] == pytest.approx(8)


SEES = """
import select, time
from ldfi.experiments.telemetry.clock import CLOCK
print("ready", flush=True)
least, last, began = 9.0, CLOCK.now(), time.monotonic()
while CLOCK.steps < 2 and time.monotonic() - began < 30:
    select.select([], [], [], 0.005)  # libfaketime breaks sleeping
    now = CLOCK.now()
    least, last = min(least, now - last), now
print(CLOCK.steps, round(CLOCK.last_step), least > 0)
"""


@pytest.mark.servers
def test_a_real_process_whose_clock_is_set_back_and_forward(tmp_path: Path) -> None:
    offset = tmp_path / "offset"
    try:
        env = {**os.environ, **faketime.variables(offset)}
    except Missing as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    with subprocess.Popen(
        [sys.executable, "-c", SEES], env=env, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for said in ("-120", "-60"):
            time.sleep(0.5)
            offset.write_text(said)
        assert process.stdout.read() == "2 60 True\n"
