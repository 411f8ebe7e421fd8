"""SIGKILL to the service at random instants breaks nothing it must hold: ``make soak`` in short."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from soak.kills import Plan
from soak.synthetic import assault
from soak.treated import noted

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PATHS = ("/boot", "/store")
WINDOW: Final = 20.0
"""Seconds: with one edge, enough for a machine that is busy with others (:mod:`soak.synthetic`)."""


def url(folder: Path) -> str:
    return f"sqlite:///{folder / 'ldfi.sqlite3'}"


def test_nothing_breaks_when_the_service_is_killed(tmp_path: Path) -> None:
    # Given a service that is killed twice, and then left alone until its campaign has ended
    plan = Plan(kills=2, life=(0.3, 3.0), treated_first=True)
    attack = assault(url(tmp_path), tmp_path, plan, paths=PATHS, edges=1, window=WINDOW)
    # Then every check holds, and all that is planted was found
    assert not attack.wrong, "\n".join(attack.wrong)
    assert len(attack.kills) >= 2


def test_a_budget_holds_across_crashes(tmp_path: Path) -> None:
    # Given a budget that some experiments use up, since every crash costs what was reserved
    plan = Plan(kills=2, life=(2.0, 5.0), treated_first=True)
    # When the service is killed while it is being spent
    attack = assault(
        url(tmp_path), tmp_path, plan, paths=PATHS, edges=1, window=WINDOW, hour=100, finish=False
    )
    # Then the witness has seen at most as many devices, and the service knows of each
    assert not attack.wrong, "\n".join(attack.wrong)
    treated = {(each.experiment, each.device) for each in noted(attack.notes)}
    assert 0 < len(treated) <= 100
