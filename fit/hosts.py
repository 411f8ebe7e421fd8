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

OpenTelemetry's propagators never write the entry (:func:`withhold`), for they do not know where a
call goes: a client in ``fit.clients`` does, at its injection point, beneath all else, where trace
context goes along. A library that ``fit`` does not know sends none.

Only what cannot be misread is allowed: ``0x7f.1`` may mean this machine to one resolver and a
stranger to the next, so it is a stranger. All languages follow ``fit/protocol/vectors/hosts.json``.
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

from opentelemetry import propagate, trace
from opentelemetry.baggage import remove_baggage
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.propagators.textmap import TextMapPropagator

from ldfi.fit import baggage, patching, request, runtime
from ldfi.fit.inject import BAGGAGE, current
from ldfi.fit.protocol.context import ENTRY, MAX_LENGTH

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

_NOTHING: Final[dict[str, object]] = {}
_SAFE: Final = re.compile(r"[A-Za-z0-9._~-]+")
_BYTES: Final = (bytes, bytearray, memoryview)
_SIGNED_HEADERS: Final = re.compile(r"\s*AWS4-\S+\s(?:.*[\s,])?SignedHeaders=([^,\s]*)")


def withhold() -> None:
    """Have propagators leave our entry to the clients that know where their calls go."""
    for propagator in (CompositePropagator, W3CBaggagePropagator):
        patching.put(propagator, "inject", _withheld)


def _withheld(original: Any) -> Any:
    def inject(
        propagator: Any, carrier: Any, context: Context | None = None, *rest: Any, **named: Any
    ) -> None:
        around = current() if context is None else context
        if ENTRY in around.get(BAGGAGE, _NOTHING):  # type: ignore[operator] # it is a dict
            context = remove_baggage(ENTRY, around)
        original(propagator, carrier, context, *rest, **named)

    return inject


def addressed(headers: Iterable[Pair] | None, *to: str) -> list[Pair] | None:
    """Write headers, or gRPC's metadata, as they go to hosts; None where they go as they are.
    What is given is not touched.

    With the entry of the current context where all hosts may have it, trace context goes along and
    the request is not over; without any of ours elsewhere. They are pairs: a name may stand there
    several times. Names and values may be text or bytes, and stay so. What AWS's signature covers
    stays as it is, for the call would be refused otherwise.
    """
    if headers is None:
        return None
    pairs = list(headers)
    spent = iter(headers) is headers  # an iterator, and read to its end by now
    names = [_lower(name) for name, _ in pairs]
    if "authorization" in names and any(map(_signed, names, pairs)):
        return pairs if spent else None
    may = all(map(may_reach, to)) and not request.over(trace.get_current_span())
    onward = _with_ours(pairs, names) if may else _without_ours(pairs, names)
    unchanged = len(onward) == len(pairs) and all(
        after is before for (_, before), (_, after) in zip(pairs, onward, strict=True)
    )
    return None if unchanged and not spent else onward


@lru_cache(maxsize=4)
def _fields(propagator: TextMapPropagator) -> frozenset[str]:
    return frozenset(propagator.fields)


def _without_ours(pairs: list[Pair], names: list[str]) -> list[Pair]:
    return [
        (name, _without(value)) if lower == HEADER else (name, value)
        for lower, (name, value) in zip(names, pairs, strict=True)
    ]


def _with_ours(pairs: list[Pair], names: list[str]) -> list[Pair]:
    """Add the entry of the current context, in front of the baggage that is there."""
    entry = current().get(BAGGAGE, _NOTHING).get(ENTRY)  # type: ignore[attr-defined] # a dict
    fields = _fields(propagate.get_global_textmap())
    propagated = [at for at, name in enumerate(names) if name in fields]
    safe = isinstance(entry, str) and len(entry) <= MAX_LENGTH and _SAFE.fullmatch(entry)
    if not propagated or not safe or HEADER not in fields:
        return pairs
    there = [at for at in propagated if names[at] == HEADER]
    if any(_without(pairs[at][1]) is not pairs[at][1] for at in there):
        return pairs
    name, value = pairs[there[0] if there else propagated[0]]
    header = baggage.with_entry(_text(value) if there else "", str(entry))
    if len(header) > baggage.MAX_LENGTH:
        return pairs
    written = header.encode("latin-1") if isinstance(value, _BYTES) else header
    if there:
        return [*pairs[: there[0]], (name, written), *pairs[there[0] + 1 :]]
    return [*pairs, (HEADER.encode() if isinstance(name, _BYTES) else HEADER, written)]


@lru_cache(maxsize=4096)
def may_reach(host: str) -> bool:
    """Return whether a failure context may be sent to a host, given by name or address, without its
    port. A Unix socket is ``localhost``."""
    text = os.environ.get(VARIABLE)
    known = _read(host)
    for fits, allows in _listed(text or ""):
        if fits(known):
            return allows
    nobody = text is not None and not text.replace(",", "").strip()
    return not nobody and _is_private(known)


def address_of(text: str) -> IPv4Address | IPv6Address | None:
    """Read an address, with or without a port and brackets; None for anything else."""
    read = _read(without_port(text))
    return None if isinstance(read, str) else read


def among(address: IPv4Address | IPv6Address, listed: str) -> bool:
    """Return whether an address fits an entry of a list that is written as ``FIT_HOSTS`` is."""
    return next((allows for fits, allows in _listed(listed) if fits(address)), False)


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
            _log.warning("%s: %r is not a host, pattern or network; it is ignored", VARIABLE, entry)
        else:
            entries.append((fits, bare is entry))
    return entries


def _entry(text: str) -> Fits | None:
    """Read an entry: ``*``, a network, an address or a name, or a pattern of one."""
    if "/" in text:
        return _network(text)
    text = without_port(text)
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


def without_port(text: str) -> str:
    """Cut the port off ``HOST:PORT``."""
    with_port = _PORT.fullmatch(text)
    return with_port[1] if with_port else text


def _lower(name: Any) -> str:
    return _lowered(name) if isinstance(name, str | bytes) else _text(name).strip().lower()


@lru_cache(maxsize=512)
def _lowered(name: str | bytes) -> str:
    """Read a header's name: few of them pass, and each with every call."""
    return _text(name).strip().lower()


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


def _signed(name: str, pair: Pair) -> bool:
    """Return whether a header of this name is a signature of AWS's that covers the baggage."""
    if name != "authorization":
        return False
    covered = _SIGNED_HEADERS.match(_text(pair[1]))
    return covered is not None and HEADER in covered[1].lower().split(";")


def _text(value: Any) -> str:
    return bytes(value).decode("latin-1") if isinstance(value, _BYTES) else str(value)
