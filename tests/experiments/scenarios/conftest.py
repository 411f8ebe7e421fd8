"""A staging system for all tests of this folder: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.experiments.scenarios.staging import Staging, staging


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Staging]:
    """The demo application with all its weaknesses."""
    with staging(tmp_path_factory.mktemp("staging") / "log") as running:
        yield running


@pytest.fixture
def target(demo: Staging) -> Iterator[Staging]:
    """The same for one test, which may repair the licence."""
    yield demo
    demo.break_again("play-license")
