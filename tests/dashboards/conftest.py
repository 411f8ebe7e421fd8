"""A seeded database for each test: made once, then copied."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.dashboards.seeded import Seeded, seed


@pytest.fixture(scope="session")
def seeded_file(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Seeded]:
    """The file of a seeded database, to copy, and what is in it."""
    file = tmp_path_factory.mktemp("seeded") / "ldfi.sqlite3"
    return file, seed(f"sqlite:///{file}")


@pytest.fixture
def seeded(seeded_file: tuple[Path, Seeded]) -> Seeded:
    """What is in the database at ``seeded_url``."""
    return seeded_file[1]


@pytest.fixture
def seeded_url(seeded_file: tuple[Path, Seeded], tmp_path: Path) -> str:
    """A seeded database of the test's own."""
    copy = tmp_path / "ldfi.sqlite3"
    shutil.copy(seeded_file[0], copy)
    return f"sqlite:///{copy}"
