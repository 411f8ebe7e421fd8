"""Which kinds of fault a point can have natively: those that its protocol knows.

A kind that a library cannot show its caller as it would really happen is not offered: no campaign
proposes it there, and a service that is asked for it all the same lets the call through and proves
nothing. What a library has of its protocol's kinds is told in ``docs/injection-points.md``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ldfi.fit.protocol.kinds import NAMED, RECORDS, FaultKind, family, words_with
from ldfi.fit.protocol.points import Point, has_name

_BODIES: Final = words_with("body")

_STATEMENTS: Final = frozenset(
    {
        *("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "TRUNCATE"),
        *("CREATE", "ALTER", "DROP"),
    }
)
_READING: Final = frozenset(
    {
        *(
            "SELECT",
            "GET",
            "MGET",
            "STRLEN",
            "EXISTS",
            "TTL",
            "PTTL",
            "TYPE",
            "KEYS",
            "SCAN",
            "PING",
        ),
        *("HGET", "HGETALL", "HMGET", "HKEYS", "HLEN", "LLEN", "LRANGE", "SMEMBERS", "SISMEMBER"),
        *("SCARD", "ZRANGE", "ZSCORE", "ZCARD"),
    }
)
"""What a server that is read-only answers."""


def families(point: Point) -> frozenset[str]:
    """Return the words that kinds at this point can begin with
    (:data:`ldfi.fit.protocol.kinds.FAMILIES`).

    A point's name does not tell whether a client or a decorator made it; what either could have is
    in.
    """
    return frozenset().union(*map(_of_protocol, _protocols(point)))


@lru_cache(maxsize=16)
def _of_protocol(protocol: str) -> frozenset[str]:
    return frozenset(word for word, record in RECORDS.items() if protocol in record["points"])


def _protocols(point: Point) -> tuple[str, ...]:
    """Return what kinds call it: of a database statements, commands or the connection to it."""
    # Operations of AWS are sent over HTTP. Their services have a word for a name, gRPC's a package.
    if point.kind == "rpc" and "." not in point.template:
        return "rpc", "http"
    if point.kind != "db":
        return (point.kind if point.kind in ("http", "rpc", "message") else "other",)
    verb = point.operation.upper()
    if verb == "CONNECT":
        return ("connect",)
    return ("statement" if verb in _STATEMENTS else "command",)


def native(kind: FaultKind, point: str) -> bool:
    """Return whether a call at the point of this name can fail in this way natively."""
    parsed = Point.parse(point)
    if kind.endswith(":readonly") and parsed.operation.upper() in _READING:
        return False
    if family(kind) in _BODIES and parsed.operation.upper() == "HEAD":
        return False
    if family(kind) in NAMED and not has_name(parsed):
        return False
    return family(kind) in families(parsed)


GONE: Final[tuple[FaultKind, FaultKind]] = ("refused", "status:503")
"""What a dead dependency looks like over HTTP: by itself, and behind a proxy."""


@lru_cache(maxsize=65536)
def gone(point: str, *, proxied: bool = False) -> FaultKind:
    """Return what a dead dependency looks like at the point of this name: what ``error`` asks for.

    Nothing listens any more: the connection is refused; where a proxy stands before it
    (``proxied``), the proxy answers 503. Where that is no kind of its own, ``error`` is what the
    library makes of it.
    """
    if Point.parse(point).kind != "http":
        return "error"
    return GONE[proxied]


def check_native(kind: FaultKind, point: str) -> None:
    """Raise ValueError, with what the point can have, for a kind that it cannot."""
    if not native(kind, point):
        words = ", ".join(sorted(families(Point.parse(point))))
        raise ValueError(f"{kind} cannot happen at {point}; calls there can fail with: {words}")
