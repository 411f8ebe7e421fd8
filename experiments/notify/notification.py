"""What people are told: a notification, made of what is on record of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote

from ldfi.experiments.store.notifications import Event
from ldfi.experiments.store.schema import NotificationRow


@dataclass(frozen=True, slots=True)
class Notification:
    """Something happened ``at`` that time (Unix seconds). ``details`` can be written as JSON."""

    event: Event
    title: str
    text: str
    link: str | None
    at: float
    details: Mapping[str, object] = field(default_factory=dict)


def notification_of(row: NotificationRow, public_url: str) -> Notification:
    """Make the notification that is on record. ``public_url``: where people find the service."""
    document = row.document
    return Notification(
        event=cast(Event, row.event),
        title=document["title"],
        text=document["text"],
        link=public_url + _page(document["details"]) if public_url else None,
        at=row.at,
        details=document["details"],
    )


def delivery_of(row: NotificationRow) -> str:
    """Make its delivery id: the same after a crash, and another one for every other."""
    text = json.dumps([row.id, row.at, row.event, row.document], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _page(details: dict[str, Any]) -> str:
    """Find the path of the page that shows what happened; the overview where there is none."""
    for kind in ("finding", "experiment", "campaign"):
        if isinstance(identity := details.get(kind), str):
            return f"/{kind}s/{quote(identity, safe='')}"
    return ""
