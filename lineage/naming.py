"""The name of an injection point, read from a finished span.

Where ``fit.point`` is on the span, that is the name: it was written by the client that made the
call. Everywhere else the same rule is applied afterwards (:mod:`ldfi.fit.protocol.points`), as far
as the span's attributes allow. Peers are what the *caller* knows, an address or a name; the
callee's own name comes from its SERVER span and is a label, not part of the identity.
"""

from __future__ import annotations

from collections.abc import Mapping

from ldfi.fit.protocol.points import (
    Point,
    address,
    as_path,
    http_point,
    message_point,
    rpc_point,
    template_route,
    template_words,
)
from ldfi.fit.protocol.urls import split_url

Fields = Mapping[str, str]

CALLING = frozenset({"client", "producer"})

_OF_DATABASES = frozenset({"db", "db_statement", "db_summary", "db_name"})

_OPENS = frozenset({"pg.connect", "redis-connect"})
"""What spans are called in which Node's drivers open a connection."""

_ASKS_NOBODY = frozenset({"pg-pool.connect"})
"""Spans of calls around such a span, or around none where a connection is there already."""


def point_of(service: str, name: str, kind: str, fields: Fields) -> str | None:
    """Name the point that a span of ``service`` reached; None where the span is no call."""
    given = fields.get("point")
    if given:
        return given
    if kind not in CALLING or name in _ASKS_NOBODY:
        return None
    for rule in (_database, _message, _rpc, _http, _function_service):
        point = rule(service, name, fields)
        if point is not None:
            return point
    if kind == "producer":
        return str(Point(service, "message", "send", peer_of(fields), as_path(name)))
    peer = peer_of(fields)
    if not name and not peer:
        return None  # nothing says what was called: no place where a fault could be put
    return str(Point(service, "call", template_words(name), peer))


def arrival_point(caller: str, service: str, name: str, fields: Fields) -> str:
    """Name a call of which only the callee's side was recorded, by what the callee knows."""
    method = fields.get("method")
    if method and "rpc" not in fields:
        route = fields.get("route", "")
        return http_point(caller, method, service, None, _server_path(fields), route)
    if "rpc_method" in fields:
        return rpc_point(caller, _rpc_method(fields), service)
    return str(Point(caller, "call", template_words(name), service))


def peer_of(fields: Fields) -> str:
    """Name the other side as its caller does: a service, a host, an address with its port."""
    if "peer" in fields:
        return template_words(fields["peer"])
    if "url" in fields:
        return _authority(fields["url"])
    return address(fields.get("host", ""), fields.get("port"))


def _database(service: str, name: str, fields: Fields) -> str | None:
    if not fields.keys() & _OF_DATABASES:
        return None
    statement = fields.get("db_statement") or fields.get("db_summary", "")
    verb, _, table = statement.partition(" ")
    operation = fields.get("db_operation", "")
    if verb and operation.partition(" ")[0].upper() == verb:
        operation = verb  # some write the database after it, some in lower case
    operation = operation or verb or ("connect" if name in _OPENS else name.partition(" ")[0])
    table = fields.get("db_table") or table
    if name in _OPENS:
        table = ""
    elif not table and not verb and template_words(name) not in {operation, ""}:
        table = template_words(name).removeprefix(operation).strip()
    return str(Point(service, "db", operation, _database_peer(fields), as_path(table)))


def _database_peer(fields: Fields) -> str:
    named = fields.get("db_name", "")
    if fields.get("db") == "redis" and not named.strip("*"):
        named = peer_of(fields)  # it has no names but its hosts': databases in it are numbers
    candidates = (fields.get("peer", ""), named if named.strip("*") else "", fields.get("db", ""))
    return next((peer for peer in candidates if peer), None) or peer_of(fields) or "db"


def _message(service: str, _name: str, fields: Fields) -> str | None:
    if "messaging" not in fields and "destination" not in fields:
        return None
    system = fields.get("messaging") or peer_of(fields)
    operation = fields.get("messaging_operation", "send")
    return message_point(service, operation, system, fields.get("destination", ""))


def _rpc(service: str, _name: str, fields: Fields) -> str | None:
    if "rpc_method" not in fields:
        return None
    return rpc_point(service, _rpc_method(fields), peer_of(fields))


def _rpc_method(fields: Fields) -> str:
    """Read the full method, however the instrumentation cuts it up."""
    method = fields["rpc_method"].strip("/")
    named = fields.get("rpc_service")
    return f"{named}/{method.rpartition('/')[2]}" if named else method


def _http(service: str, _name: str, fields: Fields) -> str | None:
    method = fields.get("method")
    peer = peer_of(fields)
    if not method or not peer:
        return None
    template = fields.get("template", "")
    url = fields.get("url")
    if url and "://" in url:
        parts = split_url(url)
        return http_point(service, method, parts.host or peer, parts.port, parts.path, template)
    port = fields.get("port", "")
    host, port = (peer, "") if "peer" in fields else (peer.removesuffix(f":{port}"), port)
    number = int(port) if port.isdecimal() else None
    return http_point(service, method, host, number, _server_path(fields), template)


def _function_service(service: str, _name: str, fields: Fields) -> str | None:
    if "faas" not in fields:
        return None
    return str(Point(service, "faas", "invoke", fields["faas"]))


def _server_path(fields: Fields) -> str:
    if "path" in fields:
        return fields["path"]
    url = fields.get("target") or fields.get("url") or ""
    return split_url(url).path or template_route(fields.get("route", "")) or "/"


def _authority(url: str) -> str:
    parts = split_url(url)
    return address(parts.host, parts.port)
