"""A staging system for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.steady import draws, patience, time_to_solve  # noqa: F401
from tests.scenarios.staging import Staging, staging


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Iterator[Staging]:
    """A staging system with its weaknesses, which the test may repair."""
    with staging(monkeypatch) as running:
        yield running
