"""What a request asks for, where its path does not say: Falcor, GraphQL and JSON-RPC.

All of them send every request to one address. What tells requests apart is in the query or in the
body: the paths of Falcor's model, the operation of GraphQL, the method of JSON-RPC. Ids, ranges and
arguments are left out; of a body nothing else is looked at. Pure, and raises nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from ldfi.fit.protocol.points import template_path

MOST_PATHS: Final = 50
"""Paths of one Falcor request that are looked at."""

MOST_PREFIXES: Final = 32
DEEPEST: Final = 5
"""Keys of a path that are looked at."""

_LONGEST: Final = 40
_HASH: Final = 12
"""Characters of a persisted query's hash that are kept."""

_MOST_FIELDS: Final = 16
_NAME: Final = re.compile(r"[_A-Za-z][_0-9A-Za-z]*")
_TOKEN: Final = re.compile(
    r'#[^\n]*|"""(?:[^"\\]|\\.|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"'
    r"|\.\.\.|[_A-Za-z][_0-9A-Za-z]*|[{}()\[\]:@$!=|&]"
)
_TYPES: Final = frozenset({"query", "mutation", "subscription"})


def word(text: str) -> str:
    """Keep a word that looks like no identifier; ``*`` for any other."""
    if len(text) > _LONGEST or template_path("/" + text.replace("/", "%2F")) == "/*":
        return "*"
    return text


def asked_by_query(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Read what a query string asks for; nothing where it speaks none of these."""
    named: dict[str, list[str]] = {}
    for name, value in pairs:
        if name in _TELLING:
            named.setdefault(name, []).append(value)
    if not named:
        return {}
    paths = [*named.get("path", ()), *named.get("paths", ())]
    if any(value.lstrip().startswith("[") for value in paths):
        return _falcor(paths)
    given = {name: values[0] for name, values in named.items()}
    text = given.get("query", "")
    if text and not is_document(text):
        text = ""
    if text or "operationName" in given or "persistedQuery" in given.get("extensions", ""):
        given["query"] = text
        return _graphql([{**given, "extensions": _json(given.get("extensions", ""))}])
    return {}


def is_document(text: str) -> bool:
    """Return whether a text begins as a document of GraphQL's does: ``query=flights`` is none."""
    return _DOCUMENT.match(text) is not None


_TELLING: Final = frozenset({"path", "paths", "query", "operationName", "extensions"})
_DOCUMENT: Final = re.compile(r"\s*(?:\{|(?:query|mutation|subscription)\b|#|fragment\b)")


def asked_by_body(body: bytes) -> dict[str, str]:
    """Read what a JSON body asks for; nothing where it speaks none of these."""
    whole = _json(body)
    calls = [
        each
        for each in (whole if isinstance(whole, list) else [whole])[:_MOST_FIELDS]
        if isinstance(each, dict)
    ]
    if any(isinstance(each.get("jsonrpc"), str) for each in calls):
        return jsonrpc(str(each.get("method", "")) for each in calls)
    if any({"query", "operationName", "extensions"} & each.keys() for each in calls):
        return _graphql(calls)
    return {}


def jsonrpc(methods: Iterable[str]) -> dict[str, str]:
    """Name the methods that are called, each once and in order."""
    named = sorted({word(each) for each in methods if each})
    return {"protocol": "jsonrpc", "jsonrpc.method": ",".join(named)} if named else {}


def graphql_named(operation: str) -> dict[str, str]:
    """Name an operation of which nothing but its name is known."""
    return {"protocol": "graphql", "graphql.operation": word(operation)}


def graphql_document(text: str) -> dict[str, str]:
    """Read a document: its operation's name, or else its type and its top-level fields."""
    return _graphql([{"query": text}])


def _graphql(calls: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    features = {"protocol": "graphql"}
    names, hashes = set(), set()
    for call in calls:
        text = call.get("query")
        kind, named, fields = _document(text) if isinstance(text, str) and text else ("", "", ())
        name = call.get("operationName") or named
        if name and isinstance(name, str):
            names.add(word(name))
        elif persisted := _persisted(call.get("extensions")):
            hashes.add(persisted)
        elif kind:
            features["graphql.type"] = kind
            features.update((f"graphql.field.{field}", "") for field in fields)
    if names:
        features["graphql.operation"] = ",".join(sorted(names))
    if hashes:
        features["graphql.hash"] = ",".join(sorted(hashes))
    return features


def _persisted(extensions: object) -> str:
    query = extensions.get("persistedQuery") if isinstance(extensions, dict) else None
    sha = query.get("sha256Hash") if isinstance(query, dict) else None
    return sha[:_HASH] if isinstance(sha, str) and sha.isalnum() else ""


@lru_cache(maxsize=256)
def _document(text: str) -> tuple[str, str, tuple[str, ...]]:
    """Read type, name and top-level fields of a document's first operation."""
    signs = [t for t in _TOKEN.findall(text[:8192]) if t[0] not in '#"']
    at = 0
    while at < len(signs) and signs[at] not in _TYPES and signs[at] != "{":
        at = _behind_block(signs, at)  # a fragment that stands before the operation
    if at >= len(signs):
        return "", "", ()
    kind, name = ("query", "") if signs[at] == "{" else (signs[at], "")
    if signs[at] != "{" and at + 1 < len(signs) and _NAME.fullmatch(signs[at + 1]):
        name = signs[at + 1]
    return kind, name, tuple(sorted(set(_top_level(signs, at)))[:_MOST_FIELDS])


def _behind_block(signs: Sequence[str], at: int) -> int:
    depth = 0
    while at < len(signs):
        depth += (signs[at] == "{") - (signs[at] == "}")
        at += 1
        if not depth and signs[at - 1] == "}":
            break
    return at


def _top_level(signs: Sequence[str], at: int) -> Iterator[str]:
    """List the fields right inside an operation: by their names, not by their aliases."""
    braces = others = 0
    for place in range(at, len(signs)):
        sign = signs[place]
        braces += (sign == "{") - (sign == "}")
        others += (sign in "([") - (sign in ")]")
        after = signs[place + 1] if place + 1 < len(signs) else ""
        before = signs[place - 1] if place else ""
        plain = _NAME.fullmatch(sign) and after != ":" and before not in ("@", "...", "$")
        if braces == 1 and not others and plain and place > at and (before != "on"):
            yield sign
        if not braces and sign == "}":
            return


def _falcor(values: Iterable[str]) -> dict[str, str]:
    """Give each prefix of each path a feature: ``falcor.videos``, ``falcor.videos.*.title``."""
    found: dict[str, str] = {}
    left = MOST_PATHS
    for value in values:
        whole = _json(value)
        several = isinstance(whole, list) and all(isinstance(each, list) for each in whole)
        paths = whole if several else [whole]
        for path in paths[:left]:
            if isinstance(path, list):
                found.update(dict.fromkeys(_prefixes(path), ""))
        left -= min(left, len(paths))
        if whole is None and value.lstrip().startswith("["):
            found["unread"] = "query"  # cut off, perhaps
    if not found:
        return {}
    return {"protocol": "falcor", **dict(sorted(found.items())[:MOST_PREFIXES])}


def _prefixes(path: Sequence[Any]) -> Iterator[str]:
    """List the prefixes of a path that end in a word; a set of keys makes one for each."""
    prefixes = ["falcor"]
    for keys in path[:DEEPEST]:
        if isinstance(keys, list):
            named = sorted({_key(each) for each in keys})
            prefixes = [f"{prefix}.{key}" for prefix in prefixes for key in named][:MOST_PREFIXES]
            yield from (each for each in prefixes if not each.endswith("*"))
            continue
        key = _key(keys)
        prefixes = [f"{prefix}.{key}" for prefix in prefixes]
        if key != "*":
            yield from prefixes


def _key(key: object) -> str:
    """Keep a key that is a word; ids, ranges and numbers are ``*``."""
    return _word_of_path(key) if isinstance(key, str) and key else "*"


@lru_cache(maxsize=4096)
def _word_of_path(key: str) -> str:
    return word(key).replace(".", "_")


_decoded = json.JSONDecoder().decode


def _json(text: str | bytes) -> Any:
    try:
        return _decoded(text.decode() if isinstance(text, bytes) else text) if text else None
    except (ValueError, RecursionError):
        return None
