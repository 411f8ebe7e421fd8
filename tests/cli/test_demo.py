"""``ldfi demo``, all of it real: the service, the shop in its processes, and what is printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ldfi.cli import exits
from ldfi.cli.demo_view import WIDTH
from ldfi.cli.demo_worlds import SHOP

GONE_WITHIN = 60.0


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_demo_finds_what_is_planted_or_says_what_is_left() -> None:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("LDFI_")}
    done = subprocess.run(
        [sys.executable, "-m", "ldfi.cli", "demo", "--json"],
        env=ours,
        capture_output=True,
        text=True,
        timeout=SHOP.limit + GONE_WITHIN,
        check=False,
    )

    # One object, and that on the last line
    result = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    # Whatever the machine: nothing is found that is not there
    expected = {tuple(faults) for faults in result["expected"]}
    assert {tuple(faults) for faults in result["findings"]} <= expected
    # And all of it, where there was time
    if result["decided"]:
        assert done.returncode == exits.FINE, done.stderr
        assert "3 weaknesses found, exactly the 3 planted." in done.stderr
        assert "GET /home is lost when layout does not answer" in done.stderr
    else:
        assert done.returncode in {exits.FINE, exits.INCONCLUSIVE}, done.stderr
        assert "The time is over before all is decided." in done.stderr
    # Lines that a terminal has room for, without a word about the machine
    lines = [line for line in done.stderr.splitlines() if "/login?" not in line]
    assert max(map(len, lines)) <= WIDTH, done.stderr
    assert "machine" not in done.stderr
