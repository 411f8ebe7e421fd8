"""A channel: any URL that takes JSON, signed so that the receiver knows who sent it."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict, dataclass, field

import httpx

from ldfi.errors import InvalidTarget
from ldfi.experiments.notify.notification import Notification
from ldfi.experiments.notify.target import check_url, named


@dataclass(frozen=True, slots=True)
class Webhook:
    """A URL that gets each notification as JSON, signed with ``secret``. See :func:`signature`."""

    url: str
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        check_url(self.url)
        if len(self.secret) < 16:
            raise InvalidTarget("a webhook's secret needs 16 characters or more; make it at random")

    @property
    def name(self) -> str:
        """Return its name on record: with another secret it is still the same target."""
        return named("webhook", self.url)

    def request(self, notification: Notification, delivery: str, now: float) -> httpx.Request:
        """Make the request that delivers it, signed for this moment."""
        timestamp = str(int(now))
        body = json.dumps(asdict(notification), ensure_ascii=False).encode()
        headers = {
            "Content-Type": "application/json",
            "X-LDFI-Delivery": delivery,
            "X-LDFI-Timestamp": timestamp,
            "X-LDFI-Signature": signature(self.secret, timestamp, body),
        }
        return httpx.Request("POST", self.url, content=body, headers=headers)


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Sign ``timestamp``, a dot and the body: ``sha256=`` and the HMAC-SHA256 in hexadecimal.

    A receiver computes it over the body as it came, byte for byte, compares it with the header
    ``X-LDFI-Signature`` by ``hmac.compare_digest``, and refuses an ``X-LDFI-Timestamp`` older than
    some minutes, or an old message could be sent again by whoever recorded it.
    """
    message = timestamp.encode() + b"." + body
    return "sha256=" + hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
