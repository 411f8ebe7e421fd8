"""Request classes in sentences that need no knowledge of ours to be read."""

from __future__ import annotations

from typing import Final

from ldfi.dashboards.words import listed
from ldfi.fit.protocol.predicate import Condition, Predicate

_FEATURES: Final = {
    "method": "the method",
    "path": "the path",
    "route": "the path, by its template,",
    "device": "the device type",
    "protocol": "the protocol",
    "graphql.operation": "the operation of GraphQL",
    "graphql.hash": "the hash of the persisted query",
    "graphql.type": "the type of operation",
    "jsonrpc.method": "the method of JSON-RPC",
}
_GROUPS: Final = {
    "query": "query parameter",
    "header": "header",
    "cookie": "cookie",
    "baggage": "entry of the baggage",
    "falcor": "path prefix",
    "graphql": "GraphQL",
}


def said_predicate(predicate: Predicate) -> str:
    """Say ``Requests in which the method is GET, the path is /boot and there is no query
    parameter “page”.``"""
    if not predicate.conditions:
        return "Every request."
    return f"Requests in which {listed(map(_condition, predicate.conditions))}."


def said_difference(predicate: Predicate) -> str:
    """Say by what requests differ from others that enter at the same place: ``path prefix “videos”,
    no query parameter “page”``; empty where by nothing."""
    more = [c for c in predicate.conditions if c.feature not in _WHERE]
    return ", ".join(_told_apart(condition) for condition in more)


_WHERE: Final = frozenset(
    {"operation", "method", "path", "route", "graphql.operation", "graphql.hash", "jsonrpc.method"}
)


def _told_apart(condition: Condition) -> str:
    what = _named(condition.feature).removeprefix("the ")
    if condition.value is None:
        return f"no {what}" if condition.negated else what
    return f"{what} {'not ' if condition.negated else ''}{condition.value}"


def _named(feature: str) -> str:
    """Name a feature: ``the header “x-plan”``."""
    group, _, name = feature.partition(".")
    if feature in _FEATURES:
        return _FEATURES[feature]
    return f"the {_GROUPS.get(group, group)} “{name}”" if name else f"the feature “{feature}”"


def _condition(condition: Condition) -> str:
    what = _named(condition.feature)
    if condition.value is None:
        bare = what.removeprefix("the ")
        article = "no" if condition.negated else "an" if bare[0] in "aeiou" else "a"
        return f"there is {article} {bare}"
    return f"{what} is {'not ' if condition.negated else ''}{condition.value}"
