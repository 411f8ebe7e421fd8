"""Points, faults and experiments in sentences that need no knowledge of ours to be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ldfi.dashboards.words import listed
from ldfi.experiments.analyze.words import happens
from ldfi.experiments.domain.campaign.fold import DOWN
from ldfi.fit.points import Point
from ldfi.fit.predicate import Condition, Predicate

_CALLS: Final = {
    "http": ("call to", "{operation} {template}"),
    "rpc": ("call to", "{operation} {template}"),
    "db": ("query to", "{operation} {template}"),
    "cache": ("look-up in the cache", "{operation} {peer}"),
    "message": ("message to", "{template}"),
}
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


def said_point(point: str, callees: Mapping[str, str] | None = None) -> str:
    """Say ``api's call to ratings (GET /titles/*)``; a name that is none of ours stays as it is."""
    read = Point.parse(point)
    callee = (callees or {}).get(point) or read.peer
    if read.kind == "function" and read.caller != "unknown":
        return f"{read.caller}'s {read.operation}()"
    if read.kind not in _CALLS:
        return point
    verb, detail = _CALLS[read.kind]
    what = detail.format(
        operation=read.operation,
        template=read.template if read.kind in {"http", "rpc"} else read.template.lstrip("/"),
        peer=read.peer,
    ).strip()
    target = "" if read.kind == "cache" else f" {callee or 'somewhere'}"
    return f"{read.caller}'s {verb}{target}" + (f" ({what})" if what else "")


def said_fault(fault: str, callees: Mapping[str, str] | None = None) -> str:
    """Say ``api's call to ratings (GET /titles/*) fails``; a fault domain ``is down``."""
    kind, _, where = fault.partition("@")
    if fault.startswith(DOWN):
        return f"all of {where} is down"
    return f"{said_point(where, callees)} {happens(kind)}"


def said_together(faults: Iterable[str], callees: Mapping[str, str] | None = None) -> str:
    """Say all of them in one sentence."""
    said = [said_fault(fault, callees) for fault in faults]
    return listed(said)


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


def said_outcome(counts: Mapping[str, Any]) -> str:
    """Say what users saw: how many devices failed in either arm. Empty where nobody was treated."""
    treated, control = counts.get("treatment"), counts.get("control")
    if not treated or not control or not treated["devices"]:
        return ""
    met = "that met these failures"
    if treated["failures"]:
        met = f"{_of(treated)} {met} did not get what they asked for"
    else:
        met = f"Of {_devices(treated['devices'])} {met}, all got what they asked for"
    if not control["devices"]:
        return f"{met}."
    if not control["failures"]:
        return f"{met}; of {_devices(control['devices'])} that did not meet them, none failed."
    too = " as well" if treated["failures"] else ""
    return f"{met}; of those that did not meet them, {_of(control)} failed{too}."


def _of(arm: Mapping[str, Any]) -> str:
    if arm["failures"] == arm["devices"]:
        return f"All {_devices(arm['devices'])}" if arm["devices"] > 1 else "The one device"
    return f"{arm['failures']} of {_devices(arm['devices'])}"


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count:,} devices"
