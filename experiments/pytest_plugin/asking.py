"""Whether the test's own function makes a call, or something that it tests does."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Final

_BETWEEN: Final = frozenset(
    {
        "aiohttp",
        "contextlib",
        "functools",
        "httpcore",
        "httpx",
        "ldfi",
        "opentelemetry",
        "requests",
        "starlette",
        "urllib3",
        "wrapt",
    }
)
"""What stands between whoever makes a call and the place where it is seen."""


def asked_within(code: CodeType | None) -> bool:
    """Tell whether the innermost code that is no client library's is this one: the test's own
    function, and not a function that it calls."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_between(frame):
        frame = frame.f_back
    return frame is not None and code is not None and frame.f_code is code


def _is_between(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _BETWEEN
