"""The example of a rolling upgrade, run as its page says, with real processes (half a minute)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

EXAMPLE = Path(__file__).parents[2] / "examples" / "rolling-upgrade"


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLE / "upgrade.py"), *options],
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.timeout(300)
def test_three_replicas_are_upgraded_one_by_one_and_never_two_at_once() -> None:
    done = run()

    said = done.stdout
    assert done.returncode == 0, (said, done.stderr)
    gates = re.findall(r"gate --down (store-\d).*\n(Go|Stop)", said)
    assert gates == [
        *(("store-1", "Go"), ("store-3", "Stop")),
        *(("store-2", "Go"), ("store-1", "Stop")),
        *(("store-3", "Go"), ("store-2", "Stop")),
    ]
    assert "one more failure would hurt: shop>http:GET:store-2/records/*" in said
    assert "All three run release 2; 0 requests of users failed meanwhile." in said
    watched(said)


@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("redis-server") is None, reason="there is no redis-server")
def test_three_redis_nodes_are_restarted_one_by_one_and_never_two_at_once() -> None:
    done = run("--redis")

    said = done.stdout
    assert done.returncode == 0, (said, done.stderr)
    gates = re.findall(r"gate --down 127\.0\.0\.1:(\d+).*\n(Go|Stop)", said)
    assert [answer for _, answer in gates] == ["Go", "Stop"] * 3
    assert len({port for port, answer in gates if answer == "Go"}) == 3
    assert "All three are restarted; 0 requests of users failed meanwhile." in said
    watched(said)


def watched(said: str) -> None:
    """Nobody suffered in any of the three steps, and the load went on all the time."""
    assert said.count("The step is over, nobody suffered") == 3
    told = re.findall(r"^(before|meanwhile|afterwards) +(\d+) +0 ", said, re.M)
    assert [name for name, _ in told] == ["before", "meanwhile", "afterwards"]
    assert all(int(requests) > 50 for _, requests in told)
