"""Which kinds of fault a point can have natively: those that its protocol knows.

A kind that a library cannot show its caller as it would really happen is not offered: no campaign
proposes it there, and a service that is asked for it all the same lets the call through and proves
nothing. What a library has of its protocol's kinds is told in ``docs/injection-points.md``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ldfi.fit.protocol.kinds import KINDS, FaultKind, family
from ldfi.fit.protocol.points import Point

_FAMILIES: Final = {
    "http": ("refused", "reset", "timeout", "status", "empty", "truncated", "corrupt", "slow"),
    "rpc": ("refused", "timeout", "grpc"),
    "message": ("timeout", "exception"),
}
_OTHERS: Final = ("exception",)
"""A cache, a function, whatever else a decorator is put around."""

_BODIES: Final = frozenset({"empty", "truncated", "corrupt", "slow"})
"""What is wrong with a body, so that an answer without one cannot have it."""

_SQL: Final = ("reset", "timeout", "sql", "exception")
_CONNECT: Final = ("refused", "exception")
_REDIS: Final = ("refused", "reset", "timeout", "redis", "exception")

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
    # Operations of AWS are sent over HTTP. Their services have a word for a name, gRPC's a package.
    if point.kind == "rpc" and "." not in point.template:
        return frozenset({*KINDS, *_FAMILIES["rpc"], *_FAMILIES["http"]})
    if point.kind != "db":
        return frozenset({*KINDS, *_FAMILIES.get(point.kind, _OTHERS)})
    verb = point.operation.upper()
    if verb == "CONNECT":
        return frozenset({*KINDS, *_CONNECT})
    return frozenset({*KINDS, *(_SQL if verb in _STATEMENTS else _REDIS)})


def native(kind: FaultKind, point: str) -> bool:
    """Return whether a call at the point of this name can fail in this way natively."""
    parsed = Point.parse(point)
    if kind.endswith(":readonly") and parsed.operation.upper() in _READING:
        return False
    if family(kind) in _BODIES and parsed.operation.upper() == "HEAD":
        return False
    return family(kind) in families(parsed)


@lru_cache(maxsize=65536)
def gone(point: str, *, proxied: bool = False) -> FaultKind:
    """Return what a dead dependency looks like at the point of this name: what ``error`` asks for.

    Nothing listens any more: the connection is refused; where a proxy stands before it
    (``proxied``), the proxy answers 503. Where that is no kind of its own, ``error`` is what the
    library makes of it.
    """
    if Point.parse(point).kind != "http":
        return "error"
    return "status:503" if proxied else "refused"


def check_native(kind: FaultKind, point: str) -> None:
    """Raise ValueError, with what the point can have, for a kind that it cannot."""
    if not native(kind, point):
        words = ", ".join(sorted(families(Point.parse(point))))
        raise ValueError(f"{kind} cannot happen at {point}; calls there can fail with: {words}")
