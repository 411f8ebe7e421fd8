"""Writes what a request asks for where its path does not say it: Falcor, GraphQL and JSON-RPC.

What is known of such a request are its features (:mod:`ldfi.fit.protocol.request_protocols`), and
these hold no ids, no arguments and no documents. So there are holes where they were: whoever sends
the request says what goes there, and nothing else is sent in its stead. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from ldfi.fit.protocol.features import Features
from ldfi.fit.protocol.request_protocols import DEEPEST, MOST_PREFIXES
from ldfi.scenarios.redaction import HOLE, tells, worded

WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
"""Methods whose requests have a body, as a rule."""

AGENTS: Final[Mapping[str, str]] = {
    "tv": "ldfi (smart-tv)",
    "console": "ldfi (playstation)",
    "tablet": "ldfi (tablet)",
    "phone": "ldfi (mobile)",
    "desktop": "ldfi (x11)",
    "bot": "ldfi (bot)",
}
"""A ``User-Agent`` of each kind of device (:mod:`ldfi.fit.protocol.device_type`)."""


@dataclass(frozen=True, slots=True)
class AskedFor:
    """``query``: pairs for the query string, in order. ``body``: None where there is none."""

    query: Sequence[tuple[str, str]] = ()
    body: Any = None


def asked(features: Features, defining: Collection[str]) -> AskedFor:
    """Write what a request with these features asks for.

    ``defining``: the names of those that make its class, which stay as they are. Of others a name
    stays where it is made of words.
    """
    method, protocol = features.get("method", "GET"), features.get("protocol", "")
    if protocol == "falcor":
        return AskedFor(query=[("path", each) for each in _falcor(features, defining)])
    if protocol == "graphql":
        calls = _graphql(features, defining)
        if method in WITH_BODY:
            return AskedFor(body=calls[0] if len(calls) == 1 else calls)
        return AskedFor(query=[(n, _text(v)) for call in calls for n, v in call.items()])
    if protocol == "jsonrpc":
        called = [
            {"jsonrpc": "2.0", "id": number, "method": name, "params": HOLE}
            for number, name in enumerate(_named("jsonrpc.method", features, defining), start=1)
        ]
        return AskedFor(body=called[0] if len(called) == 1 else called)
    return AskedFor(body=HOLE if method in WITH_BODY else None)


def query_string(pairs: Iterable[tuple[str, str]]) -> str:
    """Write a query as people read it, brackets, holes and all, and as it is read again by whom it
    is sent to: nothing in a name or a value is taken for what separates them."""
    written = ((_quoted(name).replace("=", "%3D"), _quoted(value)) for name, value in pairs)
    return "&".join(f"{name}={value}" if value else name for name, value in written)


def _quoted(text: str) -> str:
    return _SEPARATES.sub(lambda found: quote(found[0], safe=""), text)


_SEPARATES: Final = re.compile(r"[%&#+;\x00-\x1f\x7f]")


def _falcor(features: Features, defining: Collection[str]) -> list[str]:
    """Write a path for each prefix that no other one goes on from.

    A path of one key, or of as many as are looked at, is taken to have gone on.
    """
    paths = {_keys(name) for name in features if name.startswith("falcor.")}
    kept = {_keys(name) for name in defining if name.startswith("falcor.")}
    inner = {path[:length] for path in paths for length in range(1, len(path))}
    written = {_worded(path, kept) for path in paths - inner}
    whole = [
        [*path, HOLE] if len(path) == 1 or len(path) >= DEEPEST else [*path]
        for path in sorted(written)
    ]
    more = [] if paths and len(paths) < MOST_PREFIXES else [HOLE]
    return [json.dumps(path, separators=(",", ":"), ensure_ascii=False) for path in whole] + more


def _keys(name: str) -> tuple[str, ...]:
    return tuple(name.split(".")[1:])


def _worded(path: tuple[str, ...], kept: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Put holes where a key may name somebody: it is not made of words, or stands behind a word for
    people, and the class is not about it."""
    told = max((_common(path, each) for each in kept), default=0)
    return tuple(
        key if place < told or (worded(key) and not (place and tells(path[place - 1]))) else HOLE
        for place, key in enumerate(path)
    )


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Count the keys with which both begin."""
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return length


def _graphql(features: Features, defining: Collection[str]) -> list[dict[str, Any]]:
    """Write the operations, as a client would post them."""
    calls: list[dict[str, Any]] = [
        {"operationName": name, "query": HOLE}
        for name in _named("graphql.operation", features, defining)
    ]
    for persisted in filter(None, features.get("graphql.hash", "").split(",")):
        query = {"version": 1, "sha256Hash": persisted + HOLE}
        calls.append({"extensions": {"persistedQuery": query}})
    if not calls:
        fields = sorted(n.removeprefix(_FIELD) for n in features if n.startswith(_FIELD))
        kind = features.get("graphql.type", "")
        text = f"{kind} {{ {' '.join(f'{each} {HOLE}' for each in fields)} }}"
        calls.append({"query": text if kind and fields else HOLE})
    return calls


_FIELD: Final = "graphql.field."


def _named(feature: str, features: Features, defining: Collection[str]) -> list[str]:
    """List the operations or methods that a feature names."""
    names = list(filter(None, features.get(feature, "").split(",")))
    return [name if feature in defining or worded(name) else HOLE for name in names]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
