"""The service is killed while it spends a budget of members, and no more of them are treated."""

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
def test_a_budget_holds_across_crashes(database_url: str, tmp_path: Path) -> None:
    # Given a budget that some experiments use up, since every crash costs what was reserved
    plan = Plan(kills=4, life=(1.0, 4.0), seed=SEED)
    # When the service is killed while it is being spent, and while nothing is left of it
    attack = assault(database_url, tmp_path, plan, paths=PATHS, hour=150, finish=False)
    # Then the witness has seen at most as many devices, and the service knows of each
    assert not attack.wrong, "\n".join(attack.wrong)
    treated = {(each.experiment, each.device) for each in noted(attack.notes)}
    assert 0 < len(treated) <= 150
