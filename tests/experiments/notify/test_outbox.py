"""Notifications on their way out: a real receiver, a real database, and a crash in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress

import httpx
import pytest
from sqlalchemy import select

from ldfi.experiments.notify.outbox import TIMEOUT, Outbox
from ldfi.experiments.notify.slack import Slack
from ldfi.experiments.notify.target import Target
from ldfi.experiments.notify.webhook import Webhook
from ldfi.experiments.store import halts, notifications
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.notifications import Event
from ldfi.experiments.store.schema import DeliveryRow
from tests.experiments.notify.test_notify import Receiver, receiver

__all__ = ["receiver"]

SECRET = "0123456789abcdef"


def put(db: Database, *titles: str) -> None:
    for at, title in enumerate(titles):
        with db.change(float(at), "kim") as change:
            notifications.put(change, "finding", title, "text", {"finding": "f1"})


def deliver_all(db: Database, *targets: Target) -> int:
    async def run() -> int:
        async with httpx.AsyncClient() as client:
            return await Outbox(db, targets, "https://ldfi.example/").deliver_all(client)

    return asyncio.run(run())


def rows(db: Database, target: Target | None = None) -> list[DeliveryRow]:
    """What is on record of deliveries, to this target or to all."""
    query = select(DeliveryRow).order_by(DeliveryRow.notification_id)
    if target is not None:
        query = query.where(DeliveryRow.target == target.name)
    with db.read() as session:
        return list(session.scalars(query))


def titles(receiver: Receiver) -> Iterator[str]:
    return (httpx.Response(200, content=body).json()["title"] for _, body in receiver.got)


def test_everything_is_delivered_once_and_in_order(database: Database, receiver: Receiver) -> None:
    put(database, "one", "two", "three")

    assert deliver_all(database, Webhook(receiver.url, SECRET)) == 3
    assert deliver_all(database, Webhook(receiver.url, SECRET)) == 0

    assert list(titles(receiver)) == ["one", "two", "three"]
    assert all(row.ended_at is not None and row.error is None for row in rows(database))
    assert len({headers["x-ldfi-delivery"] for headers, _ in receiver.got}) == 3


def test_a_notification_links_to_what_it_tells(database: Database, receiver: Receiver) -> None:
    told: list[tuple[Event, dict[str, str]]] = [
        ("finding", {"finding": "f1", "experiment": "e1", "campaign": "c1"}),
        ("approval-needed", {"experiment": "e/1"}),
        ("campaign-ended", {"campaign": "c1"}),
        ("halted", {}),
    ]
    for at, (event, details) in enumerate(told):
        with database.change(float(at)) as change:
            notifications.put(change, event, event, "text", details)

    deliver_all(database, Webhook(receiver.url, SECRET))

    links = [httpx.Response(200, content=body).json()["link"] for _, body in receiver.got]
    pages = ("/findings/f1", "/experiments/e%2F1", "/campaigns/c1", "")
    assert links == [f"https://ldfi.example{page}" for page in pages]


def test_what_is_undone_is_never_told(database: Database, receiver: Receiver) -> None:
    with pytest.raises(RuntimeError), database.change(1.0) as change:
        halts.set_halted(change, "release")
        raise RuntimeError

    assert deliver_all(database, Webhook(receiver.url, SECRET)) == 0


def test_after_a_crash_it_comes_again_and_says_so(database: Database, receiver: Receiver) -> None:
    # Given a service that dies after the delivery, before it could write that down
    put(database, "one")
    deliver_all(database, Webhook(receiver.url, SECRET))
    with database.change(9.0) as change:
        (row,) = change.session.scalars(select(DeliveryRow))
        row.ended_at = None
    # When it comes up again
    assert deliver_all(database, Webhook(receiver.url, SECRET)) == 1
    # Then the message comes a second time, under the same id
    first, second = receiver.got
    assert first[1] == second[1]
    assert first[0]["x-ldfi-delivery"] == second[0]["x-ldfi-delivery"]


def test_a_target_that_refuses_holds_up_nobody(database: Database, receiver: Receiver) -> None:
    put(database, "one", "two")
    gone = Slack(f"{receiver.url}/elsewhere")

    good = Webhook(receiver.url, SECRET)
    assert deliver_all(database, gone, good) == 4

    assert list(titles(receiver)) == ["one", "two"]
    assert all("404" in (row.error or "") for row in rows(database, gone))
    assert all(row.error is None for row in rows(database, good))
    assert all(row.ended_at is not None for row in rows(database))


async def at_work(db: Database, *targets: Target, until: Callable[[], bool]) -> float:
    """Run a service's outbox until that holds, then kill it; how many seconds it took."""
    began = time.monotonic()
    running = asyncio.create_task(Outbox(db, targets, "").run())
    while not until():
        assert not running.done(), "it has died"
        assert time.monotonic() - began < 30, "it did not happen"
        await asyncio.sleep(0.01)
    took = time.monotonic() - began
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    return took


@asynccontextmanager
async def hanging() -> AsyncIterator[tuple[str, list[bytes]]]:
    """The URL of a server that takes every request and answers none; and what it was sent."""
    asked: list[bytes] = []
    writers = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        asked.append(await reader.readuntil(b"\r\n\r\n"))

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook", asked
    finally:
        server.close()
        for writer in writers:
            writer.close()
            await writer.wait_closed()


def waits(db: Database, target: Target) -> list[int]:
    return [row.notification_id for row in rows(db, target) if row.ended_at is None]


def test_a_target_that_hangs_holds_up_only_itself(database: Database, receiver: Receiver) -> None:
    good = Webhook(receiver.url, SECRET)
    told = [f"finding {number}" for number in range(10)]

    def has_all(count: int) -> bool:
        return len(receiver.got) >= count and not waits(database, good)

    async def scenario() -> None:
        async with hanging() as (url, asked):
            bad = Webhook(url, SECRET)
            # Given two targets, one of which hangs, and the first of them is tried first
            put(database, *told[:5])
            took = await at_work(database, bad, good, until=lambda: has_all(5))
            # Then the good one has everything before a single attempt at the other is over
            assert took < TIMEOUT
            assert list(titles(receiver)) == told[:5]
            assert len(waits(database, bad)) == 5
            # When the service comes up again after it was killed, with more to tell
            put(database, *told[5:])
            await at_work(database, bad, good, until=lambda: has_all(10))
            # Then the good one got each once and in order, and all of it waits for the other
            assert list(titles(receiver)) == told
            assert len(waits(database, bad)) == 10
            assert waits(database, bad) == sorted(waits(database, bad))
            # And only the first was ever tried with it: nothing overtakes
            headers = [line for ask in asked for line in ask.lower().split(b"\r\n")]
            assert len({line for line in headers if b"x-ldfi-delivery" in line}) == 1

    asyncio.run(scenario())


def test_what_waited_for_a_target_reaches_it_later(database: Database, receiver: Receiver) -> None:
    # Given a target that is down while the service begins to tell it something, and is killed
    receiver.statuses = [503]
    target = Webhook(receiver.url, SECRET)
    put(database, "one", "two", "three")
    asyncio.run(at_work(database, target, until=lambda: len(receiver.got) == 1))
    assert len(waits(database, target)) == 3
    # When the service comes up again, and the target has as well
    asyncio.run(at_work(database, target, until=lambda: not waits(database, target)))
    # Then it gets everything in order, and what it did not take before under the same id
    assert list(titles(receiver)) == ["one", "one", "two", "three"]
    assert len({headers["x-ldfi-delivery"] for headers, _ in receiver.got}) == 3


def test_what_is_written_while_it_runs_is_delivered(database: Database, receiver: Receiver) -> None:
    target = Webhook(receiver.url, SECRET)

    async def scenario() -> None:
        working = asyncio.create_task(
            at_work(database, target, until=lambda: len(rows(database)) == 2 == len(receiver.got))
        )
        put(database, "one")
        while not receiver.got:
            await asyncio.sleep(0.01)
        put(database, "two")
        await working

    asyncio.run(scenario())
    assert list(titles(receiver)) == ["one", "two"]


def test_a_target_added_later_gets_what_follows(database: Database, receiver: Receiver) -> None:
    # Given a service without targets, then with one that does not take anything
    put(database, "before anybody listened")
    assert deliver_all(database) == 0
    refusing = Slack(f"{receiver.url}/elsewhere")
    put(database, "before the second")
    assert deliver_all(database, refusing) == 1
    # When another is added
    put(database, "after")
    assert deliver_all(database, refusing, Webhook(receiver.url, SECRET)) == 2
    # Then it is told what is dealt from then on
    assert list(titles(receiver)) == ["after"]


def test_what_waits_for_a_target_that_is_taken_away_is_given_up(
    database: Database, receiver: Receiver
) -> None:
    # Given a target for which something waits
    receiver.statuses = [503]
    target = Webhook(receiver.url, SECRET)
    put(database, "one")
    asyncio.run(at_work(database, target, until=lambda: len(receiver.got) == 1))
    # When it is taken out of the configuration, even for a while
    assert deliver_all(database) == 0
    assert deliver_all(database, target) == 0
    # Then that is on record
    (row,) = rows(database, target)
    assert row.ended_at is not None
    assert row.error == "the target is not configured any more"


def test_a_target_given_twice_is_told_once(database: Database, receiver: Receiver) -> None:
    put(database, "one")

    assert deliver_all(database, *[Webhook(receiver.url, SECRET)] * 2) == 1


def test_who_halted_and_why_is_told(database: Database, receiver: Receiver) -> None:
    with database.change(1.0, "kim") as change:
        halts.set_halted(change, "release")
    with database.read() as session:
        assert halts.halted(session) == "release"
    with database.change(2.0, "kim") as change:
        halts.set_halted(change, None)
    with database.read() as session:
        assert halts.halted(session) is None

    deliver_all(database, Webhook(receiver.url, SECRET))

    assert list(titles(receiver)) == ["Everything is halted", "Experiments may start again"]
    assert b"by kim: release" in receiver.got[0][1]
