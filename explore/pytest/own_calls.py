"""Whether the test's own function makes a call, or something that it tests does; and whether a fake
answers it, so that it is no request to anybody."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any, Final

_BETWEEN: Final = frozenset(
    {
        "aiohttp",
        "contextlib",
        "functools",
        "grpc",
        "http",
        "httpcore",
        "httpx",
        "ldfi",
        "opentelemetry",
        "redis",
        "requests",
        "socket",
        "starlette",
        "subprocess",
        "urllib",
        "urllib3",
        "wrapt",
    }
)
"""What stands between whoever makes a call and the place where it is seen."""

_WAYS: Final = (
    ("requests.adapters", "HTTPAdapter", "send"),
    ("urllib3.connectionpool", "HTTPConnectionPool", "ConnectionCls"),
    ("aiohttp.client", "ClientSession", "_request"),
)
"""What libraries send through, and their fakes put something else in the place of."""


def faked() -> bool:
    """Return whether something stands in for the wire of one of these libraries."""
    return any(_replaced(*way) for way in _WAYS)


def _replaced(module: str, owner: str, name: str) -> bool:
    held: Any = getattr(sys.modules.get(module), owner, None)
    found = getattr(held, name, None)
    origin = str(getattr(found, "__module__", "")).partition(".")[0]
    return found is not None and origin not in _BETWEEN


def asked_within(code: CodeType | None) -> bool:
    """Return whether the innermost code that is no client library's is this one: the test's own
    function, and not a function that it calls."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_between(frame):
        frame = frame.f_back
    return frame is not None and code is not None and frame.f_code is code


def _is_between(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _BETWEEN
