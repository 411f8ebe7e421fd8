"""psycopg, psycopg2 and asyncpg used directly, against a real server: what callers see of faults is
what they see when PostgreSQL is killed, in recovery, dead-locked, shut down; and a point has one
name."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, suppress
from typing import Any, Final, NamedTuple

import asyncpg
import psycopg
import psycopg2
import psycopg2.extras
import pytest
from opentelemetry.instrumentation.asyncpg import AsyncPGInstrumentor
from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
from opentelemetry.instrumentation.psycopg2 import Psycopg2Instrumentor

from deploy.stack.postgresql import USER, Server
from ldfi.fit.clients import asyncpg as our_asyncpg
from ldfi.fit.clients import psycopg as our_psycopg
from ldfi.fit.clients import psycopg2 as our_psycopg2
from tests.fit.clients.contract import Requests, holds, seen_async, unharmed
from tests.fit.clients.seen_of_kinds import BY_THEMSELVES, SAME
from tests.fit.clients.servers import postgresql_running

pytestmark = pytest.mark.servers

UPDATE: Final = "update marks set n = n + 1 where id = 1"
PATIENCE: Final = 0.4


class Driver(NamedTuple):
    """One way to use PostgreSQL. A statement is given with a timeout, where there is such."""

    connect: Callable[[str, str], Awaitable[Any]]
    """(folder of the socket, database)"""
    execute: Callable[..., Awaitable[Any]]
    close: Callable[[Any], Awaitable[Any]]


async def _psycopg(folder: str, name: str) -> Any:
    return psycopg.connect(host=folder, user=USER, dbname=name, autocommit=True)


async def _psycopg_execute(connection: Any, statement: str, timeout: float | None = None) -> Any:
    return (await asyncio.to_thread(connection.execute, statement)).statusmessage


async def _psycopg_close(connection: Any) -> None:
    connection.close()


async def _psycopg_async(folder: str, name: str) -> Any:
    return await psycopg.AsyncConnection.connect(
        host=folder, user=USER, dbname=name, autocommit=True
    )


async def _psycopg_async_execute(
    connection: Any, statement: str, timeout: float | None = None
) -> Any:
    return (await connection.execute(statement)).statusmessage


async def _psycopg2(folder: str, name: str, factory: Any = None) -> Any:
    connection = psycopg2.connect(host=folder, user=USER, dbname=name, cursor_factory=factory)
    connection.autocommit = True
    return connection


async def _psycopg2_dicts(folder: str, name: str) -> Any:
    return await _psycopg2(folder, name, psycopg2.extras.DictCursor)


async def _psycopg2_execute(connection: Any, statement: str, timeout: float | None = None) -> Any:
    def execute() -> Any:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.statusmessage

    return await asyncio.to_thread(execute)


async def _asyncpg(folder: str, name: str) -> Any:
    return await asyncpg.connect(host=folder, user=USER, database=name)


async def _asyncpg_execute(connection: Any, statement: str, timeout: float | None = None) -> Any:
    return await connection.execute(statement, timeout=timeout)


async def _close(connection: Any) -> None:
    with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
        await connection.close()


DRIVERS: Final = {
    "psycopg": Driver(_psycopg, _psycopg_execute, _psycopg_close),
    "psycopg, asyncio": Driver(_psycopg_async, _psycopg_async_execute, _close),
    "psycopg2": Driver(_psycopg2, _psycopg2_execute, _psycopg_close),
    "psycopg2, DictCursor": Driver(_psycopg2_dicts, _psycopg2_execute, _psycopg_close),
    "asyncpg": Driver(_asyncpg, _asyncpg_execute, _close),
}


OURS: Final = {"psycopg": our_psycopg, "psycopg2": our_psycopg2, "asyncpg": our_asyncpg}


class Seen(NamedTuple):
    """What a caller sees: the exception, its state and first line, whether the connection is
    closed, and what becomes of the next statement."""

    kind: str
    state: str | None
    said: str
    closed: bool
    then: str


class Database(NamedTuple):
    server: Server
    name: str

    def connect(self) -> psycopg.Connection[Any]:
        """A session beside the caller's."""
        folder = str(self.server.folder)
        return psycopg.connect(host=folder, user=USER, dbname=self.name, autocommit=True)


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with postgresql_running(killable=True) as server:
        made = Database(server, server.create())
        with made.connect() as connection:
            connection.execute("create table marks (id int primary key, n int)")
            connection.execute("insert into marks values (1, 0), (2, 0)")
        yield made


async def look(driver: Driver, connection: Any, timeout: float | None = None) -> Seen:
    """What a caller sees of its statement."""
    try:
        await driver.execute(connection, UPDATE, timeout)
    except Exception as failure:  # noqa: BLE001 - whatever the caller sees
        then = "fine"
        try:
            await driver.execute(connection, "select 1")
        except Exception as following:  # noqa: BLE001
            then = f"{type(following).__name__}: {_line(following)}"
        closed = connection.is_closed() if hasattr(connection, "is_closed") else connection.closed
        state = getattr(failure, "sqlstate", getattr(failure, "pgcode", None))
        return Seen(type(failure).__name__, state, _line(failure), closed, then)
    raise AssertionError("it went well")


def _line(failure: BaseException) -> str:
    return (str(failure).splitlines() or [""])[0]


async def _within(database: Database, driver: Driver, call: Callable[[Any], Awaitable[Any]]) -> Any:
    connection = await driver.connect(str(database.server.folder), database.name)
    try:
        return await call(connection)
    finally:
        await driver.close(connection)


async def really(database: Database, driver: Driver, kind: str) -> Seen:
    """Bring it about, with other sessions or by ending the server."""
    with closing(database.connect()) as other, closing(database.connect()) as third:

        async def call(ours: Any) -> Seen:
            isolated = "isolation level repeatable read" if kind == "sql:serialization" else ""
            await driver.execute(ours, f"begin {isolated}")
            if kind == "sql:serialization":
                await driver.execute(ours, "select * from marks")
                other.execute(UPDATE)
                return await look(driver, ours)
            if kind == "sql:readonly":
                await driver.execute(ours, "set transaction read only")
                return await look(driver, ours)
            other.execute("begin")
            other.execute(UPDATE)
            if kind == "sql:deadlock":
                return await _deadlock(driver, ours, other, third)
            waiting = asyncio.create_task(look(driver, ours, PATIENCE))
            if kind == "timeout":
                return await waiting
            number = await _blocked(third)
            if kind == "sql:lost":
                third.execute("select pg_terminate_backend(%s)", (number,))
            else:
                os.kill(number, signal.SIGKILL)
            return await waiting

        return await _within(database, driver, call)  # type: ignore[no-any-return]


async def _blocked(third: Any) -> int:
    """The server's process that waits for a lock."""
    asked = "select pid from pg_stat_activity where wait_event_type = 'Lock'"
    while not (found := third.execute(asked).fetchone()):
        await asyncio.sleep(0.01)
    return int(found[0])


async def _deadlock(driver: Driver, ours: Any, other: Any, third: Any) -> Seen:
    await driver.execute(ours, "set local deadlock_timeout = '50ms'")
    other.execute("set local deadlock_timeout = '60s'")  # so it is ours that is ended
    await driver.execute(ours, "update marks set n = 1 where id = 2")
    waiting = asyncio.create_task(
        asyncio.to_thread(other.execute, "update marks set n = 2 where id = 2")
    )
    await _blocked(third)  # or ours looks for a deadlock before there is one
    found = await look(driver, ours)
    await waiting
    return found


def injected(
    requests: Requests, database: Database, driver: Driver, kind: str, *, arm: Any = "treatment"
) -> Any:
    """The same statement on a server that is well, under the fault."""

    async def call(connection: Any) -> Any:
        await driver.execute(connection, "begin")
        with requests.request(f"{kind}@{point(database)}", arm=arm, delay_ms=1_000):
            if arm == "control":
                return await driver.execute(connection, UPDATE, PATIENCE)
            return await look(driver, connection, PATIENCE)

    return asyncio.run(_within(database, driver, call))


def point(database: Database) -> str:
    return f"api>db:UPDATE:{database.name}/marks"


@pytest.fixture(autouse=True)
def instrumented(requests_made: Requests) -> Iterator[None]:
    untyped: Any = AsyncPGInstrumentor
    instrumentors = (untyped(), PsycopgInstrumentor(), Psycopg2Instrumentor())
    for each in instrumentors:
        each.instrument(tracer_provider=requests_made.provider)
    yield
    for each in instrumentors:
        each.uninstrument()


def expected(name: str) -> dict[str, str]:
    return BY_THEMSELVES[SAME.get(name, name)]


MATRIX: Final = [(name, kind) for name in DRIVERS for kind in expected(name)]


@pytest.mark.parametrize(("client", "kind"), MATRIX)
def test_a_caller_sees_what_it_really_sees(
    requests_made: Requests, database: Database, client: str, kind: str
) -> None:
    driver = DRIVERS[client]
    real = asyncio.run(really(database, driver, kind))
    database.server.ready()  # one whose process is killed ends all sessions, and starts anew

    seen = injected(requests_made, database, driver, kind)
    assert seen == real
    assert seen.kind == expected(client)[kind]
    assert requests_made.lineage().fired == {f"{kind}@{point(database)}"}
    assert point(database) in requests_made.lineage().called


@pytest.mark.parametrize("name", DRIVERS)
def test_in_control_the_statement_is_executed(
    requests_made: Requests, database: Database, name: str
) -> None:
    for kind in expected(name):
        done = injected(requests_made, database, DRIVERS[name], kind, arm="control")
        assert done == "UPDATE 1"
        assert requests_made.lineage().would_fire == {f"{kind}@{point(database)}"}


@pytest.mark.parametrize("name", DRIVERS)
def test_a_server_in_recovery_says_what_a_read_only_one_does(
    requests_made: Requests, database: Database, name: str
) -> None:
    server = database.server
    standby = server.folder / "data" / "standby.signal"
    _shut_down(server)
    standby.touch()
    server.start()
    server.ready()
    try:

        async def call(connection: Any) -> Seen:
            await DRIVERS[name].execute(connection, "begin")
            return await look(DRIVERS[name], connection)

        real = asyncio.run(_within(database, DRIVERS[name], call))
    finally:
        _shut_down(server)
        standby.unlink()
        server.start()
        server.ready()

    assert injected(requests_made, database, DRIVERS[name], "sql:readonly") == real


def _shut_down(server: Server) -> None:
    """Stop it cleanly, as a standby wants it."""
    assert server._process is not None
    server._process.send_signal(signal.SIGINT)
    server._process.wait(60)


@pytest.mark.parametrize("name", DRIVERS)
def test_one_name_at_both_ends(requests_made: Requests, database: Database, name: str) -> None:
    driver = DRIVERS[name]
    timed = {"timeout": PATIENCE} if name == "asyncpg" else {}

    async def call() -> Any:
        async def update(connection: Any) -> Any:
            return await driver.execute(connection, UPDATE, **timed)

        return await _within(database, driver, update)

    def failed(answer: object) -> bool:
        return isinstance(
            answer,
            psycopg.OperationalError
            | psycopg2.OperationalError
            | asyncpg.ConnectionDoesNotExistError,
        ) and "fault injected" in str(answer)

    late = (lambda answer: isinstance(answer, TimeoutError)) if timed else None
    holds(requests_made, point(database), seen_async(call), failed, late)
    ours = OURS[name.partition(",")[0]]
    unharmed(requests_made, ours, point(database), seen_async(call), failed)


def test_a_pool_of_asyncpg_has_the_same_point(requests_made: Requests, database: Database) -> None:
    async def call() -> list[Any]:
        folder = str(database.server.folder)
        async with asyncpg.create_pool(
            host=folder, user=USER, database=database.name, min_size=1, max_size=1
        ) as pool:
            found = []
            for method in ("execute", "fetch", "fetchrow", "fetchval"):
                with requests_made.request(f"sql:lost@{point(database)}"):
                    with pytest.raises(asyncpg.ConnectionDoesNotExistError):
                        await getattr(pool, method)(UPDATE)
                    found.append(requests_made.lineage().fired)
            return found

    fired = {f"sql:lost@{point(database)}"}
    assert asyncio.run(call()) == [fired] * 4
