"""Notifications on their way out: each target has a queue of its own, delivered in order.

Notifications were written in the transaction of the change they tell of, so a crash loses none.
They are *dealt*: each target gets a delivery of its own on record. From then on targets do not know
of each other: one that is slow or dead holds up only itself. Delivery is at least once, and may
come twice after a crash (a receiver tells by ``X-LDFI-Delivery``). After the last attempt it is
given up, and the reason kept.

A target is known by its name, made of its URL. One that is new gets what is dealt from then on.
What waits for one that has been taken out of the configuration is given up.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence

import httpx
from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from ldfi.errors import LdfiError, NotDelivered
from ldfi.experiments.notify.notification import Notification, delivery_of, notification_of
from ldfi.experiments.notify.target import Target
from ldfi.experiments.store import Database, notifications
from ldfi.experiments.store.schema import NotificationRow
from ldfi.experiments.telemetry import clock

_log = logging.getLogger("ldfi")

LOOK_SECONDS = 1.0


class Outbox:
    """Deals notifications to all targets. ``public_url`` is where people find the service, for
    links."""

    def __init__(self, database: Database, targets: Sequence[Target], public_url: str) -> None:
        self._database = database
        unique = {target.name: target for target in targets}
        self._queues = [Queue(database, each, public_url.rstrip("/")) for each in unique.values()]
        self._names = list(unique)

    async def run(self) -> None:
        """Deal and deliver until cancelled. Without targets nothing is left waiting."""
        async with httpx.AsyncClient() as client, asyncio.TaskGroup() as tasks:
            for queue in self._queues:
                tasks.create_task(queue.run(client))
            while True:
                try:
                    self._deal()
                except Exception:  # noqa: BLE001 - the database may be away for a while
                    _log.exception("notifications could not be looked up")
                await asyncio.sleep(LOOK_SECONDS)

    async def deliver_all(self, client: httpx.AsyncClient) -> int:
        """Deal and deliver what is waiting; return how many deliveries that were."""
        self._deal()
        return sum(await asyncio.gather(*(each.deliver_all(client) for each in self._queues)))

    def _deal(self) -> None:
        with self._database.read() as session:
            if not notifications.to_be_dealt(session, self._names):
                return
        with self._database.change(clock.now()) as change:
            notifications.deal(change, self._names)
        for queue in self._queues:
            queue.wake()


class Queue:
    """What one target has yet to be told, in the order in which it was written."""

    def __init__(self, database: Database, target: Target, public_url: str) -> None:
        self._database = database
        self._target = target
        self._public_url = public_url
        self._more = asyncio.Event()

    def wake(self) -> None:
        """Look again: there may be more."""
        self._more.set()

    async def run(self, client: httpx.AsyncClient) -> None:
        """Deliver until cancelled."""
        while True:
            self._more.clear()
            try:
                await self.deliver_all(client)
                await self._more.wait()
            except Exception:  # noqa: BLE001 - the database may be away for a while
                _log.exception("what waits for %s could not be looked up", self._target.name)
                await asyncio.sleep(LOOK_SECONDS)

    async def deliver_all(self, client: httpx.AsyncClient) -> int:
        """Deliver what is waiting; return how many that were."""
        count = 0
        while waiting := self._waiting():
            for row in waiting:
                error = await self._deliver(row, client)
                with self._database.change(clock.now()) as change:
                    notifications.end_delivery(change, row.id, self._target.name, error)
                count += 1
        return count

    def _waiting(self) -> list[NotificationRow]:
        with self._database.read() as session:
            return notifications.waiting(session, self._target.name)

    async def _deliver(self, row: NotificationRow, client: httpx.AsyncClient) -> str | None:
        try:
            notification = notification_of(row, self._public_url)
            await deliver(self._target, notification, client, delivery=delivery_of(row))
        except LdfiError as error:
            _log.warning("notification %d was not delivered: %s", row.id, error)
            return str(error)
        return None


# Delivers one notification to one target, trying again where that can help.
#
# That is where nobody answered in time, or the receiver was busy or broken. A refusal (any other
# status) is final. Receivers may see one twice; the delivery id is the same then.

ATTEMPTS = 5
FIRST_WAIT = 0.5
LONGEST_WAIT = 8.0
TIMEOUT = 5.0
"""Seconds for one attempt, all in all: a receiver that drips does not hold it up any longer."""
WORTH_ANOTHER_TRY = frozenset({408, 425, 429})


async def deliver(
    target: Target,
    notification: Notification,
    client: httpx.AsyncClient,
    first_wait: float = FIRST_WAIT,
    delivery: str | None = None,
) -> None:
    """Send it, up to five times, waiting ``first_wait`` seconds, then twice as long each time.

    ``delivery``: an id by which a receiver knows a message that comes twice; one is made if None.
    Raises :class:`NotDelivered` after the last attempt, or at once where another cannot help.
    """
    delivery = delivery or secrets.token_hex(16)
    attempts = AsyncRetrying(
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(first_wait, max=LONGEST_WAIT) + wait_random(0, first_wait),
        retry=retry_if_exception_type(_NotNow),
        reraise=True,
    )
    async for attempt in attempts:
        with attempt:
            await _send(target.request(notification, delivery, clock.now()), notification, client)


class _NotNow(NotDelivered):
    """Not delivered, but it may work later."""


async def _send(
    request: httpx.Request, notification: Notification, client: httpx.AsyncClient
) -> None:
    told = f"the notification {notification.event!r} did not reach {request.url.host}"
    try:
        async with asyncio.timeout(TIMEOUT):
            response = await client.send(request, follow_redirects=False)
    except TimeoutError as error:
        raise _NotNow(f"{told}: no answer within {TIMEOUT:g} seconds") from error
    except httpx.HTTPError as error:
        raise _NotNow(f"{told}: {type(error).__name__} {error}") from error
    if response.is_success:
        return
    status = response.status_code
    if status in WORTH_ANOTHER_TRY or status >= 500:
        raise _NotNow(f"{told}: it answered with status {status}")
    raise NotDelivered(f"{told}: it refused it with status {status}; check the target's URL")
