"""A request of a generated application: as it arrives at an edge, as its root span tells of it."""

from __future__ import annotations

from typing import Any

from benchmarks.generated_application import Asked
from ldfi.fit import asgi
from ldfi.fit.protocol.features import Features
from ldfi.lineage.attributes import wanted
from ldfi.lineage.operation import Operation, operation


def scope_of(asked: Asked) -> dict[str, Any]:
    """Make the ASGI scope of a request."""
    headers = [(name.encode(), value.encode()) for name, value in asked.headers.items()]
    return {
        "type": "http",
        "method": asked.method,
        "path": asked.path,
        "query_string": asked.query.encode(),
        "headers": [(b"host", b"www.example.org"), (b"accept", b"*/*"), *headers],
    }


def at_the_edge(asked: Asked) -> Features:
    """Read the features as the middleware does."""
    return asgi._features(scope_of(asked), body=asked.body or None)


def entry(asked: Asked, *, failed: bool = False, **marks: str) -> Operation:
    """Return what the root span of a request says. ``marks``: what an edge wrote on it."""
    said = {"http.request.method": asked.method, "url.path": asked.path, **asked.span}
    if asked.query:
        said["url.query"] = asked.query
    if "user-agent" in asked.headers:
        said["user_agent.original"] = asked.headers["user-agent"]
    if "x-plan" in asked.headers:
        said["http.request.header.x-plan"] = asked.headers["x-plan"]
    if "baggage" in asked.headers:
        said["baggage.plan"] = asked.headers["baggage"].removeprefix("plan=")
    known = wanted("server")
    fields = [(known[name][0], known[name][1](said[name])) for name in said if name in known]
    status = 2 if failed else 1
    return operation("edge", "request", "server", status, False, (*fields, *marks.items()))
