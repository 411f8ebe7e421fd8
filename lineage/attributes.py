"""Which attributes of a span we read, under which of our own names, and in what form.

Instrumentations write the same fact under several names: the old and the stable semantic
conventions of OpenTelemetry, Zipkin's tags, Jaeger's. All of them are brought to one *field*
here, once. Everything else on a span is never looked at. Values that carry identifiers (URLs,
statements) are templated while they are read, so that what is left is of low cardinality: that
is what makes it possible to remember everything else by shape (see :mod:`ldfi.lineage.operation`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl, urlencode

from ldfi.fit.protocol import attributes as fit
from ldfi.fit.protocol.chosen import chosen
from ldfi.fit.protocol.device_type import device_type
from ldfi.fit.protocol.features import Features, query_features
from ldfi.fit.protocol.points import template_path, template_statement, template_words
from ldfi.fit.protocol.protocols import graphql_document
from ldfi.fit.protocol.reach import OWN
from ldfi.fit.protocol.urls import split_url

# Which client library a call was made by, read from the scope of its span.
#
# OpenTelemetry names whoever made a span: its instrumentation scope (``otel.scope.name`` in
# formats that have no scopes of their own). Instrumentations are named after what they instrument,
# each language in its own way, so one rule for each language finds the library; a table has the
# few that are published elsewhere. Injectors report libraries by the same names
# (:mod:`ldfi.fit.protocol.reach`), and ``fit/protocol/vectors/libraries.json`` holds both ends to
# it in every language.
#
# A scope of none of these forms is a tracer of the application's own: it says nothing about the
# library. ``fit``'s own spans name ``fit``.

_GO: Final = "go.opentelemetry.io/contrib/instrumentation/"
_PREFIXES: Final = (
    "opentelemetry.instrumentation.",  # Python
    "@opentelemetry/instrumentation-",  # Node
    "io.opentelemetry.",  # Java
)
_MINOR: Final = re.compile(r"-(\d+)(?:\.\d+)+$", re.ASCII)
"""How names end in Java (``apache-httpclient-4.0``): the first number tells libraries apart."""

_ELSEWHERE: Final = {
    "github.com/XSAM/otelsql": "database/sql",
    "go.nhat.io/otelsql": "database/sql",
    "github.com/uptrace/opentelemetry-go-extra/otelsql": "database/sql",
    "github.com/nhatthm/otelsql": "database/sql",
    "github.com/redis/go-redis/extra/redisotel": "github.com/redis/go-redis",
}
"""Instrumentations that are published by others → what they instrument, without its version."""

_NO_LIBRARY: Final = frozenset({"dbapi", "opentelemetry-instrumentation-annotations-1"})
"""Instrumentations of whatever they are given."""

LONGEST: Final = 100
"""Characters of a name; what is longer names no library that anybody reports."""


@lru_cache(maxsize=4096)
def library_of(scope: str) -> str:
    """Return the library whose calls an instrumentation scope stands for; empty where it says
    none."""
    name = _named(scope)
    plain = name.isascii() and not any(each.isspace() or each in ">|*" for each in name)
    return name if plain and len(name) <= LONGEST and name not in _NO_LIBRARY else ""


def _named(scope: str) -> str:
    if scope == OWN:
        return OWN
    if scope.startswith(_GO):
        path, _, last = _unversioned(scope.removeprefix(_GO)).rpartition("/")
        return path if last.startswith("otel") else ""
    if scope.startswith(_PREFIXES[0]):  # botocore has a scope for each of its services
        return scope.removeprefix(_PREFIXES[0]).partition(".")[0]
    for prefix in _PREFIXES[1:]:
        if scope.startswith(prefix):
            return _MINOR.sub(r"-\1", scope.removeprefix(prefix))
    return _ELSEWHERE.get(_unversioned(scope), "")


def _unversioned(module: str) -> str:
    """Take the major version off a module's path in Go: ``…/redisotel/v9``."""
    path, _, last = module.rpartition("/")
    return path if last[:1] == "v" and last[1:].isdecimal() else module


Fields = tuple[tuple[str, str], ...]
"""What was read from one span: (field, value) in the order of the span."""

_IDENTIFIER = re.compile(
    r"/(?:[A-Za-z]{0,8}[-_.]?\d{3,}|\d+|(?=[a-f]*\d)[0-9a-f]{8,}"
    r"|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})(?=[/?#]|$)"
)
"""A path segment that ``fit.points.template_path`` is sure to replace; a part of its rules."""


def template_url(url: str) -> str:
    """Wildcard the identifiers in a URL's path and query; user info and fragment go.

    The commonest identifiers are made equal first, by one regular expression, so that the rest of
    the work is done once for each kind of URL and not for each URL.
    """
    path = url.find("/", 8) if "://" in url[:8] else 0
    same = _IDENTIFIER.sub("/0", url[path:]) if path >= 0 else ""
    return _template_url(url[:path] + same if path >= 0 else url)


@lru_cache(maxsize=8192)
def _template_url(url: str) -> str:
    parts = split_url(url)
    port = f":{parts.port}" if parts.port else ""
    host = f"[{parts.host}]" if ":" in parts.host else parts.host
    origin = f"{parts.scheme}://{host}{port}" if host else ""
    query = template_query(parts.query)
    return origin + template_path(parts.path or "/") + ("?" + query if query else "")


def template_called_url(url: str) -> str:
    """Wildcard a URL as its caller sees it, whose query names no point."""
    return template_url(url.partition("?")[0])


def template_any_path(path: str) -> str:
    """Wildcard the identifiers in a path as ``fit.points.template_path`` does, only faster."""
    return template_path(_IDENTIFIER.sub("/0", path))


@lru_cache(maxsize=4096)
def template_query(query: str) -> str:
    """Reduce a query string to the features that ``fit.features`` sees in it, in sorted order."""
    return urlencode(sorted(query_features(query.lstrip("?")).items()), safe="*,:")


@lru_cache(maxsize=4096)
def features_of_query(reduced: str) -> Features:
    """Read the features back that :func:`template_query` wrote, or those of a raw query string."""
    pairs = dict(parse_qsl(reduced, keep_blank_values=True))
    if all(name.partition(".")[0] in _OF_QUERIES for name in pairs):
        return pairs
    return query_features(reduced)


_OF_QUERIES: Final = frozenset({"query", "protocol", "falcor", "graphql", "unread"})


@lru_cache(maxsize=1024)
def reduced_document(text: str) -> str:
    """Reduce a document of GraphQL to its features."""
    return urlencode(sorted(graphql_document(text).items()))


def plain(value: str) -> str:
    """Keep a value as it stands: it carries no identifiers."""
    return value


def truth(value: str) -> str:
    """Reduce a flag to ``true`` or ``false``. A message in its place, as Zipkin's ``error`` holds
    one, is ``true``."""
    return "false" if value.lower() in _FALSE else "true"


_FALSE: Final = frozenset({"false", "0", "no", "none", "null", "unset", "ok", "-", ""})


def error_word(value: str) -> str:
    """Keep the type of an error; a message in its place is of no type that is known."""
    return value if _ERROR_TYPE.fullmatch(value) else OTHER_ERROR


_ERROR_TYPE = re.compile(r"[\w.$:<>-]{1,100}", re.ASCII)
OTHER_ERROR: Final = "_OTHER"
"""What the semantic conventions write where an error is of no known type."""


SCOPE: Final = "otel.scope.name"
"""What formats without scopes call them; of those that have some it is read by this name, too."""

Form = Callable[[str], str]
Names = dict[str, tuple[str, Form]]
_Table = dict[str, tuple[Form, tuple[str, ...]]]

_BOTH: Final[_Table] = {
    "method": (plain, ("http.request.method", "http.method")),
    "path": (template_any_path, ("url.path", "http.path", "http.uri.client")),
    "target": (template_url, ("http.target",)),
    "status": (plain, ("http.response.status_code", "http.status_code", "client_status_code")),
    "rpc": (plain, ("rpc.system", "rpc.system.name")),
    "rpc_service": (plain, ("rpc.service",)),
    "rpc_method": (plain, ("rpc.method", "grpc.method")),
    "rpc_status": (
        plain,
        (
            *("rpc.grpc.status_code", "rpc.response.status_code", "grpc.status_code"),
            *("grpc.code", "rpc.connect_rpc.error_code"),
        ),
    ),
    # how it failed: what each of these means is said in lineage/outcome.py
    "jsonrpc_error": (plain, ("rpc.jsonrpc.error_code",)),
    "db_status": (plain, ("db.response.status_code", "db.cosmosdb.status_code")),
    "said": (plain, ("otel.status_code",)),
    "census": (plain, ("status.code",)),
    "error": (truth, ("error",)),
    "message": (
        truth,
        (
            *("exception.message", "exception.stacktrace", "otel.status_description"),
            *("error.message", "error.msg", "error.stack"),
        ),
    ),
    "fault": (truth, ("fault",)),
    "throttle": (truth, ("throttle",)),
    "canceled": (truth, ("canceled", "cancelled")),
    "error_type": (error_word, ("error.type", "aws.error.code")),
    "thrown": (
        error_word,
        (
            *("exception.type", "error.kind", "error.class", "exception"),
            *("http.error_name", "grpc.error_name"),
        ),
    ),
    "proxied": (plain, ("response_flags",)),
    "answer_class": (plain, ("outcome",)),
    "job": (plain, ("celery.state",)),
    "messaging": (plain, ("messaging.system",)),
    "destination": (
        template_words,
        (
            "messaging.destination.template",
            "messaging.destination.name",
            "messaging.destination",
            "kafka.topic",
            "message_bus.destination",
        ),
    ),
    "messaging_operation": (plain, ("messaging.operation.type", "messaging.operation")),
    "point": (plain, (fit.POINT,)),
    "calls": (plain, (fit.CALLS,)),
    "fired": (plain, (fit.FIRED,)),
    "would_fire": (plain, (fit.WOULD_FIRE,)),
    "let_through": (plain, (fit.LET_THROUGH,)),
    "expired": (plain, (fit.EXPIRED,)),
    "experiment": (plain, (fit.EXPERIMENT,)),
    "arm": (plain, (fit.ARM,)),
    "reach": (plain, (fit.REACH,)),
    "mark": (plain, (fit.MARK,)),
}
_ASKED: Final[_Table] = {
    "url": (template_url, ("url.full", "http.url")),
    "query": (template_query, ("url.query",)),
    "route": (plain, ("http.route",)),
    "edge": (plain, (fit.EDGE,)),
    "again": (plain, (fit.AGAIN,)),
    "graphql_type": (plain, ("graphql.operation.type",)),
    "graphql_name": (template_words, ("graphql.operation.name",)),
    "graphql_document": (reduced_document, ("graphql.document",)),
    "device": (device_type, ("user_agent.original", "http.user_agent")),
}
_ASKING: Final[_Table] = {
    "url": (template_called_url, ("url.full", "http.url")),
    "template": (plain, ("url.template",)),
    "host": (plain, ("server.address", "net.peer.name", "peer.hostname", "http.host", "peer.ipv4")),
    "port": (plain, ("server.port", "net.peer.port", "peer.port")),
    "peer": (plain, ("peer.service", "service.peer.name")),
    "db": (plain, ("db.system.name", "db.system", "db.type")),
    "db_operation": (template_words, ("db.operation.name", "db.operation")),
    "db_name": (template_words, ("db.namespace", "db.name", "db.instance", "jdbc.datasource.name")),
    "db_table": (template_words, ("db.collection.name", "db.sql.table", "db.mongodb.collection")),
    "db_statement": (
        template_statement,
        ("db.query.text", "db.statement", "sql.query", "jdbc.query[0]"),
    ),
    "db_summary": (template_statement, ("db.query.summary",)),
    "faas": (template_words, ("faas.invoked_name",)),
    "code_file": (plain, ("code.file.path", "code.filepath")),
    "code_line": (plain, ("code.line.number", "code.lineno")),
    "code_function": (plain, ("code.function.name", "code.function")),
    "library": (library_of, (SCOPE, "otel.library.name")),
}


def _names(*tables: _Table) -> Names:
    return {
        attribute: (field, form)
        for table in tables
        for field, (form, attributes) in table.items()
        for attribute in attributes
    }


@lru_cache(maxsize=1)
def _of_the_asked() -> Names:
    """List what is read of the callee's side, the features that were chosen included."""
    picked: _Table = {name: (plain, _written(*name.split(".", 1))) for name in sorted(chosen())}
    return _names(_BOTH, _ASKED, picked)


def _written(kind: str, name: str) -> tuple[str, ...]:
    """Name the attributes by which a chosen feature may stand on a span.

    Headers, as instrumentations capture them; entries of the baggage, as span processors copy
    them; and either as ``fit`` itself writes them at an edge.
    """
    others = {"header": (f"http.request.header.{name}",), "baggage": (f"baggage.{name}", name)}
    return (f"{fit.FEATURE}{kind}.{name}", *others.get(kind, ()))


_OF_THE_ASKING: Final = _names(_BOTH, _ASKING)


@lru_cache(maxsize=1)
def _of_both() -> Names:
    return _OF_THE_ASKING | _of_the_asked()


def wanted(kind: str) -> Names:
    """Attribute name → (field, form): all that is read from a span of this kind.

    Whoever serves a request knows its route, not who it is called by; whoever calls, the reverse.
    Reading both from both would make every client's address another operation. Only of a span that
    says no kind nobody knows which it is (:mod:`ldfi.lineage.unsaid_kinds`).
    """
    if not kind:
        return _of_both()
    return _of_the_asked() if kind in SERVING else _OF_THE_ASKING


SERVING: Final = frozenset({"server", "consumer"})
"""Kinds of span that are the callee's side of a call."""
