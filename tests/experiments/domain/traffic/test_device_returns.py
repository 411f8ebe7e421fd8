"""How soon devices come again is learned, those that have not come yet taken into account."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.domain.traffic.device_returns import LONGEST, MARGIN, Returns

SECOND = 1_000_000_000


def told(gaps: list[float | None], until: float, spread: float = 10.0) -> Returns:
    """Devices that ask first within ``spread`` seconds, and once more after their gap."""
    rng, returns = random.Random(len(gaps)), Returns()
    asked = []
    for number, gap in enumerate(gaps):
        first = rng.uniform(0, spread)
        asked += [(each, f"d{number}") for each in (first, *([] if gap is None else [first + gap]))]
    for at, device in sorted([*asked, (until, "last")]):
        if at <= until:
            returns.add(device, int(at * SECOND))
    return returns


@given(st.lists(st.one_of(st.none(), st.floats(0.5, LONGEST - 5)), min_size=20, max_size=80))
def test_nearly_all_that_come_again_have_within_a_stay(gaps: list[float | None]) -> None:
    """Once devices were watched for long enough; and it is not waited for the last of them."""
    stay = told(gaps, LONGEST + 20).stay()
    back = sorted(gap for gap in gaps if gap is not None)
    if len(back) < 0.05 * len(gaps):
        assert stay == 0.0
    elif back:
        assert stay is not None
        assert sum(gap <= stay for gap in back) >= 0.9 * len(back)
        assert stay <= max(MARGIN * back[-1] + 1, 1.0)


@pytest.mark.parametrize(
    ("gap", "until", "stay"),
    [
        (8.0, 9.5, None),  # too few have come to say that the others will
        (8.0, 40.0, 10.0),
        (40.0, 35.0, None),
        (40.0, 55.0, 50.0),
        (None, 50.0, None),
        (None, 61.0, 0.0),
        (120.0, 200.0, 0.0),  # later than anybody is watched
    ],
)
def test_it_is_said_as_soon_as_known(gap: float | None, until: float, stay: float | None) -> None:
    assert told([gap] * 60, until).stay() == stay


def test_habits_change() -> None:
    returns = Returns()
    for gap, ends in ((5, 1_000), (40, 2_600)):
        for second in range(ends - 900, ends, gap):
            for number in range(30):
                returns.add(f"d{number}", second * SECOND)
    assert returns.stay() == 50.0
