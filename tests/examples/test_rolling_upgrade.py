"""The example of a rolling upgrade, run as its page says, with real processes (half a minute)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

EXAMPLE = Path(__file__).parents[2] / "examples" / "rolling-upgrade"


@pytest.mark.timeout(300)
def test_three_replicas_are_upgraded_one_by_one_and_never_two_at_once() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "upgrade.py")],
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

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
