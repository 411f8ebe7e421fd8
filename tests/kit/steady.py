"""What makes each run of a test of the service alike; imported by the folders that need it.

Ids of experiments are alike in each run: which devices are treated is drawn by them, and no test
may pass or fail by luck; nor because the machine stood still for two seconds.
"""

from __future__ import annotations

import random

import pytest

from ldfi.experiments.domain.campaign import solver_input
from tests.experiments.drawn import drawing

_DRAWN: dict[str, random.Random] = {}


@pytest.fixture(autouse=True)
def draws(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the test draw the same devices each time it runs, but no id twice: what runs under one
    name more than once goes on where it was, for it may use the same service."""
    drawn = _DRAWN.setdefault(request.node.nodeid, random.Random(request.node.nodeid))
    drawing(drawn, monkeypatch)


@pytest.fixture(autouse=True)
def time_to_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the solver so much time that what it proposes never hangs on how busy the machine is."""
    monkeypatch.setattr(solver_input, "SOLVER_SECONDS", 120.0)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have databases wait longer for whoever holds a lock or a transaction than a busy machine
    stands still: a test that waits for more than that has found something."""
    monkeypatch.setattr("ldfi.experiments.store.database._PATIENCE", 60)
