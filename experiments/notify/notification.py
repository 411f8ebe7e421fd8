"""Tells people what the service does: by signed webhook, or in a Slack channel.

A notification is tried again where that can help: nobody answered, or the receiver was busy or
broken. A refusal (any other status) is final. Receivers may see one twice; the delivery id is the
same then.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import httpx
from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from ldfi.experiments.errors import InvalidTarget, NotDelivered
from ldfi.experiments.store.notifications import Event

ATTEMPTS = 5
FIRST_WAIT = 0.5
LONGEST_WAIT = 8.0
TIMEOUT = 5.0
WORTH_ANOTHER_TRY = frozenset({408, 425, 429})

SLACK_HEADER_LIMIT = 150
SLACK_TEXT_LIMIT = 3000
_SLACK_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


@dataclass(frozen=True, slots=True)
class Notification:
    """Something happened ``at`` that time (Unix seconds). ``details`` can be written as JSON."""

    event: Event
    title: str
    text: str
    link: str | None
    at: float
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Webhook:
    """A URL that gets each notification as JSON, signed with ``secret``. See :func:`signature`."""

    url: str
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        _check_url(self.url)
        if len(self.secret) < 16:
            raise InvalidTarget("a webhook's secret needs 16 characters or more; make it at random")

    def request(self, notification: Notification, delivery: str, now: float) -> httpx.Request:
        """The request that delivers it, signed for this moment."""
        timestamp = str(int(now))
        body = json.dumps(asdict(notification), ensure_ascii=False).encode()
        headers = {
            "Content-Type": "application/json",
            "X-LDFI-Delivery": delivery,
            "X-LDFI-Timestamp": timestamp,
            "X-LDFI-Signature": signature(self.secret, timestamp, body),
        }
        return httpx.Request("POST", self.url, content=body, headers=headers)


@dataclass(frozen=True, slots=True)
class Slack:
    """An incoming webhook of Slack, or of anything that understands the same. Its URL is secret."""

    url: str = field(repr=False)

    def __post_init__(self) -> None:
        _check_url(self.url)

    def request(self, notification: Notification, _delivery: str, _now: float) -> httpx.Request:
        """The request that delivers it."""
        return httpx.Request("POST", self.url, json=slack_message(notification))


Target = Webhook | Slack


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """``sha256=`` and the HMAC-SHA256 of ``timestamp``, a dot and the body, in hexadecimal.

    A receiver computes it over the body as it came, byte for byte, compares it with the header
    ``X-LDFI-Signature`` by ``hmac.compare_digest``, and refuses an ``X-LDFI-Timestamp`` older than
    some minutes, or an old message could be sent again by whoever recorded it.
    """
    message = timestamp.encode() + b"." + body
    return "sha256=" + hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


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
            await _send(target.request(notification, delivery, time.time()), notification, client)


class _NotNow(NotDelivered):
    """Not delivered, but it may work later."""


async def _send(
    request: httpx.Request, notification: Notification, client: httpx.AsyncClient
) -> None:
    request.extensions["timeout"] = httpx.Timeout(TIMEOUT).as_dict()
    told = f"the notification {notification.event!r} did not reach {request.url.host}"
    try:
        response = await client.send(request, follow_redirects=False)
    except httpx.HTTPError as error:
        raise _NotNow(f"{told}: {type(error).__name__} {error}") from error
    if response.is_success:
        return
    status = response.status_code
    if status in WORTH_ANOTHER_TRY or status >= 500:
        raise _NotNow(f"{told}: it answered with status {status}")
    raise NotDelivered(f"{told}: it refused it with status {status}; check the target's URL")


def slack_message(notification: Notification) -> dict[str, object]:
    """What Slack is sent: all of it as ``text``, for places that know no blocks, and as blocks.

    The blocks are plain text, so that the stars and underscores in names stay what they are.
    """
    lines = [notification.title, notification.text]
    blocks: list[dict[str, object]] = [
        {"type": "header", "text": _plain(notification.title, SLACK_HEADER_LIMIT)}
    ]
    if notification.text.strip():
        blocks.append({"type": "section", "text": _plain(notification.text, SLACK_TEXT_LIMIT)})
    escaped = [_escaped(line, SLACK_TEXT_LIMIT) for line in lines if line.strip()]
    if notification.link:
        target = _escaped(notification.link, SLACK_TEXT_LIMIT).replace("|", "%7C")
        escaped.append(f"<{target}>")
        details = {"type": "mrkdwn", "text": f"<{target}|Details>"}
        blocks.append({"type": "context", "elements": [details]})
    return {"text": "\n".join(escaped), "blocks": blocks}


def _plain(text: str, limit: int) -> dict[str, object]:
    return {"type": "plain_text", "text": _escaped(text, limit), "emoji": False}


def _escaped(text: str, limit: int) -> str:
    """``&``, ``<`` and ``>`` as Slack asks for them, cut before ``limit``, never within one."""
    pieces: list[str] = []
    length = 0
    for character in text:
        piece = _SLACK_ENTITIES.get(character, character)
        length += len(piece)
        if length >= limit:
            return "".join(pieces) + "…"
        pieces.append(piece)
    return "".join(pieces)


def _check_url(url: str) -> None:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise InvalidTarget(f"a notification's target is no URL: {error}") from error
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise InvalidTarget("a notification's target needs a URL of http or https with a host")
