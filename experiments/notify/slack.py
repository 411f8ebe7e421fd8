"""A channel: Slack, or anything that understands Slack's incoming webhooks."""

from __future__ import annotations

from dataclasses import dataclass, field

import httpx

from ldfi.experiments.notify.notification import Notification
from ldfi.experiments.notify.target import check_url, named

HEADER_LIMIT = 150
TEXT_LIMIT = 3000
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


@dataclass(frozen=True, slots=True)
class Slack:
    """An incoming webhook. Its URL is a secret: whoever has it can post."""

    url: str = field(repr=False)

    def __post_init__(self) -> None:
        check_url(self.url)

    @property
    def name(self) -> str:
        """Return its name on record, which does not give the URL away."""
        return named("slack", self.url)

    def request(self, notification: Notification, _delivery: str, _now: float) -> httpx.Request:
        """Make the request that delivers it."""
        return httpx.Request("POST", self.url, json=slack_message(notification))


def slack_message(notification: Notification) -> dict[str, object]:
    """Write what Slack is sent: all of it as ``text``, for places that know no blocks, and blocks.

    The blocks are plain text, so that the stars and underscores in names stay what they are.
    """
    lines = [notification.title, notification.text]
    blocks: list[dict[str, object]] = [
        {"type": "header", "text": _plain(notification.title, HEADER_LIMIT)}
    ]
    if notification.text.strip():
        blocks.append({"type": "section", "text": _plain(notification.text, TEXT_LIMIT)})
    escaped = [_escaped(line, TEXT_LIMIT) for line in lines if line.strip()]
    if notification.link:
        target = _escaped(notification.link, TEXT_LIMIT).replace("|", "%7C")
        escaped.append(f"<{target}>")
        details = {"type": "mrkdwn", "text": f"<{target}|Details>"}
        blocks.append({"type": "context", "elements": [details]})
    return {"text": "\n".join(escaped), "blocks": blocks}


def _plain(text: str, limit: int) -> dict[str, object]:
    return {"type": "plain_text", "text": _escaped(text, limit), "emoji": False}


def _escaped(text: str, limit: int) -> str:
    """Escape ``&``, ``<`` and ``>`` as Slack asks, and cut before ``limit``, never within one."""
    pieces: list[str] = []
    length = 0
    for character in text:
        piece = _ENTITIES.get(character, character)
        length += len(piece)
        if length >= limit:
            return "".join(pieces) + "…"
        pieces.append(piece)
    return "".join(pieces)
