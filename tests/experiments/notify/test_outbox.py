"""Notifications on their way out: a real receiver, a real database, and a crash in between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from sqlalchemy import select

from ldfi.experiments.notify.notification import Slack, Target, Webhook
from ldfi.experiments.notify.outbox import Outbox
from ldfi.experiments.store import notifications, switches
from ldfi.experiments.store.database import Database
from ldfi.experiments.store.notifications import Event
from ldfi.experiments.store.schema import NotificationRow
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


def rows(db: Database) -> list[NotificationRow]:
    with db.read() as session:
        return list(session.scalars(select(NotificationRow).order_by(NotificationRow.id)))


def titles(receiver: Receiver) -> Iterator[str]:
    return (httpx.Response(200, content=body).json()["title"] for _, body in receiver.got)


def test_everything_is_delivered_once_and_in_order(database: Database, receiver: Receiver) -> None:
    put(database, "one", "two", "three")

    assert deliver_all(database, Webhook(receiver.url, SECRET)) == 3
    assert deliver_all(database, Webhook(receiver.url, SECRET)) == 0

    assert list(titles(receiver)) == ["one", "two", "three"]
    assert all(row.delivered_at is not None and row.error is None for row in rows(database))
    assert len({headers["x-ldfi-delivery"] for headers, _ in receiver.got}) == 3


def test_a_notification_links_to_the_page_of_what_it_tells(
    database: Database, receiver: Receiver
) -> None:
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
    assert links == [
        "https://ldfi.example/findings/f1",
        "https://ldfi.example/experiments/e%2F1",
        "https://ldfi.example/campaigns/c1",
        "https://ldfi.example",
    ]


def test_what_is_undone_is_never_told(database: Database, receiver: Receiver) -> None:
    with pytest.raises(RuntimeError), database.change(1.0) as change:
        switches.set_halted(change, "release")
        raise RuntimeError

    assert deliver_all(database, Webhook(receiver.url, SECRET)) == 0


def test_after_a_crash_it_comes_again_and_the_receiver_can_tell(
    database: Database, receiver: Receiver
) -> None:
    # Given a service that dies after the delivery, before it could write that down
    put(database, "one")
    deliver_all(database, Webhook(receiver.url, SECRET))
    with database.change(9.0) as change:
        (row,) = change.session.scalars(select(NotificationRow))
        row.delivered_at = None
    # When it comes up again
    assert deliver_all(database, Webhook(receiver.url, SECRET)) == 1
    # Then the message comes a second time, under the same id
    first, second = receiver.got
    assert first[1] == second[1]
    assert first[0]["x-ldfi-delivery"] == second[0]["x-ldfi-delivery"]


def test_a_target_that_refuses_holds_up_nobody_and_the_reason_is_kept(
    database: Database, receiver: Receiver
) -> None:
    put(database, "one", "two")
    gone = Slack(f"{receiver.url}/elsewhere")

    assert deliver_all(database, gone, Webhook(receiver.url, SECRET)) == 2

    assert list(titles(receiver)) == ["one", "two"]
    assert all("404" in (row.error or "") for row in rows(database))
    assert all(row.delivered_at is not None for row in rows(database))


def test_who_halted_and_why_is_told(database: Database, receiver: Receiver) -> None:
    with database.change(1.0, "kim") as change:
        switches.set_halted(change, "release")
    with database.read() as session:
        assert switches.halted(session) == "release"
    with database.change(2.0, "kim") as change:
        switches.set_halted(change, None)
    with database.read() as session:
        assert switches.halted(session) is None

    deliver_all(database, Webhook(receiver.url, SECRET))

    assert list(titles(receiver)) == ["Everything is halted", "Experiments may start again"]
    assert b"by kim: release" in receiver.got[0][1]
