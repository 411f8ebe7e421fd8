"""Lives that tests of what is old begin with, on SQLite and on PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from sqlalchemy import make_url

from tests.experiments.store.lives import Again, Lives

On = Callable[[str], Lives]


@pytest.fixture(scope="session")
def lives(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> On:
    """The lives that were lived on a kind of database."""
    folder, names = tmp_path_factory.mktemp("lives"), count()

    def file() -> str:
        return f"sqlite:///{folder / f'{next(names)}.sqlite3'}"

    def copied(url: str) -> str:
        to = file()
        shutil.copy(make_url(url).database or "", make_url(to).database or "")
        return to

    kinds = {"sqlite": Lives(file, copied)}

    def on(kind: str) -> Lives:
        if kind not in kinds:
            server = request.getfixturevalue("postgresql_server")
            template = request.getfixturevalue("postgresql_template")
            kinds[kind] = Lives(
                lambda: server.url(server.create(template)),
                lambda url: server.url(server.create(make_url(url).database)),
            )
        return kinds[kind]

    return on


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)])
def again(request: pytest.FixtureRequest, lives: On) -> Iterator[Again]:
    """Ask for a life: once on SQLite, once on PostgreSQL."""
    with lives(request.param).begun() as asked:
        yield asked
