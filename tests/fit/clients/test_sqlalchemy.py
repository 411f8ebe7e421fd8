from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor
from opentelemetry.instrumentation.sqlalchemy.engine import EngineTracer
from sqlalchemy import event, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import OperationalError

from ldfi.fit.clients import sqlalchemy as ours
from tests.fit.clients.callers import NOBODY, look
from tests.fit.clients.contract import Requests, holds, seen, unharmed
from tests.fit.clients.dying import nobody, nowhere


@pytest.fixture(autouse=True)
def instrumented(requests_made: Requests) -> Iterator[None]:
    SQLAlchemyInstrumentor().instrument(tracer_provider=requests_made.provider)
    yield
    # It listens twice to an asynchronous engine, and cannot take the second listener out.
    EngineTracer._remove_event_listener_params.clear()
    SQLAlchemyInstrumentor().uninstrument()


@pytest.fixture
def url(tmp_path: Path) -> str:
    path = tmp_path / "records.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table marks (title text)")
    connection.close()
    return str(path)


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = sqlalchemy.create_engine(f"sqlite:///{url}")
    yield engine
    engine.dispose()


def at(requests_made: Requests, call: Callable[[], Any]) -> list[str]:
    """The points of a call, in order."""
    with requests_made.request():
        call()
    return sorted(requests_made.lineage().called)


def refused(answer: object) -> bool:
    return isinstance(answer, OperationalError) and isinstance(
        answer.orig, sqlite3.OperationalError
    )


SELECT = text("/* why */ select title from marks where title = :title")


def test_statements(requests_made: Requests, engine: Engine) -> None:
    with engine.connect() as connection:
        call = seen(lambda: connection.execute(SELECT, {"title": "x"}).all())
        (point,) = at(requests_made, call)

        assert point.startswith("api>db:SELECT:")
        assert point.endswith("records.db/marks")
        holds(requests_made, point, call, refused)


def test_many_at_once(requests_made: Requests, engine: Engine) -> None:
    insert = text("insert into marks values (:title)")
    with engine.connect() as connection:
        call = seen(lambda: connection.execute(insert, [{"title": "x"}, {"title": "y"}]).rowcount)
        (point,) = at(requests_made, call)

        assert point.endswith("records.db/marks")
        holds(requests_made, point, call, refused)


def test_connections(requests_made: Requests, engine: Engine) -> None:
    call = seen(lambda: engine.connect().close())
    (point,) = at(requests_made, call)

    assert point.startswith("api>db:connect:")
    holds(requests_made, point, call, refused)


@pytest.mark.parametrize("driver", ["postgresql+psycopg", "mysql+pymysql"])
def test_a_name_that_does_not_resolve_and_an_address_that_needs_none(
    requests_made: Requests, driver: str
) -> None:
    found = {}
    for host in (NOBODY, "127.0.0.1"):
        with nowhere() as port:
            engine = sqlalchemy.create_engine(f"{driver}://kim@{host}:{port}/records")
            found[host] = [look(engine.connect)]
            with requests_made.request("unresolved@api>db:connect:records"):
                found[host].append(look(engine.connect))
        fired = {"unresolved@api>db:connect:records"} if host == NOBODY else set()
        assert requests_made.lineage().fired == fired
        engine.dispose()
    (real, injected), (refused_really, let_through) = found.values()
    assert injected.words == real.words[: len(injected.words)], (injected, real)
    assert "Name or service not known" in injected.words[0]
    assert let_through == refused_really


def test_a_connection_of_pymysql_is_refused_as_when_nobody_listens(requests_made: Requests) -> None:
    with nobody() as port:
        engine = sqlalchemy.create_engine(f"mysql+pymysql://kim@127.0.0.1:{port}/records")
        real = look(engine.connect)
        with requests_made.request("refused@api>db:connect:records"):
            injected = look(engine.connect)
    assert injected == real
    assert requests_made.lineage().fired == {"refused@api>db:connect:records"}
    engine.dispose()


def test_without_a_name_the_kind_of_database_is_the_peer(requests_made: Requests) -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect() as connection:
        call = seen(lambda: connection.execute(text("select 1")).scalar())
        holds(requests_made, "api>db:SELECT:sqlite", call, refused)
    engine.dispose()


def test_a_connection_survives_an_injected_error(requests_made: Requests, engine: Engine) -> None:
    with engine.connect() as connection:
        (point,) = at(requests_made, lambda: connection.execute(SELECT, {"title": "x"}).all())
        with requests_made.request(f"error:1@{point}"):
            with pytest.raises(OperationalError):
                connection.execute(SELECT, {"title": "x"})
            assert connection.execute(SELECT, {"title": "x"}).all() == []


def test_asyncio(requests_made: Requests, url: str) -> None:
    from sqlalchemy.ext import asyncio as sqlalchemy_asyncio

    async def call() -> object:
        engine = sqlalchemy_asyncio.create_async_engine(f"sqlite+aiosqlite:///{url}")
        try:
            async with engine.connect() as connection:
                return (await connection.execute(SELECT, {"title": "x"})).all()
        finally:
            await engine.dispose()

    connect, select = sorted(at(requests_made, lambda: asyncio.run(call())), reverse=True)
    assert select.startswith("api>db:SELECT:")
    for point in (connect, select):
        with requests_made.request(f"error@{point}"), pytest.raises(OperationalError):
            asyncio.run(call())
        assert requests_made.lineage().fired == {f"error@{point}"}
        assert requests_made.lineage().failed == {point}


def test_a_delayed_statement_lets_other_tasks_run_and_is_cancelled_with_its_task(
    requests_made: Requests, url: str
) -> None:
    from sqlalchemy.ext import asyncio as sqlalchemy_asyncio

    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async def call(patience: float | None) -> None:
        other = asyncio.create_task(tick())
        engine = sqlalchemy_asyncio.create_async_engine(f"sqlite+aiosqlite:///{url}")
        try:
            async with asyncio.timeout(patience), engine.connect() as connection:
                await connection.execute(SELECT, {"title": "x"})
        finally:
            other.cancel()
            await engine.dispose()

    point = at(requests_made, lambda: asyncio.run(call(None)))[0]
    began = time.monotonic()
    with (
        requests_made.request(f"delay@{point}", delay_ms=60_000),
        pytest.raises(TimeoutError),
    ):
        asyncio.run(call(0.3))

    assert time.monotonic() - began < 5
    assert ticks > 5


def test_taken_out_the_listeners_are_gone(requests_made: Requests) -> None:
    from ldfi.fit import patching

    assert event.contains(Engine, "do_execute", ours._execute)
    patching.take_out_all()
    assert not event.contains(Engine, "do_execute", ours._execute)


def test_the_host_is_unharmed(requests_made: Requests, engine: Engine) -> None:
    def call() -> object:
        with engine.connect() as connection:
            return connection.execute(SELECT, {"title": "x"}).all()

    for point in at(requests_made, call):
        unharmed(requests_made, ours, point, seen(call), refused)
