"""What PostgreSQL says in a bad state, really and injected: the same to its caller (psycopg)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

import pytest
import sqlalchemy
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from tests.fit.clients.contract import Requests
from tests.fit.clients.seen_of_kinds import BY_THEMSELVES
from tests.fit.clients.servers import postgresql_running

pytestmark = [
    pytest.mark.servers,
    pytest.mark.usefixtures("own_spans"),
]

CLIENT: Final = "SQLAlchemy, psycopg"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A database with one table of two rows."""
    with postgresql_running() as server:
        yield server.url(server.create())


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("create table if not exists marks (id int primary key, n int)"))
        connection.execute(text("insert into marks values (1, 0), (2, 0) on conflict do nothing"))
    yield engine
    engine.dispose()


UPDATE = text("update marks set n = n + 1 where id = :id")


class Seen(NamedTuple):
    """What a caller sees: SQLAlchemy's exception, the driver's, its state and first line, whether
    the connection is gone, and what becomes of the next statement of the transaction."""

    kind: str
    driver: str
    state: str | None
    said: str
    gone: bool
    then: str | None


def seen(connection: Connection, call: Callable[[], object]) -> Seen:
    try:
        call()
    except DBAPIError as error:
        original = error.orig
        assert original is not None
        then = None
        if not error.connection_invalidated:
            try:
                connection.execute(text("select 1"))
            except DBAPIError as next_error:
                then = type(next_error.orig).__name__
        return Seen(
            type(error).__name__,
            f"{type(original).__module__}.{type(original).__name__}",
            getattr(original, "sqlstate", None),
            str(original).splitlines()[0],
            error.connection_invalidated,
            then,
        )
    raise AssertionError("it went well")


def really(engine: Engine, kind: str) -> Seen:
    """Bring it about with a second session, or by the server's settings."""
    with engine.connect() as ours, engine.connect() as other:

        def update() -> object:
            return ours.execute(UPDATE, {"id": 1})

        if kind == "sql:readonly":
            ours.execute(text("set transaction read only"))
        elif kind == "sql:serialization":
            ours.execution_options(isolation_level="REPEATABLE READ")
            ours.execute(text("select * from marks"))
            other.execute(UPDATE, {"id": 1})
            other.commit()
        elif kind == "sql:lost":
            number = ours.scalar(text("select pg_backend_pid()"))
            other.execute(text("select pg_terminate_backend(:pid, 5000)"), {"pid": number})
        else:
            return _deadlock(ours, other)
        return seen(ours, update)


def _deadlock(ours: Connection, other: Connection) -> Seen:
    ours.execute(text("set local deadlock_timeout = '50ms'"))
    other.execute(text("set local deadlock_timeout = '60s'"))  # so it is ours that is ended
    ours.execute(UPDATE, {"id": 2})
    other.execute(UPDATE, {"id": 1})

    def wait() -> None:
        with suppress(DBAPIError):
            other.execute(UPDATE, {"id": 2})

    waiting = threading.Thread(target=wait)
    waiting.start()
    found = seen(ours, lambda: ours.execute(UPDATE, {"id": 1}))
    ours.rollback()
    waiting.join()
    return found


@pytest.mark.parametrize(("client", "kind"), [(CLIENT, kind) for kind in BY_THEMSELVES[CLIENT]])
def test_a_caller_sees_what_it_really_sees(
    requests_made: Requests, engine: Engine, client: str, kind: str
) -> None:
    real = really(engine, kind)

    point = f"api>db:UPDATE:{engine.url.database}/marks"
    with requests_made.request(f"{kind}@{point}"), engine.connect() as connection:
        injected = seen(connection, lambda: connection.execute(UPDATE, {"id": 1}))

    assert injected == real
    assert f"{injected.kind} {injected.driver.rpartition('.')[2]}" == BY_THEMSELVES[client][kind]
    assert requests_made.lineage().fired == {f"{kind}@{point}"}
    with engine.connect() as connection:  # the pool has a connection that is well
        connection.execute(UPDATE, {"id": 1})


@pytest.mark.parametrize("kind", ["sql:deadlock", "sql:lost"])
def test_in_control_the_statement_is_executed(
    requests_made: Requests, engine: Engine, kind: str
) -> None:
    point = f"api>db:UPDATE:{engine.url.database}/marks"
    with requests_made.request(f"{kind}@{point}", arm="control"), engine.connect() as connection:
        assert connection.execute(UPDATE, {"id": 1}).rowcount == 1
    assert requests_made.lineage().would_fire == {f"{kind}@{point}"}
