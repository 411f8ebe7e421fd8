"""SIGKILL, at random: ingest workers, the broker. Nothing is lost, nothing is counted twice.

The short form runs with all tests. ``LDFI_SOAK=30`` kills each so many times (`make soak-streams`).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deploy.stack.kafka import Broker
from tests.experiments.streams.assault import Assault

pytestmark = pytest.mark.long

SOAK = int(os.environ.get("LDFI_SOAK") or 0)


@pytest.mark.timeout(300 + 120 * SOAK)
def test_killed_workers_and_brokers_lose_nothing_and_double_nothing(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def say(line: str) -> None:
        with capsys.disabled():
            print(line, flush=True)  # noqa: T201

    kills = {"worker": SOAK or 2, "broker": SOAK or 1, "scheduler": SOAK or 1}
    assault = Assault(broker, tmp_path, kills, (1.0, 8.0) if SOAK else (1.0, 3.0))
    if SOAK:
        assault.say = say
    acknowledged, counted, told = assault.run()
    if SOAK:
        say(f"{acknowledged.total()} requests acknowledged; {told}")
    assert acknowledged.total() > 500
    assert counted == acknowledged, told
