from __future__ import annotations

import random

import pytest

from ldfi.experiments.domain.traffic.report_share import Reporting


@pytest.mark.parametrize("heard", [0.2, 0.9, 1.0])
@pytest.mark.parametrize("late", [0.0, 5.0])
def test_the_share_that_is_told_is_hardly_less_than_it_is(heard: float, late: float) -> None:
    rng, reporting = random.Random(2), Reporting()
    assert reporting.share(0.0) is None
    events = [(at / 40, False) for at in range(8_000)]
    events += [(at + rng.uniform(0, late), True) for at, _ in events if rng.random() < heard]
    for at, is_report in sorted(events):
        (reporting.report if is_report else reporting.arrive)(at)
    share = reporting.copy().share(200.0)
    assert share is not None
    assert heard - 0.01 <= share <= heard + 0.12
    assert reporting.share(2_000.0) is None
