"""An operation: everything about a span but its identity and its times.

A service does the same few things over and over. What a span *means* (is it a call, of which
point, did it fail, what would the edge have known of the request) depends only on its service,
name, kind, status and the attributes we read, and those recur. So the meaning is worked out once
for each such combination and remembered; a span is then its ids, its times and a reference.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ldfi.fit.protocol import protocols
from ldfi.fit.protocol.chosen import KINDS as CHOSEN_KINDS
from ldfi.fit.protocol.features import MAX_VALUE_LENGTH, Features, request_features
from ldfi.fit.protocol.points import template_route, template_words
from ldfi.fit.protocol.predicate import fits
from ldfi.fit.protocol.urls import split_url
from ldfi.lineage import naming, outcome
from ldfi.lineage.attributes import SERVING, Fields, features_of_query
from ldfi.lineage.exporters import exports
from ldfi.lineage.text import clean

KINDS: Final = ("", "internal", "server", "client", "producer", "consumer")
"""Span kinds by their OTLP number. The empty one: nobody said."""

CACHE: Final = 16384
"""How many operations are remembered; a system has hundreds."""


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """What a span means. Compared by identity, which is quick: as long as it is remembered an equal
    operation is the same object, and whoever meets another one only works something out again."""

    service: str
    name: str
    kind: str
    failed: bool | None
    """None: the span says nothing about it."""
    refused: bool
    """A server's answer of the class 4xx: neither a failure nor the outcome that was asked for."""
    point: str | None
    """The injection point this span is a call of, if it is one."""
    peer: str
    """What a caller calls the other side; empty where it does not say."""
    route: str
    """Of a SERVER span: what it calls this kind of request."""
    features: Features
    """What the edge would have known, had this been a request arriving there."""
    fired: tuple[str, ...]
    """Kinds of fault that were injected here."""
    would_fire: tuple[str, ...]
    """Kinds of fault that would have been injected here, had it not been the control arm."""
    experiment: str
    arm: str
    detached: bool
    """Perhaps nobody waits for it: a consumed message, a span that merely follows from its
    parent. Its trace tells (:mod:`ldfi.lineage.waiting`)."""
    fields: Fields
    """What was read from the span."""

    @property
    def edge(self) -> bool:
        """Return whether this is a request as it came in at the edge: ``fit`` says so there."""
        return any(name == "edge" for name, _ in self.fields)

    @property
    def again(self) -> bool:
        """Return whether it is not the first request of its device under its experiment, as the
        edge says."""
        return any(name == "again" for name, _ in self.fields)

    @property
    def expired(self) -> bool:
        """Return whether a fault was meant for this call, and its failure context had run out."""
        return any(name == "expired" for name, _ in self.fields)

    @property
    def reach(self) -> str:
        """Return the points that an injector reports it can reach
        (:mod:`ldfi.fit.protocol.reach`)."""
        return next((value for name, value in self.fields if name == "reach"), "")

    @property
    def library(self) -> str:
        """Return which client library made it (:func:`ldfi.lineage.attributes.library_of`); empty
        where its scope does not say."""
        return next((value for name, value in self.fields if name == "library"), "")

    @property
    def mark(self) -> str:
        """Return the mark of a fault about to fire in this process (:mod:`ldfi.fit.protocol.mark`);
        empty on every span but those that say just that."""
        return next((value for name, value in self.fields if name == "mark"), "")

    @property
    def code(self) -> str:
        """Return where in the code it is made: ``src/play.py:41 (start)``, as far as the span says
        (https://opentelemetry.io/docs/specs/semconv/code/)."""
        known = dict(self.fields)
        place = ":".join(known[each] for each in ("code_file", "code_line") if each in known)
        function = known.get("code_function", "")
        said = f"{place} ({function})" if place and function else place or function
        return clean(said)

    @property
    def failure(self) -> str:
        """Return how it failed, if it did (:func:`ldfi.lineage.outcome.kind`)."""
        return outcome.kind(dict(self.fields))

    @property
    def doubtful(self) -> bool:
        """Return whether it did not fail, as far as is known, and something on it speaks for a
        failure."""
        return self.failed is not True and outcome.doubtful(dict(self.fields))

    @property
    def may_have_thrown(self) -> bool:
        """Return whether an exception that is recorded as an event tells how it ended, or leaves a
        doubt: only of a call, or what may be one. Who serves may have handled it."""
        return self.failed is not True and (self.point is not None or not self.kind)

    @property
    def serves(self) -> bool:
        """Return whether this is the callee's side of a call."""
        return self.kind in SERVING


@lru_cache(maxsize=CACHE)
def operation(
    service: str,
    name: str,
    kind: str,
    status: int,
    exception: bool,
    fields: Fields,
    follows: bool = False,
) -> Operation:
    """Make the operation of a span. ``exception``: an event tells of an exception, which counts
    where it :attr:`~Operation.may_have_thrown`."""
    known = dict(fields)
    service = clean(service) or "unknown"
    features = _features(name, known)
    telemetry = exports(features) and "point" not in known
    point = None if telemetry else naming.point_of(service, name, kind, known)
    thrown = exception and (point is not None or not kind)
    failed = outcome.failed(status, known, thrown)
    if failed is False and (thrown or status == outcome.STATUS_ERROR):  # overruled: a doubt
        fields = (*fields, ("said", "ERROR"))
    features = _features(name, known)
    return Operation(
        service=service,
        name=clean(template_words(name)),
        kind=kind,
        failed=failed,
        refused=kind == "server" and known.get("status", "").startswith("4"),
        point=None if point is None else clean(point),
        peer=clean(naming.peer_of(known)),
        route=clean(_route(name, known)) if kind in SERVING else "",
        features={clean(feature): clean(value) for feature, value in features.items()},
        fired=tuple(map(clean, outcome.kinds_of(known.get("fired", "")))),
        would_fire=tuple(map(clean, outcome.kinds_of(known.get("would_fire", "")))),
        experiment=clean(known.get("experiment", "")),
        arm=clean(known.get("arm", "")),
        detached=follows or kind == "consumer",
        fields=fields,
    )


@lru_cache(maxsize=CACHE)
def calls_inside(what: Operation) -> int:
    """Return how many calls a span says that were made right inside it; 0 where it says nothing."""
    said = next((value for name, value in what.fields if name == "calls"), "")
    return int(said) if said.isdecimal() else 0


@lru_cache(maxsize=CACHE)
def arrival_point(caller: str, callee: Operation) -> str:
    """Name the point of a call of which only the callee's SERVER span was recorded."""
    return clean(naming.arrival_point(caller, callee.service, callee.name, dict(callee.fields)))


def _route(name: str, known: dict[str, str]) -> str:
    route = known.get("route")
    if "graphql_name" in known or "graphql_type" in known:
        asked = f"{known.get('graphql_type', '')} {known.get('graphql_name', '')}".strip()
        return f"{template_route(route)} {asked}" if route else asked
    if not route:
        return template_words(name)
    method = known.get("method", "")
    return f"{method} {template_route(route)}".strip()


def _features(name: str, known: dict[str, str]) -> Features:
    named = _NAMED.fullmatch(name)
    method = known.get("method", "") or (named[1] if named else "")
    jsonrpc = known.get("rpc", "") == "jsonrpc"
    if "rpc_method" in known and not jsonrpc:
        # gRPC is POST /service/method on the wire, so an edge can see it
        called, service = known["rpc_method"].lstrip("/"), known.get("rpc_service", "")
        path = f"/{service}/{called}" if service and "/" not in called else f"/{called}"
        return {**request_features("POST", path), **_of_the_client(known)}
    if not method:
        return {"operation": template_words(name)}
    url = split_url(known.get("target") or known.get("url") or "")
    path, route = known.get("path") or url.path, known.get("route", "")
    told = "/" + template_route(route or (named[2] if named else "/")).lstrip("/")
    query = features_of_query(known.get("query") or url.query)
    asked = dict(request_features(method, path or told))  # some say no path but what it fits
    route = _routed(asked["path"], route) if path else asked["path"]
    # what stands in its places, no rule takes for an identifier
    if route != asked["path"] or (not path and "*" in told):
        asked |= {"path": route, "route": route}
    features = {**asked, **query, **_of_the_client(known)}
    if jsonrpc:
        features.update(protocols.jsonrpc([known.get("rpc_method", "")]))
    if "graphql_name" in known:
        features.update(protocols.graphql_named(known["graphql_name"]))
    elif "graphql_document" in known:
        features.update(features_of_query(known["graphql_document"]))
    return features


_NAMED: Final = re.compile(r"(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (/\S*)", re.ASCII)
"""What a request that says nothing else is called."""


def _routed(path: str, route: str) -> str:
    """Return the template that the service itself has for a path; the path, where it fits none.

    An application that is mounted in another one knows the end of it only.
    """
    template = template_route(route if route.startswith("/") else f"/{route}")
    if "*" not in template:
        return path
    more = path.count("/") - template.count("/")
    if more > 0:
        template = "/".join(path.split("/")[: more + 1]) + template
    return template if fits(template, path) else path


def _of_the_client(known: dict[str, str]) -> Features:
    """Return who asks: the kind of device, and what was chosen of headers, cookies and baggage."""
    features = {"device": known["device"]} if "device" in known else {}
    given = [(f, v) for f, v in known.items() if f.partition(".")[0] in CHOSEN_KINDS and "." in f]
    features.update((feature, value[:MAX_VALUE_LENGTH]) for feature, value in given)
    return features
