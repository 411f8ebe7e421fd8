"""What every channel has in common: a URL, a name that does not give it away, and a request."""

from __future__ import annotations

import hashlib
from typing import Protocol

import httpx

from ldfi.errors import InvalidTarget
from ldfi.experiments.notify.notification import Notification


class Target(Protocol):
    """Where notifications go. ``name``: of this target on record, see :func:`named`."""

    @property
    def name(self) -> str:
        """Return the target's name on record."""

    def request(self, notification: Notification, delivery: str, now: float) -> httpx.Request:
        """Make the request that delivers it. ``delivery``: the same when it is sent again."""


def named(channel: str, url: str) -> str:
    """Name a target by its channel and a hash of its URL, which may be a secret."""
    return f"{channel}-{hashlib.sha256(url.encode()).hexdigest()[:32]}"


def check_url(url: str) -> None:
    """Raise InvalidTarget for what is no URL of http or https."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise InvalidTarget(f"a notification's target is no URL: {error}") from error
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise InvalidTarget("a notification's target needs a URL of http or https with a host")
