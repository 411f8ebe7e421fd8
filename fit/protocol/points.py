"""Injection points: where a call can be made to fail, and what such a place is called.

The name of a point is its identity, at run time (in the client that is about to call) and in the
lineage (read from the exported span). Both ends use the functions of this module, so both ends
agree. At run time a client knows its own service, the method, the address and the path; it does
not know the callee's service name or its route. So a name is made of just that::

    api>http:GET:ratings/titles/*          a call of ``api`` to the host ``ratings``
    api>http:GET:127.0.0.1:8081/titles/*   on loopback the port is all that tells hosts apart
    api>rpc:Get:/shop.Prices               a gRPC call
    api>cache:get:home                     a look-up in a cache
    api>db:GET:sessions                    a command to the Redis server ``sessions``
    bookmarks>db:SELECT:recordsdb/marks    a query
    api>message:send:kafka/plays           a produced message
    home>function:rank                     a decorated function

Raw identifiers never reach a name: :func:`template_path` replaces them with ``*``
(:mod:`ldfi.fit.protocol.identifiers`). It is a heuristic, not a proof: a path segment such as
``/users/alice`` looks like a route and is kept. Give ``url.template`` where your paths carry such
names.

Letters of all scripts stay as they are, for of a name nothing but its hash travels. They are told
from spaces, controls and the like by ranges rather than by their properties, since Python, Go and
JavaScript have different versions of Unicode.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase
from urllib.parse import unquote

from ldfi.fit.protocol.identifiers import is_identifier

MAX_NAME_LENGTH = 240

_NAME = re.compile(
    r"(?P<caller>[^>]+)>(?P<kind>[a-z]+):(?P<operation>[^:/]*)"
    r"(:(?P<peer>[^/]*)(?P<template>/.*)?)?"
)
_LETTERS = (
    "\u00a1-\u167f\u1681-\u1fff\u2070-\u2fff\u3001-\ud7ff"
    "\uf900-\ufefe\uff00-\uffef\U00010000-\U000dffff"
)
"""What stays of the characters beyond ASCII."""

_UNSAFE = re.compile(rf"[^A-Za-z0-9._~*{{}}$()!,;=@+{_LETTERS}-]+")
_UNSAFE_TEMPLATE = re.compile(rf"[^A-Za-z0-9._~*{{}}$()!,;=@+/:{_LETTERS}-]+")
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_PLACEHOLDER = re.compile(r"\{[^}/]*\}?|<[^>/]*>?|(?<=/):[A-Za-z_]\w*")
_BRACE, _ANGLE = re.compile(r"\{[^}/]*\}?"), re.compile(r"<[^>/]*>?")
_CLOSED = {"{": "}", "<": ">"}
IPV4 = re.compile(r"\d{1,3}(\.\d{1,3}){3}", re.ASCII)
_DEFAULT_PORTS = frozenset({80, 443})
_COMMENT = re.compile(r"\s*(?:/\*.*?\*/|--[^\n]*\n)", re.DOTALL)
_VERB = re.compile(r"\s*([a-zA-Z]+)")
_TABLE = re.compile(
    rf"\b(?:from|into|update|table|join)\s+[`\"\[]?([A-Za-z0-9_.${_LETTERS}-]+)",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Point:
    """An injection point. ``str(point)`` is its name; :meth:`parse` reads one back."""

    caller: str
    kind: str
    operation: str
    peer: str = ""
    template: str = ""

    def __str__(self) -> str:
        caller = _clean(self.caller) or "unknown"
        operation = _clean(self.operation)
        peer = _clean(self.peer, keep=":")
        template = _UNSAFE_TEMPLATE.sub("_", self.template)
        if template and not template.startswith("/"):
            template = "/" + template
        target = f":{peer}{template}" if peer or template else ""
        return f"{caller}>{self.kind}:{operation}{target}"[:MAX_NAME_LENGTH]

    @classmethod
    def parse(cls, name: str) -> Point:
        """Read a name back. A name that is none of ours becomes a function of an unknown caller."""
        match = _NAME.fullmatch(name)
        if match is None:
            return cls("unknown", "function", name)
        parts = match.groupdict(default="")
        return cls(**parts)


def _clean(text: str, keep: str = "") -> str:
    if keep:
        return keep.join(_UNSAFE.sub("_", part) for part in text.split(keep))
    return _UNSAFE.sub("_", text)


@lru_cache(maxsize=8192)
def http_point(
    caller: str, method: str, host: str, port: int | None, path: str, template: str = ""
) -> str:
    """Name an outgoing HTTP call.

    ``template`` is the value of ``url.template`` where the caller knows it; otherwise ``path``,
    with identifiers wildcarded.
    """
    route = template_route(template) if template else template_path(path)
    port = None if port in _DEFAULT_PORTS else port  # some clients write it out, some do not
    return str(Point(caller, "http", method.upper(), address(host, port), route))


@lru_cache(maxsize=8192)
def rpc_point(caller: str, method: str, peer: str = "") -> str:
    """Name a remote procedure call. ``method`` is the full one: ``/package.Service/Method``.

    Python's gRPC spans do not say where they went, so a client there gives no ``peer`` either.
    """
    service, _, operation = method.strip("/").rpartition("/")
    return str(Point(caller, "rpc", operation, peer, as_path(service)))


@lru_cache(maxsize=8192)
def database_point(caller: str, statement: str, peer: str) -> str:
    """Name a query or a command: its verb and table, at a database or a server called ``peer``."""
    verb, _, table = template_statement(statement).partition(" ")
    return str(Point(caller, "db", verb, peer, as_path(table)))


@lru_cache(maxsize=8192)
def message_point(caller: str, operation: str, system: str, destination: str) -> str:
    """Name a produced message: to ``destination`` (a topic, a queue) of ``system``."""
    return str(Point(caller, "message", operation, system, as_path(template_words(destination))))


@lru_cache(maxsize=1024)
def address(host: str, port: int | str | None) -> str:
    """Name a host as a caller does. The port counts only where the host is an address.

    Behind a name it is a detail of deployment; on loopback it is all that tells servers apart.
    """
    bare = host.translate(_LOWER).rstrip(".").strip("[]")
    numeric = bare == "localhost" or ":" in bare or IPV4.fullmatch(bare)
    return f"{bare}:{port}" if numeric and port else bare


def is_address(peer: str) -> bool:
    """Return whether a peer is known by an address alone, perhaps with its port."""
    host = peer.rpartition(":")[0] if peer.rpartition(":")[2].isdecimal() else peer
    return host == "localhost" or ":" in host or IPV4.fullmatch(host) is not None


def has_name(point: Point) -> bool:
    """Tell whether a name may have to be looked up for a call: not of an address. Points of gRPC
    and of SQL do not say where they went."""
    if point.kind in ("rpc", "db") and (not point.peer or point.operation.upper() == "CONNECT"):
        return True
    host = point.peer.rpartition(":")[0] if point.peer.rpartition(":")[2].isdecimal() else ""
    return is_name(host or point.peer)


def is_name(host: str) -> bool:
    """Tell whether a host is given by a name rather than by an address."""
    return bool(host) and ":" not in host and IPV4.fullmatch(host) is None


def authority(text: str) -> str:
    """Name a host as a caller does, from ``HOST`` or ``HOST:PORT``."""
    host, colon, port = text.rpartition(":")
    return address(host, port) if colon and port.isdecimal() else address(text, None)


def as_path(text: str) -> str:
    """Turn a name (of a table, a topic) into what stands where a point's name has its path."""
    return _templated("/" + text.lstrip("/"), _template_segment) if text else ""


@lru_cache(maxsize=8192)
def template_path(path: str) -> str:
    """Replace the identifiers in a URL path with ``*``; drop query and fragment.

    >>> template_path("/titles/tt0111161/similar?limit=3")
    '/titles/*/similar'
    >>> template_path("/v1/users/7a8f4c1e-93f2-4f04-8b5c-0d2a0ecb66b2")
    '/v1/users/*'
    """
    return _templated(path, _template_segment_of_url)


def _templated(path: str, template: Callable[[str], str]) -> str:
    path = path.partition("?")[0].partition("#")[0]
    return "/".join(map(template, path.split("/"))) or "/"


def _template_segment_of_url(segment: str) -> str:
    """Wildcard what is escaped on the wire as well: some callers have it so, some do not."""
    return _template_segment(segment) if segment.isascii() else "*"


def _template_segment(segment: str) -> str:
    if not segment:
        return segment
    return "*" if unquote(segment) != segment or is_identifier(segment) else segment


@lru_cache(maxsize=2048)
def template_route(route: str) -> str:
    """Bring a framework's route (``/users/{id}``, ``/users/<int:id>``, ``/users/:id``) to our form.

    >>> template_route("/titles/{title_id}/similar")
    '/titles/*/similar'
    """
    return _PLACEHOLDER.sub(_starred, route.partition("?")[0])


def _starred(found: re.Match[str]) -> str:
    """Put ``*`` in a placeholder's place. What is never closed reaches to the end of its segment,
    in which no more of its kind can be: so no text is read over and over again."""
    text = found[0]
    if text[0] == ":" or text[-1] == _CLOSED[text[0]]:
        return "*"
    other = _ANGLE if text[0] == "{" else _BRACE
    return other.sub(lambda each: "*" if each[0][-1] in "}>" else each[0], text)


@lru_cache(maxsize=4096)
def template_statement(statement: str) -> str:
    """Reduce a statement to its verb and its table: all that is kept of it.

    >>> template_statement("/* why */ select name from owners where id = 17")
    'SELECT owners'
    """
    at = 0
    while comment := _COMMENT.match(statement, at):
        at = comment.end()
    verb = _VERB.match(statement, at)
    table = _TABLE.search(statement, at)
    return " ".join((verb[1].upper() if verb else "", table[1] if table else "")).strip()


@lru_cache(maxsize=4096)
def template_words(text: str) -> str:
    """Wildcard the identifiers in a name made of words and paths.

    >>> template_words("SELECT owners.17")
    'SELECT owners.*'
    """
    return " ".join(_template_word(word) for word in text.split())


def _template_word(word: str) -> str:
    if "/" in word:
        return template_path(word)
    return ".".join(as_path(part)[1:] for part in word.split("."))
