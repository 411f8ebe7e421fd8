"""What a device makes of an answer. A status of 200 proves nothing: there must be a screen."""

from __future__ import annotations

import json
from typing import Any

PATIENCE = 2.5
"""Seconds after which a user gives up, and the device with them."""


def judge(kind: str, status: int, body: bytes) -> str | None:
    """Judge an answer: the error code a device would report, or None when the user is served.

    ``kind`` is the class of request: ``boot``, ``play`` or ``search``.
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
    return _incomplete_play(content) if kind == "play" else _incomplete_rows(kind, content)


def _incomplete_rows(kind: str, content: dict[str, Any]) -> str | None:
    rows = content.get("rows")
    if not isinstance(rows, list) or not rows:
        return "no_rows"
    if not any(isinstance(row, dict) and row.get("titles") for row in rows):
        return "empty_rows"
    if kind == "boot" and not content.get("profile"):
        return "no_profile"
    return None


def _incomplete_play(content: dict[str, Any]) -> str | None:
    for part in ("license", "stream", "title"):
        if not content.get(part):
            return f"no_{part}"
    return None
