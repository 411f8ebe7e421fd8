"""The database by its short name."""

from __future__ import annotations

import pytest

from ldfi.experiments.store.database import Database


@pytest.fixture
def db(database: Database) -> Database:
    return database
