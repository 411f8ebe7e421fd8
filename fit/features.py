"""Request features: what is known of a request when it arrives at the edge.

A request class is a predicate over these. The edge computes them from the request, ``lineage``
from the root span of its trace; both through this module, so that what is learned can be
evaluated. Feature names: ``method``, ``path`` (templated), ``query.NAME`` (value, or ``*`` where
it looks like an identifier or is long), ``header.NAME`` for the chosen headers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import parse_qsl

from ldfi.fit.points import template_path

Features = Mapping[str, str]

HEADERS = ("x-device-type",)
"""Headers that become features. Low cardinality only: each value may become a class."""

MAX_VALUE_LENGTH = 24
MAX_QUERY_PARAMETERS = 20
MAX_LENGTH = 2048
"""Characters of a path and of a query that are looked at; whatever follows is a stranger's text."""


def request_features(
    method: str, path: str, query: str = "", headers: Iterable[tuple[str, str]] = ()
) -> Features:
    """Read the features of one HTTP request. ``query`` is the raw query string, without ``?``."""
    features = {"method": method.upper(), "path": template_path(path[:MAX_LENGTH])}
    if query:
        features.update(_query_features(query[:MAX_LENGTH]))
    for name, value in headers:
        if name in HEADERS:
            features[f"header.{name}"] = value[:MAX_VALUE_LENGTH]
    return features


@lru_cache(maxsize=1024)
def _query_features(query: str) -> Features:
    pairs = parse_qsl(query, keep_blank_values=True)[:MAX_QUERY_PARAMETERS]
    return {f"query.{_template_value(name)}": _template_value(value) for name, value in pairs}


def _template_value(value: str) -> str:
    if len(value) > MAX_VALUE_LENGTH or template_path("/" + value.replace("/", "%2F")) == "/*":
        return "*"
    return value
