"""Who a device is: what the operator names in ``FIT_DEVICE``; the first that a request has wins::

    FIT_DEVICE=header:x-device-id                                       unless it is set
    FIT_DEVICE=header:x-device-id,cookie:session,baggage:user.id,address

The id stays in the process, which keeps 64 bits of a hash of it
(:mod:`ldfi.fit.protocol.allocation`). An ``address`` is the last resort: people behind one of them
count as one device. It is the connection's, or what proxies say in ``X-Forwarded-For`` that
``FORWARDED_ALLOW_IPS`` names (as uvicorn has it); of IPv6 the first half, since the other half
changes from day to day.

Who may choose an id may choose another one, by whatever names it; into which arm it falls, only
those know who have the experiment's salt. All languages follow
``fit/protocol/vectors/devices.json``.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Final, Literal
from urllib.parse import unquote

from ldfi.fit.hosts import address_of, among

Source = tuple[Literal["header", "cookie", "baggage", "address"], str]
Values = Callable[[str], Iterable[str]]
"""Returns the values of all headers of a name in small letters, in their order."""

VARIABLE: Final = "FIT_DEVICE"
TRUSTED: Final = "FORWARDED_ALLOW_IPS"
DEVICE_HEADER: Final = "x-device-id"
"""Where scenarios, replays and ``ldfi doctor --target`` say who they are."""

DEFAULT: Final = f"header:{DEVICE_HEADER}"
FORWARDED: Final = "x-forwarded-for"
LOOPBACK: Final = "127.0.0.1"
"""Whose ``X-Forwarded-For`` is believed unless the variable says otherwise."""

LONGEST: Final = 1024
"""Characters of an id; what is longer is none."""

MOST: Final = 20
"""Addresses of proxies that are gone through."""

_SOURCE: Final = re.compile(r"(header|cookie|baggage):([A-Za-z0-9!#$%&'*+.^_`|~-]{1,64})|address")
_SPACE: Final = " \t"
_log = logging.getLogger("fit")


@dataclass(frozen=True, slots=True)
class Devices:
    """Tells devices apart by ``sources``. ``trusted``: whose ``X-Forwarded-For`` is believed."""

    sources: tuple[Source, ...]
    trusted: str = LOOPBACK

    @classmethod
    def from_environment(cls) -> Devices:
        """Read the environment."""
        said = os.environ.get(VARIABLE, DEFAULT)
        return cls(parse(said), os.environ.get(TRUSTED, LOOPBACK))

    @property
    def kinds(self) -> str:
        """By what devices are told apart, for the service: no names, as in ``header,address``."""
        return ",".join(dict.fromkeys(kind for kind, _ in self.sources))

    def of(self, values: Values, peer: Callable[[], str] = str) -> str:
        """Find which device a request comes from; empty for nobody knows. ``peer``: the address of
        the connection, with or without a port."""
        for kind, name in self.sources:
            if kind == "header":
                found = ",".join(filter(None, (each.strip(_SPACE) for each in values(name))))
            elif kind == "cookie":
                found = _cookie(name, values("cookie"))
            elif kind == "baggage":
                found = _entry(name, values("baggage"))
            else:
                found = _written(_origin(peer(), values(FORWARDED), self.trusted))
            if found and len(found) <= LONGEST:
                return found
        return ""


@lru_cache(maxsize=8)
def parse(text: str) -> tuple[Source, ...]:
    """Read a list of sources. What is none is left out, with an error in the log."""
    found: list[Source] = []
    for each in filter(None, (each.strip(_SPACE) for each in text.split(","))):
        known = _SOURCE.fullmatch(each)
        if known is None:
            _log.error(
                "%s names %r: write header:NAME, cookie:NAME, baggage:KEY or address",
                VARIABLE,
                each[:80],
            )
        elif known[1] is None:
            found.append(("address", ""))
        else:
            name = known[2].lower() if known[1] == "header" else known[2]
            found.append((known[1], name))  # type: ignore[arg-type] # the pattern names no others
    return tuple(found)


def _cookie(name: str, headers: Iterable[str]) -> str:
    """Find the first cookie of a name that has a value, without the quotes around it."""
    for header in headers:
        for pair in header.split(";"):
            key, _, value = pair.partition("=")
            value = value.strip(_SPACE)
            if len(value) > 1 and value[0] == value[-1] == '"':
                value = value[1:-1]
            if key.strip(_SPACE) == name and value:
                return value
    return ""


def _entry(name: str, headers: Iterable[str]) -> str:
    """Find the first entry of the baggage of a key that has a value, decoded."""
    for header in headers:
        for member in header.split(","):
            key, _, value = member.partition(";")[0].partition("=")
            value = value.strip(_SPACE)
            if key.strip(_SPACE) == name and value:
                return unquote(value)
    return ""


def _origin(peer: str, forwarded: Iterable[str], trusted: str) -> IPv4Address | IPv6Address | None:
    """Find whose request it is: past the proxies that are trusted, from the nearest one on. None
    where one of them has written no address. A connection that has none, such as a Unix socket, is
    trusted where everybody is."""
    parts = (each.strip(_SPACE) for header in forwarded for each in header.split(","))
    at = address_of(peer)
    believed = _everybody(trusted) if at is None else among(at, trusted)
    for each in [*filter(None, parts)][: -MOST - 1 : -1]:
        if not believed:
            break
        at = address_of(each)
        believed = at is not None and among(at, trusted)
    return at


def _everybody(trusted: str) -> bool:
    return "*" in (each.strip(_SPACE) for each in trusted.split(","))


def _written(address: IPv4Address | IPv6Address | None) -> str:
    if isinstance(address, IPv6Address):
        network = int(address) >> 64
        groups = (f"{network >> shift & 0xFFFF:x}" for shift in (48, 32, 16, 0))
        return f"{':'.join(groups)}::/64"
    return "" if address is None else str(address)
