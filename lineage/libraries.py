"""Which client library a call was made by, read from the scope of its span.

OpenTelemetry names whoever made a span: its instrumentation scope (``otel.scope.name`` in formats
that have no scopes of their own). Instrumentations are named after what they instrument, each
language in its own way, so one rule for each language finds the library; a table has the few that
are published elsewhere. Injectors report libraries by the same names
(:mod:`ldfi.fit.protocol.reach`), and ``fit/protocol/vectors/libraries.json`` holds both ends to it
in every language.

A scope of none of these forms is a tracer of the application's own: it says nothing about the
library. ``fit``'s own spans name ``fit``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from ldfi.fit.protocol.reach import OWN

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
