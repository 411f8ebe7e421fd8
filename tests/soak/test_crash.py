"""SIGKILL to the service at random instants breaks nothing it must hold: ``make soak`` in short."""

from __future__ import annotations

from pathlib import Path

import pytest

from soak.kills import Plan
from soak.synthetic import assault
from soak.treated import noted

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PATHS = ("/boot", "/store")


def test_nothing_breaks_when_the_service_is_killed(tmp_path: Path) -> None:
    # Given a service that is killed twice, and then left alone until its campaign has ended
    plan = Plan(kills=2, life=(0.3, 3.0))
    attack = assault(f"sqlite:///{tmp_path / 'ldfi.sqlite3'}", tmp_path, plan, paths=PATHS)
    # Then every check holds, and all that is planted was found
    assert not attack.wrong, "\n".join(attack.wrong)
    assert len(attack.kills) >= 2
    assert noted(attack.notes), "nobody was treated: the test has shown nothing"


def test_a_budget_holds_across_crashes(tmp_path: Path) -> None:
    # Given a budget that some experiments use up, since every crash costs what was reserved
    plan, url = Plan(kills=2, life=(2.0, 5.0)), f"sqlite:///{tmp_path / 'ldfi.sqlite3'}"
    # When the service is killed while it is being spent
    attack = assault(url, tmp_path, plan, paths=PATHS, hour=100, finish=False)
    # Then the witness has seen at most as many devices, and the service knows of each
    assert not attack.wrong, "\n".join(attack.wrong)
    treated = {(each.experiment, each.device) for each in noted(attack.notes)}
    assert 0 < len(treated) <= 100
