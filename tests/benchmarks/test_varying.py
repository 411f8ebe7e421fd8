"""Campaigns on classes whose requests vary find what is planted, and nothing else."""

from __future__ import annotations

import random

import pytest

from benchmarks.varying import Application, Site, explored


@pytest.mark.parametrize("seed", range(8))
def test_what_is_planted_is_found_though_few_requests_come_by(seed: int) -> None:
    rng = random.Random(f"test {seed}")
    application = Application.drawn(rng)
    found, experiments, unfit = explored(Site(application, rng))
    assert found == application.weaknesses()
    assert (unfit, experiments > 0) == ("", True)
