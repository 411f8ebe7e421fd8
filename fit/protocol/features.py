"""Request features: what is known of a request when it arrives at the edge.

A request class is a predicate over these. The edge computes them from the request, ``lineage``
from the root span of its trace; both through this module, so that what is learned can be
evaluated. Their names, by family:

=====================  ====================================================================
``method``, ``path``   the path with what looks like an identifier wildcarded
``query.NAME``         the value, or ``*`` where it looks like an identifier or is long;
                       the values of a repeated parameter, joined by commas
``falcor.PREFIX``      one for each prefix of the paths that are asked of a Falcor model
``graphql.…``          ``operation``, or else ``hash``, or else ``type`` and ``field.NAME``
``jsonrpc.method``     the method, where the body may be read
``protocol``           ``falcor``, ``graphql`` or ``jsonrpc``
``device``             the kind of device, by its ``User-Agent``
``header.…``           headers that were chosen (:mod:`ldfi.fit.protocol.chosen_features`), and
                       likewise ``cookie.…`` and ``baggage.…``
``unread``             ``body`` or ``query``: what may tell more, and was not read
=====================  ====================================================================
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl, unquote, unquote_to_bytes

from ldfi.fit.protocol.chosen_features import chosen
from ldfi.fit.protocol.device_type import device_type
from ldfi.fit.protocol.points import template_path
from ldfi.fit.protocol.request_protocols import asked_by_body, asked_by_query, graphql_named

Features = Mapping[str, str]

FAMILIES: Final = frozenset(
    {
        *("operation", "method", "path", "query", "header"),
        *("route", "protocol", "falcor", "graphql", "jsonrpc", "device", "cookie", "baggage"),
    }
)
"""What the names of features begin with, as far as this version knows them."""

FIRST_FAMILIES: Final = frozenset({"operation", "method", "path", "query", "header"})
"""The families that edges before version 0.3 know."""

HIDDEN: Final = frozenset({"protocol", "falcor", "graphql", "jsonrpc"})
"""Families of which what was not read may tell more."""

OPERATION_HEADER: Final = "x-apollo-operation-name"
READ: Final = frozenset({"user-agent", "cookie", "baggage", "content-type", OPERATION_HEADER})
"""Headers that are looked at besides those that were chosen."""

MAX_VALUE_LENGTH = 24
MAX_QUERY_PARAMETERS = 20
MAX_LENGTH = 2048
"""Characters of a path that are looked at; whatever follows is a stranger's text."""

MAX_QUERY_LENGTH = 8192
"""The same of a query."""


def request_features(
    method: str,
    path: str,
    query: str = "",
    headers: Iterable[tuple[str, str]] = (),
    body: bytes | None = None,
    wanted: Collection[str] | None = None,
) -> Features:
    """Read the features of one HTTP request.

    ``query`` is the raw query string, without ``?``; the names of ``headers`` are in small letters.
    ``body``: None where it was not read. ``wanted``: features by headers, cookies and baggage,
    where it is not those that were chosen in the environment.
    """
    features = {"method": method.upper(), "path": template_path(path[:MAX_LENGTH])}
    if query:
        features.update(query_features(query[:MAX_QUERY_LENGTH]))
    if headers:
        _add_headers(features, headers, chosen() if wanted is None else wanted, body)
    if body:
        features.update(asked_by_body(body))
    return features


def chosen_features(headers: Iterable[tuple[str, str]], wanted: Collection[str]) -> Features:
    """Read of some headers, cookies and entries of the baggage those that are wanted."""
    features: dict[str, str] = {"method": ""}
    _add_headers(features, headers, wanted, None)
    return {name: value for name, value in features.items() if name in wanted}


def query_pairs(query: str) -> list[tuple[str, str]]:
    """Split a query string as ``parse_qsl`` does that keeps blank values, only faster: paths of
    Falcor are full of what JSON is made of."""
    if not query.isascii():
        return parse_qsl(query, keep_blank_values=True)
    parts = (part.partition("=") for part in query.replace("+", " ").split("&") if part)
    return [(_unquoted(name), _unquoted(value)) for name, _, value in parts]


_QUOTED: Final = tuple((f"%{ord(each):02X}", each) for each in '"[],:{} ')


def _unquoted(text: str) -> str:
    if "%" in text:
        for quoted, plain in _QUOTED:
            text = text.replace(quoted, plain)
        if "%" in text:
            return unquote_to_bytes(text).decode("utf-8", "replace")
    return text


@lru_cache(maxsize=512)
def query_features(query: str) -> Features:
    """Read the features of a query string."""
    pairs = query_pairs(query)[:MAX_QUERY_PARAMETERS]
    features = asked_by_query(pairs)
    said = _SAID.get(features.get("protocol", ""), frozenset())
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        if name not in said:
            values.setdefault(_template_value(name), []).append(_template_value(value))
    features.update((f"query.{name}", _together(each)) for name, each in values.items())
    return features


_SAID: Final = {
    "falcor": frozenset({"path", "paths"}),
    "graphql": frozenset({"query", "operationName", "variables", "extensions"}),
}
"""Parameters whose values say nothing beyond what was read in them."""


def _add_headers(
    features: dict[str, str],
    headers: Iterable[tuple[str, str]],
    wanted: Collection[str],
    body: bytes | None,
) -> None:
    for name, value in headers:
        if f"header.{name}" in wanted:
            features[f"header.{name}"] = value[:MAX_VALUE_LENGTH]
        if name not in READ:
            continue
        if name == "user-agent":
            features["device"] = device_type(value)
        elif name == OPERATION_HEADER:
            features.update(graphql_named(value))
        elif name == "cookie":
            _add_entries(features, "cookie", value.split(";"), wanted)
        elif name == "baggage":
            _add_entries(features, "baggage", value.split(","), wanted)
        elif body is None and "json" in value and features["method"] not in {"GET", "HEAD"}:
            features["unread"] = "body"


def _together(values: list[str]) -> str:
    """Write all values of a repeated parameter as one."""
    joined = ",".join(sorted(set(values))) if len(values) > 1 else values[0]
    return joined if len(joined) <= MAX_VALUE_LENGTH else "*"


def _add_entries(
    features: dict[str, str], kind: str, entries: Iterable[str], wanted: Collection[str]
) -> None:
    if not any(name.startswith(kind) for name in wanted):
        return
    for entry in entries:
        name, _, value = entry.partition(";")[0].partition("=")
        feature = f"{kind}.{name.strip()}"
        if feature in wanted:
            features[feature] = _template_value(unquote(value.strip()))


def _template_value(value: str) -> str:
    if len(value) > MAX_VALUE_LENGTH or template_path("/" + value.replace("/", "%2F")) == "/*":
        return "*"
    return value
