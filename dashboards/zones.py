"""The viewer's time zone, as far as a cookie of ``static/page.js`` tells: days begin there."""

from __future__ import annotations

from urllib.parse import unquote
from zoneinfo import ZoneInfo

from fastapi import Request

from ldfi.errors import InvalidCalendar
from ldfi.experiments.domain.campaign.local_time import zone


def viewers_zone(request: Request) -> ZoneInfo:
    """Find the viewer's zone; UTC without the script, or where the cookie names none."""
    try:
        return zone(unquote(request.cookies.get("ldfi_zone", "UTC")))
    except InvalidCalendar:
        return zone("UTC")
