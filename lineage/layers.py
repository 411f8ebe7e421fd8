"""One call told by several layers: a client library over another one, each with a span of its own.

An SDK (of a model, a cloud, a search engine) makes a CLIENT span, and the HTTP client in it makes
the one that goes over the wire. They are one call: where one fails, so does the other, and what can
be made to fail is the inner one. So the outer one is transparent, as a span of work is.

The table says which layers lie over which transports. Nothing is folded where the outer call names
another host than each inner one (a token that is fetched first), where it carries ``fit.point``, or
where its callee answered it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Protocol, TypeVar

from ldfi.fit.protocol.points import Point
from ldfi.lineage.operation import Operation

_BOTH: Final = frozenset({"http", "rpc"})
_OVER: Final = {
    "call": _BOTH,  # gen_ai, Azure's and Google's SDKs, spans made by hand
    "db": _BOTH,  # Elasticsearch, DynamoDB, Cosmos DB, vector stores
    "faas": _BOTH,
    "message": _BOTH,  # SQS, SNS, Pub/Sub: what is asked of a broker over HTTP
    "rpc": _BOTH,  # AWS's SDKs, Connect, Twirp, JSON-RPC
    "http": frozenset({"http"}),  # requests over urllib3, Feign over a client of its own
}
"""Kind of the outer point → kinds of point that may be the same call on the wire."""

_SAME: Final = frozenset({"http", "grpc"})
"""Protocols of outer calls that name the path: the inner call must have the same one."""


_PHASES: Final = frozenset(
    {
        *("dns.lookup", "tcp.connect", "ipc.connect", "tls.connect"),  # Node's dns and net
        *("http.getconn", "http.dns", "http.connect", "http.tls", "http.send", "http.receive"),
        *("RESOLVE", "CONNECT", "SSL handshake"),  # Netty; those above: Go's otelhttptrace
    }
)
"""What spans of a part of a call are named: they reach nobody whom the call does not."""

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1", "[::1]", "0.0.0.0"})  # noqa: S104


class Inner(Protocol):
    """A call made within another one."""

    @property
    def point(self) -> str:
        """Name what it reached."""

    @property
    def service(self) -> str:
        """Name its caller."""


_Inner = TypeVar("_Inner", bound=Inner)


def transports(outer: Operation, inner: Sequence[_Inner]) -> list[_Inner]:
    """List those of the calls made within a CLIENT span that are the same call on the wire; none
    where it is a call of its own."""
    if outer.kind != "client" or outer.point is None or "point" in _said(outer):
        return []
    point = _parsed(outer.point)
    kinds = _OVER.get(point.kind, frozenset())
    mine = [(call, _parsed(call.point)) for call in inner if call.service == outer.service]
    return [
        call
        for call, below in mine
        if below.kind in kinds and _one_host(point, below) and _one_path(outer, point, below)
    ]


def is_phase(what: Operation, above: Operation | None) -> bool:
    """Return whether a span tells of a part of the call ``above`` it: a name that is resolved, a
    connection that is made."""
    if above is None or above.kind != "client" or above.service != what.service:
        return False
    return above.point is not None and what.name in _PHASES


def _one_host(outer: Point, inner: Point) -> bool:
    """Return whether two calls may go to one host; systems are named without any."""
    if outer.kind in {"db", "message", "faas"}:
        return True
    hosts = _host(outer), _host(inner)
    return not all(hosts) or hosts[0] == hosts[1] or _LOOPBACK.issuperset(hosts)


def _one_path(outer: Operation, point: Point, inner: Point) -> bool:
    protocol = point.kind if point.kind == "http" else _said(outer).get("rpc", "")
    if protocol not in _SAME:
        return True
    if inner.kind == "rpc":
        return (inner.operation, inner.template) == (point.operation, point.template)
    called = f"{point.template}/{point.operation}" if point.kind == "rpc" else point.template
    return inner.template == called


def _host(point: Point) -> str:
    host, colon, port = point.peer.rpartition(":")
    return host if colon and port.isdecimal() else point.peer


@lru_cache(maxsize=4096)
def _parsed(name: str) -> Point:
    return Point.parse(name)


def _said(what: Operation) -> dict[str, str]:
    return dict(what.fields)
