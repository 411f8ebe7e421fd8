"""The leader of the whole stack is killed, and another one leads: ``make soak-stack`` in short."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deploy.stack.topology import missing
from soak.kills import Plan
from soak.stack_kills import assault

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def test_when_a_leader_is_killed_everything_is_counted_once(tmp_path: Path) -> None:
    if absent := missing():
        if os.environ.get("CI"):
            pytest.fail("\n".join(absent))
        pytest.skip("\n".join(absent))
    # Given a campaign on the whole stack, when the scheduler that leads is killed
    plan = Plan(kills=1, life=(0.5, 4.0), treated_first=True)
    result = assault(tmp_path, ["leader"], plan, rate=30.0, finish=False)
    # Then leases have ended in time, and what Kafka holds is counted, each request once
    assert not result.wrong, "\n".join(result.wrong)
    assert [kill.aim for kill in result.victims.killed] == ["leader"]
    assert result.count.undisturbed > 100
    assert result.count.in_kafka > result.count.undisturbed, "no experiment has treated anybody"
