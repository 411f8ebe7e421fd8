"""The service is killed at random instants, and nothing it must hold is broken.

This is the short form, for every run of the tests; ``make soak`` runs the long one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiments.crash.assault import Plan
from tests.experiments.crash.synthetic import assault
from tests.experiments.crash.treated import noted

pytestmark = pytest.mark.long

SEED = 0
PATHS = ("/boot", "/play", "/store", "/top")


@pytest.mark.timeout(480)
def test_nothing_breaks_when_the_service_is_killed(database_url: str, tmp_path: Path) -> None:
    plan = Plan(kills=12, life=(0.3, 3.0), seed=SEED)

    attack = assault(database_url, tmp_path, plan, paths=PATHS)

    assert not attack.wrong, "\n".join(attack.wrong)
    assert len(attack.kills) >= 12
    assert noted(attack.notes), "nobody was treated: the test has shown nothing"
