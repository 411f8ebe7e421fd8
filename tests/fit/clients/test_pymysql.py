"""PyMySQL, alone and under SQLAlchemy, against a real server, a MariaDB: what callers see of faults
is what they see when it is killed, dead-locked, read-only, behind a line that breaks or is silent.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pymysql
import pytest
import sqlalchemy
from opentelemetry.instrumentation.pymysql import PyMySQLInstrumentor
from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor
from sqlalchemy.exc import DBAPIError

from ldfi.fit.clients import pymysql as ours
from tests.fit.clients.contract import Requests, holds, seen, unharmed
from tests.fit.clients.dying import nobody
from tests.fit.clients.seen_of_kinds import BY_THEMSELVES
from tests.kit import needs

pytestmark = pytest.mark.servers

UPDATE: Final = "update marks set n = n + 1 where id = 1"
POINT: Final = "api>db:UPDATE:shop/marks"
PATIENCE: Final = 0.5


class MariaDB:
    """A server of our own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = needs.program("mariadbd")
        user = [] if os.geteuid() else ["--user=root"]
        self.words = ["--no-defaults", f"--datadir={folder / 'data'}", *user]
        install = [needs.program("mariadb-install-db"), *self.words, "--skip-test-db"]
        install.append("--auth-root-authentication-method=normal")
        subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
        with nobody() as port:
            self.port = port
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        where = [f"--port={self.port}", "--bind-address=127.0.0.1"]
        where += [f"--socket={self.folder / 'socket'}", f"--pid-file={self.folder / 'pid'}"]
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                [self.program, *self.words, *where], stdout=log, stderr=log
            )
        end = time.monotonic() + 60
        while True:
            try:
                self.connect(database=None).close()
                return
            except pymysql.OperationalError:
                said = (self.folder / "log").read_text()[-2000:]
                alive = self.process.poll() is None and time.monotonic() < end
                assert alive, f"MariaDB does not answer: {said}"
                time.sleep(0.05)

    def kill(self) -> None:
        """End it without a word."""
        self.process.kill()
        self.process.wait(30)

    def connect(self, database: str | None = "shop", **options: Any) -> Any:
        """A session."""
        at = {"host": "127.0.0.1", "port": self.port, "user": "root", **options}
        return pymysql.connect(database=database, autocommit=True, **at)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDB]:
    made = MariaDB(tmp_path_factory.mktemp("mariadb"))
    with closing(made.connect(database=None)) as connection, connection.cursor() as cursor:
        for statement in (
            "create database shop",
            "create table shop.marks (id int primary key, n int) engine = innodb",
            "insert into shop.marks values (1, 0), (2, 0), (3, 0), (4, 0)",
        ):
            cursor.execute(statement)
    yield made
    made.kill()


@pytest.fixture(autouse=True)
def instrumented(requests_made: Requests) -> Iterator[None]:
    instrumentors = PyMySQLInstrumentor(), SQLAlchemyInstrumentor()
    for each in instrumentors:
        each.instrument(tracer_provider=requests_made.provider)
    yield
    for each in instrumentors:
        each.uninstrument()


class Client(NamedTuple):
    """One way to use a server."""

    connect: Callable[..., Any]
    """(server, **options of PyMySQL)"""
    execute: Callable[[Any, str], Any]


def execute(connection: Any, statement: str = UPDATE) -> Any:
    with connection.cursor() as cursor:
        return cursor.execute(statement)


def _engine(server: MariaDB, port: int | None = None, **options: Any) -> Any:
    given = {name: each for name, each in options.items() if each is not None}
    return sqlalchemy.create_engine(
        f"mysql+pymysql://root@127.0.0.1:{port or server.port}/shop",
        isolation_level="AUTOCOMMIT",
        poolclass=sqlalchemy.NullPool,
        connect_args=given,
    ).connect()


CLIENTS: Final = {
    "PyMySQL": Client(MariaDB.connect, execute),
    "SQLAlchemy, PyMySQL": Client(
        _engine, lambda connection, words: connection.exec_driver_sql(words).rowcount
    ),
}


class Seen(NamedTuple):
    """What a caller sees: the exception, and what becomes of the next statement."""

    kind: str
    said: tuple[Any, ...]
    then: str


def look(client: Client, connection: Any) -> Seen:
    try:
        client.execute(connection, UPDATE)
    except Exception as failure:  # noqa: BLE001 - whatever the caller sees
        then = "fine"
        try:
            client.execute(connection, "select 1")
        except Exception as following:  # noqa: BLE001
            then = repr(following)
        said = failure.orig.args if isinstance(failure, DBAPIError) and failure.orig else ()
        return Seen(type(failure).__name__, said or failure.args, then)
    raise AssertionError("it went well")


@contextmanager
def line(server: MariaDB) -> Iterator[tuple[int, Callable[[], None]]]:
    """A line to the server, as a port, and what tears it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ends: list[socket.socket] = []

        def carry(source: socket.socket, target: socket.socket) -> None:
            with suppress(OSError):
                while data := source.recv(65536):
                    target.sendall(data)
                if source is ends[1]:  # the server is gone, and says so to the caller
                    target.shutdown(socket.SHUT_WR)

        def accept() -> None:
            with suppress(OSError):
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", server.port))
                ends.extend((near, far))
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=carry, args=pair, daemon=True).start()

        def tear() -> None:
            ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            ends[0].shutdown(socket.SHUT_RD)  # who reads from it lets go
            ends[0].close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield int(listener.getsockname()[1]), tear
        thread.join(10)
        for end in ends:
            end.close()


def _waiting(server: MariaDB, then: Callable[[], None]) -> threading.Thread:
    """Do this once a session waits for a lock."""

    def run() -> None:
        asked = "select count(*) from information_schema.innodb_trx where trx_state = 'LOCK WAIT'"
        with closing(server.connect()) as third, third.cursor() as cursor:
            end = time.monotonic() + 30
            while not (cursor.execute(asked) and cursor.fetchone()[0]):
                assert time.monotonic() < end, "nobody waits for a lock"
                time.sleep(0.02)
        then()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def really(server: MariaDB, client: Client, kind: str) -> Seen:
    """Bring it about."""
    if kind == "sql:readonly":
        with closing(client.connect(server)) as connection:
            client.execute(connection, "start transaction read only")
            return look(client, connection)
    with closing(server.connect()) as other, line(server) as (port, tear):
        execute(other, "begin")
        with other.cursor() as cursor:  # InnoDB ends who has done less
            cursor.executemany("update marks set n = n + 1 where id = %s", [[1], [3], [4]])
        patience = PATIENCE if kind == "timeout" else None
        connection = client.connect(server, port=port, read_timeout=patience)
        client.execute(connection, "begin")
        if kind == "sql:deadlock":
            client.execute(connection, "update marks set n = 1 where id = 2")
            thread = _waiting(server, lambda: execute(other, "update marks set n = 2 where id = 2"))
        else:
            does = {"sql:lost": server.kill, "reset": tear, "timeout": lambda: None}[kind]
            thread = _waiting(server, does)
        found = look(client, connection)
        thread.join(30)
        _let_go(connection)
    if kind == "sql:lost":
        server.start()
    return found


def _let_go(connection: Any) -> None:
    """Close it, whatever state it is in."""
    with suppress(pymysql.Error, DBAPIError):
        connection.close()


MATRIX: Final = [(client, kind) for client in CLIENTS for kind in BY_THEMSELVES[client]]


@pytest.mark.parametrize(("client", "kind"), MATRIX)
def test_what_a_caller_sees_is_what_it_sees_when_that_really_happens(
    requests_made: Requests, server: MariaDB, client: str, kind: str
) -> None:
    used = CLIENTS[client]
    real = really(server, used, kind)
    connection = used.connect(server, read_timeout=PATIENCE)
    used.execute(connection, "begin")
    with requests_made.request(f"{kind}@{POINT}", delay_ms=5_000):
        injected = look(used, connection)
    assert injected == real
    _let_go(connection)
    assert f"{injected.kind} {injected.said[0]}" == BY_THEMSELVES[client][kind]
    assert requests_made.lineage().fired == {f"{kind}@{POINT}"}
    with (
        closing(used.connect(server, read_timeout=PATIENCE)) as connection,
        requests_made.request(f"{kind}@{POINT}", arm="control", delay_ms=5_000),
    ):
        assert used.execute(connection, UPDATE) == 1
    assert requests_made.lineage().would_fire == {f"{kind}@{POINT}"}


def failed(answer: object) -> bool:
    return isinstance(answer, pymysql.OperationalError) and "fault injected" in str(answer)


def test_one_name_at_both_ends(requests_made: Requests, server: MariaDB) -> None:
    def call() -> Any:
        with closing(server.connect(read_timeout=PATIENCE)) as connection:
            try:
                return execute(connection)
            finally:
                connection._force_close()

    def late(answer: object) -> bool:
        return "timed out" in str(answer)

    holds(requests_made, POINT, seen(call), failed, late)
    unharmed(requests_made, ours, POINT, seen(call), lambda a: failed(a) or late(a))


def test_many_statements_of_one_call_pass_one_by_one(
    requests_made: Requests, server: MariaDB
) -> None:
    with (
        closing(server.connect()) as connection,
        connection.cursor() as cursor,
        requests_made.request(f"sql:deadlock:1@{POINT}"),
    ):
        with pytest.raises(pymysql.OperationalError, match="Deadlock"):
            cursor.executemany("update marks set n = %s where id = 2", [[1], [2]])
        assert cursor.executemany("update marks set n = %s where id = 2", [[7], [8]]) == 2


@pytest.mark.parametrize("database", [None, "20261128"])
def test_without_a_database_that_has_a_name_the_peer_is_the_kind_of_server(
    requests_made: Requests, server: MariaDB, database: str | None
) -> None:
    with closing(server.connect(database=None)) as connection:
        execute(connection, "create database if not exists `20261128`")
    point = "api>db:UPDATE:mysql/shop.marks"
    with closing(server.connect(database=database)) as connection:
        with requests_made.request():
            execute(connection, "update shop.marks set n = 1 where id = 2")
        assert requests_made.lineage().support == {point}
        with (
            requests_made.request(f"sql:lost@{point}"),
            pytest.raises(pymysql.OperationalError),
        ):
            execute(connection, "update shop.marks set n = 1 where id = 2")
