"""Databases for the tests: the same test runs on SQLite and on PostgreSQL. A plugin of pytest's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deploy.stack import postgresql
from deploy.stack.missing import Missing

if TYPE_CHECKING:
    from ldfi.experiments.store.database import Database


def _open(url: str) -> Database:
    """Open one. What it imports is heavy, and few tests need it."""
    from ldfi.experiments.store.database import Database

    return Database(url)


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
    _open(postgresql_server.url(name)).close()
    return name


@pytest.fixture
def postgresql_url(postgresql_server: postgresql.Server, postgresql_template: str) -> Iterator[str]:
    """A PostgreSQL database of the test's own, with tables and nothing in them."""
    name = postgresql_server.create(postgresql_template)
    yield postgresql_server.url(name)
    postgresql_server.drop(name)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with tables, to copy."""
    file = tmp_path_factory.mktemp("template") / "ldfi.sqlite3"
    _open(f"sqlite:///{file}").close()
    return file


@pytest.fixture(scope="module")
def in_memory() -> Iterator[Database]:
    """One in memory for all tests of a module; whoever needs it empty makes it so."""
    opened = _open("sqlite://")
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of the test's own, with tables and nothing in them: once on SQLite, once on
    PostgreSQL."""
    if request.param == "sqlite":
        file = shutil.copy2(request.getfixturevalue("sqlite_template"), tmp_path / "ldfi.sqlite3")
        return f"sqlite:///{file}"
    url: str = request.getfixturevalue("postgresql_url")
    return url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """The same, opened."""
    opened = _open(database_url)
    yield opened
    opened.close()
