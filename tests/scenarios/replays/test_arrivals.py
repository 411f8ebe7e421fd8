"""When requests are due: held against the integral of the rate, for any profile."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.errors import InvalidReplay
from ldfi.scenarios.replays.arrivals import RateProfile, Stretch, arrivals, stretches

RATES = st.floats(0.5, 200.0)
SECONDS = st.floats(0.5, 20.0)


def due_by(made: tuple[Stretch, ...], at: float) -> float:
    """Integrate the rate until a time, by brute force."""
    total, begun = 0.0, 0.0
    for each in made:
        inside = min(max(at - begun, 0.0), each.seconds)
        slices = 200
        for number in range(slices):
            middle = (number + 0.5) * inside / slices
            rate = each.begin + (each.end - each.begin) * middle / each.seconds
            total += rate * inside / slices
        begun += each.seconds
    return total


@given(st.sampled_from(RateProfile), RATES, SECONDS, st.floats(0.0, 1.0))
def test_as_many_are_due_at_any_time_as_the_rate_says(
    profile: RateProfile, rate: float, seconds: float, part: float
) -> None:
    made = stretches(profile, rate, seconds)
    times = list(arrivals(made))
    assert all(earlier <= later for earlier, later in pairwise(times))
    assert all(0 <= at <= seconds * (1 + 1e-9) for at in times)
    at = part * seconds
    assert abs(sum(each <= at for each in times) - due_by(made, at)) <= 0.5 + 1e-6 + 1e-4 * rate


@given(st.sampled_from(RateProfile), RATES, SECONDS)
def test_no_profile_exceeds_its_rate(profile: RateProfile, rate: float, seconds: float) -> None:
    made = stretches(profile, rate, seconds)
    assert math.isclose(sum(each.seconds for each in made), seconds)
    assert max(max(each.begin, each.end) for each in made) <= rate * (1 + 1e-9)


@given(RATES, SECONDS)
def test_a_constant_rate_is_even(rate: float, seconds: float) -> None:
    times = list(arrivals(stretches(RateProfile.CONSTANT, rate, seconds)))
    assert all(math.isclose(b - a, 1 / rate, rel_tol=1e-6) for a, b in pairwise(times))


@pytest.mark.parametrize(("rate", "seconds"), [(0, 1), (1, 0), (-1, 1), (math.inf, 1), (1e9, 60)])
def test_what_makes_no_sense_is_refused(rate: float, seconds: float) -> None:
    with pytest.raises(InvalidReplay):
        stretches(RateProfile.CONSTANT, rate, seconds)
