"""Delivers one notification to one target, trying again where that can help.

That is where nobody answered in time, or the receiver was busy or broken. A refusal (any other
status) is final. Receivers may see one twice; the delivery id is the same then.
"""

from __future__ import annotations

import asyncio
import secrets

import httpx
from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from ldfi.errors import NotDelivered
from ldfi.experiments.notify.notification import Notification
from ldfi.experiments.notify.target import Target
from ldfi.experiments.telemetry import clock

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
