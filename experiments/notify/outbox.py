"""Notifications on their way out: what the database holds is delivered, in order, at least once.

They were written in the transaction of the change they tell of, so a crash loses none. Delivery
may come twice (a receiver tells by ``X-LDFI-Delivery``); after the last attempt it is given up and
the reason kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import quote

import httpx

from ldfi.errors import LdfiError
from ldfi.experiments.notify.notification import Notification, Target, deliver
from ldfi.experiments.store import Database, notifications
from ldfi.experiments.store.notifications import Event
from ldfi.experiments.store.schema import NotificationRow

_log = logging.getLogger("ldfi")

LOOK_SECONDS = 1.0


class Outbox:
    """Delivers to every target. ``public_url`` is where people find the service, for links."""

    def __init__(self, database: Database, targets: Sequence[Target], public_url: str) -> None:
        self._database = database
        self._targets = targets
        self._public_url = public_url.rstrip("/")

    async def run(self) -> None:
        """Deliver until cancelled."""
        async with httpx.AsyncClient(timeout=5.0) as client:
            while True:
                try:
                    await self.deliver_all(client)
                except Exception:  # noqa: BLE001 - the database may be away for a while
                    _log.exception("notifications could not be looked up")
                await asyncio.sleep(LOOK_SECONDS)

    async def deliver_all(self, client: httpx.AsyncClient) -> int:
        """Deliver what is waiting; how many that were."""
        with self._database.read() as session:
            waiting = notifications.undelivered(session)
        for row in waiting:
            errors = [
                error
                for target in self._targets
                if (error := await self._deliver(target, row, client)) is not None
            ]
            with self._database.change(time.time()) as change:
                notifications.delivered(change, row.id, "; ".join(errors) or None)
        return len(waiting)

    async def _deliver(
        self, target: Target, row: NotificationRow, client: httpx.AsyncClient
    ) -> str | None:
        try:
            delivery = delivery_of(row)
            await deliver(target, self._notification(row), client, delivery=delivery)
        except LdfiError as error:
            _log.warning("notification %d was not delivered: %s", row.id, error)
            return str(error)
        return None

    def _notification(self, row: NotificationRow) -> Notification:
        document = row.document
        return Notification(
            event=cast(Event, row.event),
            title=document["title"],
            text=document["text"],
            link=self._public_url + _page(document["details"]) if self._public_url else None,
            at=row.at,
            details=document["details"],
        )


def _page(details: dict[str, Any]) -> str:
    """The path of the page that shows what happened; of the overview where there is none."""
    for kind in ("finding", "experiment", "campaign"):
        if isinstance(identity := details.get(kind), str):
            return f"/{kind}s/{quote(identity, safe='')}"
    return ""


def delivery_of(row: NotificationRow) -> str:
    """The same for this notification after a crash, and another one for every other."""
    text = json.dumps([row.id, row.at, row.event, row.document], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
