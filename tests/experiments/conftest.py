"""Databases for the tests: the same test runs on SQLite and on PostgreSQL.

And ids of experiments that are alike in each run of a test: which devices are treated is drawn by
them, and no test may pass or fail by luck; nor because the machine stood still for two seconds.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.stack import postgresql
from deploy.stack.missing import Missing
from ldfi.experiments.domain.campaign import fold
from ldfi.experiments.store.database import Database
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
    monkeypatch.setattr(fold, "SOLVER_SECONDS", 120.0)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have databases wait longer for whoever holds a lock or a transaction than a busy machine
    stands still: a test that waits for more than that has found something."""
    monkeypatch.setattr("ldfi.experiments.store.database._PATIENCE", 60)


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


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with tables, to copy."""
    file = tmp_path_factory.mktemp("template") / "ldfi.sqlite3"
    Database(f"sqlite:///{file}").close()
    return file


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
    opened = Database(database_url)
    yield opened
    opened.close()
