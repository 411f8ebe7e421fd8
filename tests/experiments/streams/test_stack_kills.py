"""SIGKILL to every part of the whole stack, in turn. The long form is ``make soak-stack``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deploy.stack.topology import missing
from tests.experiments.crash.assault import Plan
from tests.experiments.streams.on_stack import assault
from tests.experiments.streams.victims import TARGETS

pytestmark = pytest.mark.long


@pytest.mark.timeout(900)
def test_whatever_part_is_killed_everything_is_counted_once(tmp_path: Path) -> None:
    if absent := missing():
        if os.environ.get("CI"):
            pytest.fail("\n".join(absent))
        pytest.skip("\n".join(absent))
    # Given a campaign on the whole stack
    plan = Plan(kills=2 * len(TARGETS), life=(0.5, 4.0), warm_up=5.0)
    # When an ingest worker, the broker, PostgreSQL, the leader, the Collector are killed, twice
    result = assault(tmp_path, TARGETS, plan, rate=30.0, finish=False)
    # Then leases have ended in time, and what Kafka holds is counted, each request once
    assert not result.wrong, "\n".join(result.wrong)
    assert {kill.aim for kill in result.victims.killed} == set(TARGETS)
    assert result.count.undisturbed > 500
    assert result.count.in_kafka > result.count.undisturbed, "no experiment has treated anybody"
