"""What the Kafka clients have in common: the name of the point where a consumer asks for messages,
and the failure context in the headers of those that are sent.

No OpenTelemetry span is the asking itself, for a consumer's spans begin when a message has come:
the point is seen where a fault hits it, and in a span of ``fit``'s own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ldfi.fit import hosts
from ldfi.fit.protocol.points import message_point


def consumer_point(service: str, topics: Iterable[str]) -> str:
    """Name the point where messages of these topics are asked for."""
    return message_point(service, "receive", "kafka", ",".join(sorted(topics)))


def addressed(
    servers: str | Iterable[str], at: int, rest: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Write our entry into a message's headers where its brokers may have it, or take it out.

    ``servers``: where the client was told to find them. ``at``: where headers stand among
    ``rest``, the positional arguments. Returns all arguments anew; None where they stay.
    """
    given = rest[at] if at < len(rest) else named.get("headers")
    pairs = given.items() if isinstance(given, dict) else given
    onward = hosts.addressed(pairs, *_hosts(servers))
    if onward is None:
        return None
    if at < len(rest):
        return (*rest[:at], onward, *rest[at + 1 :]), named
    return rest, {**named, "headers": onward}


def _hosts(servers: str | Iterable[str]) -> list[str]:
    listed = servers if isinstance(servers, str) else ",".join(servers)
    return [hosts.without_port(each.strip().rpartition("://")[2]) for each in listed.split(",")]
