"""Which hosts a failure context may be sent to: those that ``FIT_HOSTS`` allows.

The context travels in the baggage, and instrumentation sends that with every call, also to third
parties. ``FIT_HOSTS`` names those that it may reach, with ``*``::

    FIT_HOSTS=*.internal,localhost,10.*

To any other host the call goes without our entry; the rest of the baggage is none of our business.
Without the variable it goes everywhere, and when it is empty nowhere. Whether a call fails is not
touched by this: that is decided on this side of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from fnmatch import translate
from functools import lru_cache
from typing import Any, Final

from ldfi.fit import baggage, runtime

VARIABLE: Final = "FIT_HOSTS"
HEADER: Final = "baggage"


def without_ours(host: str, header: str) -> str | None:
    """Write a ``baggage`` header as it may go to a host; None where it may go as it is."""
    if may_reach(host):
        return None
    left = baggage.without(header)
    return None if left == header else left


@lru_cache(maxsize=4096)
def may_reach(host: str) -> bool:
    """Tell whether a failure context may be sent to a host, given by name or address."""
    allowed = _allowed()
    return allowed is None or allowed.fullmatch(_bare(host)) is not None


def guarded(work: Callable[..., Any], *arguments: Any) -> Any:
    """Have a client look after its own call. Raises nothing; None where there is nothing to do."""
    try:
        return None if _allowed() is None else work(*arguments)
    except Exception:
        runtime.swallow()
        return None


def forget() -> None:
    """Read the variable anew."""
    _allowed.cache_clear()
    may_reach.cache_clear()


@lru_cache(maxsize=1)
def _allowed() -> re.Pattern[str] | None:
    text = os.environ.get(VARIABLE)
    if text is None:
        return None
    patterns = [_bare(each) for each in map(str.strip, text.split(",")) if each]
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")


def _bare(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()
