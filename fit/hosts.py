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
from collections.abc import Callable, Iterable
from fnmatch import translate
from functools import lru_cache
from typing import Any, Final

from ldfi.fit import baggage, runtime

VARIABLE: Final = "FIT_HOSTS"
HEADER: Final = "baggage"
Pair = tuple[Any, Any]

_BYTES: Final = (bytes, bytearray, memoryview)
_SIGNED_HEADERS: Final = re.compile(r"\s*AWS4-\S+\s(?:.*[\s,])?SignedHeaders=([^,\s]*)")


def stripped(host: str, headers: Iterable[Pair] | None) -> list[Pair] | None:
    """Write headers, or gRPC's metadata, as they may go to a host; None where they may go as they
    are. What is given is not touched.

    They are pairs: a name may stand there several times. Names and values may be text or bytes,
    and what is left of a value is of the same kind. A baggage header that AWS's signature covers
    stays, for the call would be refused without it.
    """
    if headers is None or may_reach(host):
        return None
    pairs = list(headers)
    spent = iter(headers) is headers  # an iterator, and read to its end by now
    if any(_signed(name, value) for name, value in pairs):
        return pairs if spent else None
    left = [
        (name, _without(value)) if _named(name, HEADER) else (name, value) for name, value in pairs
    ]
    unchanged = all(after is before for (_, before), (_, after) in zip(pairs, left, strict=True))
    return None if unchanged and not spent else left


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


def _named(name: Any, wanted: str) -> bool:
    return _text(name).strip().lower() == wanted


def _without(value: Any) -> Any:
    """Take our entry out of a value; the very same where there is none in it."""
    if isinstance(value, list | tuple):
        several = [_without(each) for each in value]
        changed = any(after is not each for each, after in zip(value, several, strict=True))
        return several if changed else value
    text = _text(value)
    left = baggage.without(text)
    if left == text:
        return value
    return left.encode("latin-1") if isinstance(value, _BYTES) else left


def _signed(name: Any, value: Any) -> bool:
    """Tell whether a header is a signature of AWS's that covers the baggage."""
    if not _named(name, "authorization"):
        return False
    covered = _SIGNED_HEADERS.match(_text(value))
    return covered is not None and HEADER in covered[1].lower().split(";")


def _text(value: Any) -> str:
    return bytes(value).decode("latin-1") if isinstance(value, _BYTES) else str(value)
