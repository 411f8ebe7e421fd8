"""Databases for the tests: the same test runs on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.stack import postgresql
from deploy.stack.missing import Missing
from ldfi.experiments.store.database import Database


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[postgresql.Server]:
    """One server for all tests: skipped where there is none, but never in CI."""
    try:
        with postgresql.running() as server:
            yield server
    except Missing as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def postgresql_template(postgresql_server: postgresql.Server) -> str:
    """A database with tables, to copy: migrating once is enough."""
    name = postgresql_server.create()
    Database(postgresql_server.url(name)).close()
    return name


@pytest.fixture
def postgresql_url(postgresql_server: postgresql.Server, postgresql_template: str) -> Iterator[str]:
    """A PostgreSQL database of the test's own, with tables and nothing in them."""
    name = postgresql_server.create(postgresql_template)
    yield postgresql_server.url(name)
    postgresql_server.drop(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of the test's own, with nothing in it: once on SQLite, once on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ldfi.sqlite3'}"
    url: str = request.getfixturevalue("postgresql_url")
    return url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """The same, opened."""
    opened = Database(database_url)
    yield opened
    opened.close()
