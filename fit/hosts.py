"""Which hosts a failure context may be sent to: private ones, and those that ``FIT_HOSTS`` lists.

The context travels in the baggage, and instrumentation sends that with every call, also to third
parties. Without ``FIT_HOSTS`` it goes to private addresses (:data:`PRIVATE`), to names of one label
and to names that nobody can register. ``FIT_HOSTS`` lists exceptions, read from left to right; the
first that fits a host decides::

    FIT_HOSTS=api.partner.com,*.shop.example,203.0.113.0/24     these as well
    FIT_HOSTS=!10.20.0.0/16                                     not these
    FIT_HOSTS=*.internal,127.0.0.1,!*                           these only
    FIT_HOSTS=*                                                 everybody
    FIT_HOSTS=                                                  nobody

To any other host the call goes without our entry; the rest of the baggage is none of our business.
Whether a call fails is not touched by this: that is decided on this side of it.

Only what cannot be misread is allowed: ``0x7f.1`` may mean this machine to one resolver and a
stranger to the next, so it is a stranger. All languages follow ``fit/vectors/hosts.json``.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_network
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final

from ldfi.fit import baggage, runtime

VARIABLE: Final = "FIT_HOSTS"
HEADER: Final = "baggage"
PRIVATE: Final = (
    # RFC 6761, 6762 and 8375, ICANN's .internal; .svc and .lan, which no registry sells
    "*.localhost,*.test,*.local,*.home.arpa,*.internal,*.svc,*.lan,"
    # This host (RFC 1122, 6890), RFC 1918, RFC 3927, RFC 6598
    "0.0.0.0,127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,169.254.0.0/16,100.64.0.0/10,"
    # The same, RFC 4193, RFC 4291
    "::,::1,fc00::/7,fe80::/10"
)
"""What is private, written as ``FIT_HOSTS`` is; besides, every name of one label."""

Pair = tuple[Any, Any]
Host = str | IPv4Address | IPv6Address | None
"""A host's name, in lower case and without the last dot, or its address; None for any other
spelling."""

_log = logging.getLogger("fit")
_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)  # no letter of Unicode becomes one
_NAME: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_NUMBER: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
_IPV6: Final = re.compile(r"(\[)?([0-9a-f:.]*:[0-9a-f:.]*)(?:%[a-z0-9._~-]+)?(?(1)\])")
_PORT: Final = re.compile(r"([^:]*|\[.*\]):[0-9]{1,5}")
_PATTERN: Final = re.compile(r"[a-z0-9_*-]+(?:\.[a-z0-9_*-]+)*")

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
    """Tell whether a failure context may be sent to a host, given by name or address, without its
    port. A Unix socket is ``localhost``."""
    text = os.environ.get(VARIABLE)
    known = _read(host)
    for fits, allows in _listed(text or ""):
        if fits(known):
            return allows
    nobody = text is not None and not text.replace(",", "").strip()
    return not nobody and _is_private(known)


def guarded(work: Callable[..., Any], *arguments: Any) -> Any:
    """Have a client look after its own call. Raises nothing; None where there is nothing to do."""
    try:
        return work(*arguments)
    except Exception:
        runtime.swallow()
        return None


def forget() -> None:
    """Read the variable anew."""
    may_reach.cache_clear()


def _is_private(host: Host) -> bool:
    if isinstance(host, str) and "." not in host:
        return True
    return any(fits(host) for fits, _ in _listed(PRIVATE))


def _read(host: str) -> Host:
    bare = host.translate(_LOWER)
    if ipv6 := _IPV6.fullmatch(bare):
        return _ipv6(ipv6[2])
    bare = bare.removesuffix(".")
    try:
        return IPv4Address(bare)
    except ValueError:
        readable = _NAME.fullmatch(bare) and not _NUMBER.fullmatch(bare)
        return bare if readable else None


def _ipv6(text: str) -> Host:
    try:
        address = IPv6Address(text)
    except ValueError:
        return None
    return address.ipv4_mapped or address


Fits = Callable[[Host], bool]


@lru_cache(maxsize=8)
def _listed(text: str) -> list[tuple[Fits, bool]]:
    """Read entries: whom each fits, and whether it allows or, with ``!``, forbids."""
    entries = []
    for entry in filter(None, map(str.strip, text.split(","))):
        bare = entry.removeprefix("!").strip()
        fits = _entry(bare.translate(_LOWER))
        if fits is None:
            _log.warning("%s: %r is no host, pattern or network; it is ignored", VARIABLE, entry)
        else:
            entries.append((fits, bare is entry))
    return entries


def _entry(text: str) -> Fits | None:
    """Read an entry: ``*``, a network, an address or a name, or a pattern of one."""
    if "/" in text:
        return _network(text)
    with_port = _PORT.fullmatch(text)
    text = with_port[1] if with_port else text
    if text == "*":
        return lambda _: True
    known = _read(text)
    if known is not None:
        return lambda host: host == known
    text = text.removesuffix(".")
    return _pattern(text) if "*" in text and _PATTERN.fullmatch(text) else None


def _network(text: str) -> Fits | None:
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        return None
    return lambda host: isinstance(host, IPv4Address | IPv6Address) and host in network


def _pattern(text: str) -> Fits:
    """Read a pattern. Of digits it fits addresses only, or ``10.*`` would fit ``10.evil.com``;
    else a ``*`` that does not come first stays within its label."""
    if not text.strip("0123456789.*"):
        digits = re.compile(re.escape(text).replace(r"\*", ".*"))
        return lambda host: isinstance(host, IPv4Address) and bool(digits.fullmatch(str(host)))
    first, rest = (".*", text[1:]) if text.startswith("*") else ("", text)
    name = re.compile(first + re.escape(rest).replace(r"\*", "[^.]*"))
    return lambda host: isinstance(host, str) and bool(name.fullmatch(host))


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
