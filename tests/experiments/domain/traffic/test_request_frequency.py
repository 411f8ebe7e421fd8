"""How often devices ask: who asks seldom beside others, and hardly anybody where all are alike."""

from __future__ import annotations

import random

import pytest

from ldfi.experiments.domain.traffic.request_frequency import HORIZON, REMEMBERED, Frequency


@pytest.mark.parametrize("each", [0.5, 3, 4, 8, 20])
def test_where_devices_ask_alike_hardly_any_asks_seldom(each: float) -> None:
    rng, frequency = random.Random(4), Frequency()
    for _ in range(int(each * 500)):
        frequency.add(f"d{rng.randrange(500)}", 1.0)
    assert frequency.seldom()[1] < 0.1


def test_those_that_ask_seldom_are_counted_as_devices() -> None:
    frequency = Frequency()
    for number in range(900):
        frequency.add(f"often{number % 30}", 1.0)
    for number in range(100):
        frequency.add(f"seldom{number}", 1.0)
    most, share = frequency.seldom()
    assert 1 <= most < 30
    assert share == pytest.approx(100 / 130)


def test_what_is_old_or_too_much_is_forgotten() -> None:
    frequency = Frequency()
    assert [frequency.add("a", at) for at in (1.0, 2.0, HORIZON + 1)] == [0, 1, 2]
    assert frequency.add("a", 3 * HORIZON) == 1
    assert frequency.add("a", 5 * HORIZON) == 1
    for number in range(2 * REMEMBERED):
        frequency.add(f"d{number}", 5 * HORIZON)
    assert frequency.add("a", 5 * HORIZON) == 0
    assert Frequency().seldom() == (0.0, 0.0)
