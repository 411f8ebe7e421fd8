"""The checks of the siege complain of what they are there for."""

from __future__ import annotations

from dataclasses import replace

from soak import halt_checks as checks
from soak.halt_checks import Round
from soak.treated import Treated

ROUND = Round("a flood", 100.0, 110.0, 0.1, 114.0, 200, stepped=100.0)
LEASE = 3.0


def at(*times: float) -> list[Treated]:
    return [Treated("e1", f"d{number}", each, None) for number, each in enumerate(times)]


def test_who_stamps_on_after_a_halt_is_seen() -> None:
    assert not list(checks.halts_take_effect([ROUND], at(109.0, 111.4, 115.0)))
    assert list(checks.halts_take_effect([ROUND], at(109.0, 111.6)))
    assert checks.latest_stamp(ROUND, at(109.0, 110.5, 115.0)) == 0.5


def test_a_halt_that_had_nothing_to_stop_is_seen() -> None:
    assert not list(checks.halts_had_something_to_stop([ROUND], at(109.0)))
    assert list(checks.halts_had_something_to_stop([ROUND], at(101.0, 111.0)))


def test_what_a_step_of_the_clock_has_not_disarmed_is_seen() -> None:
    assert not list(checks.steps_disarm([ROUND], at(99.0, 104.5), LEASE))
    assert list(checks.steps_disarm([ROUND], at(99.0, 105.5), LEASE))
    # What began afterwards may go on, and what no step was about
    assert not list(checks.steps_disarm([ROUND], at(105.0), LEASE))
    assert not list(checks.steps_disarm([replace(ROUND, stepped=0.0)], at(99.0, 105.5), LEASE))


def test_what_outlives_the_service_is_seen() -> None:
    assert not list(checks.nothing_outlives_a_kill(200.0, at(203.9), LEASE))
    assert list(checks.nothing_outlives_a_kill(200.0, at(204.1), LEASE))
    late = [Treated("e1", "d", 199.0, 204.1)]
    assert list(checks.nothing_outlives_a_kill(200.0, late, LEASE))


def test_stamps_are_read_from_notes() -> None:
    notes = '{"experiment": "e", "device": "d", "stamped": 1.5, "fired": null}\n'
    assert list(checks.stamps(notes * 2)) == [1.5, 1.5]
