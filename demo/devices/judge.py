"""What a device makes of an answer. A status of 200 proves nothing: there must be a screen."""

from __future__ import annotations

import json
from typing import Any

PARTS = {
    "play": ("license", "stream", "title"),
    "home": ("sections",),
    "checkout": ("total", "delivery"),
}
"""What must be there of an answer, by the class of request."""


def judge(kind: str, status: int, body: bytes) -> str | None:
    """Judge an answer: the error code a device would report, or None when the user is served.

    ``kind`` is the class of request, as devices name it: ``boot``, ``home`` and so on.
    """
    if status != 200:
        return f"http_{status}"
    try:
        content = json.loads(body)
    except ValueError:
        return "no_json"
    if not isinstance(content, dict):
        return "no_json"
    if "error" in content:
        return "error_in_body"
    if kind in PARTS:
        return next((f"no_{part}" for part in PARTS[kind] if not content.get(part)), None)
    return _incomplete_rows(kind, content)


def _incomplete_rows(kind: str, content: dict[str, Any]) -> str | None:
    rows = content.get("rows")
    if not isinstance(rows, list) or not rows:
        return "no_rows"
    if not any(isinstance(row, dict) and row.get("titles") for row in rows):
        return "empty_rows"
    if kind == "boot" and not content.get("profile"):
        return "no_profile"
    return None
