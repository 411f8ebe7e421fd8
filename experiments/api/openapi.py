"""The OpenAPI document: what FastAPI finds out by itself, and what all routes have in common.

Said once here instead of on each route: the problem documents it may answer with, the role it
needs, the ``Idempotency-Key``, and a summary, which is the first sentence of its docstring. A route
names in ``responses`` only the problems that nobody could guess from its shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.routing import APIRoute

from ldfi.experiments.api import problems
from ldfi.experiments.api.examples import example_of
from ldfi.experiments.api.idempotency import HEADER, KEY_PATTERN, IdempotentRoute
from ldfi.experiments.api.routes import CHANGING, GuardedRoute

Document = dict[str, Any]

_SENTENCE = re.compile(r"(.+?)(?:[.;](?=\s|$)|$)", re.DOTALL)
_IDEMPOTENCY_KEY: Document = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Sent again with the same key, the request is done once. Kept for 24 hours.",
    "schema": {"type": "string", "pattern": KEY_PATTERN},
    "example": "8e03978e-40d5-43dd-bc93-6894a57f9324",
}


def install(app: FastAPI, routers: Iterable[APIRouter]) -> None:
    """Include these routers, and have ``app.openapi()`` give the whole document."""
    plain = app.openapi
    routes = []
    for router in routers:
        app.include_router(router)
        routes += [route for route in router.routes if isinstance(route, APIRoute)]

    def openapi() -> Document:
        if app.openapi_schema is None:
            _complete(plain(), routes)
        assert app.openapi_schema is not None  # noqa: S101 - `plain` has set it
        return app.openapi_schema

    def allowed(request: Request) -> list[str]:
        path = request.url.path
        return sorted(
            {m for each in routes if each.path_regex.match(path) for m in each.methods or ()}
        )

    app.state.allowed = allowed
    app.openapi = openapi  # type: ignore[method-assign]


def operation_id(route: APIRoute) -> str:
    """Name an operation as generated clients have it."""
    return f"{route.tags[0]}_{route.name}" if route.tags else route.name


def _complete(document: Document, routes: list[APIRoute]) -> None:
    for route in routes:
        for method in route.methods or ():
            operation = document["paths"][route.path_format].get(method.lower())
            if operation is not None:
                _describe(operation, route, method)
    components = document["components"]
    _give_examples(operations(document), components["schemas"])
    for name in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(name, None)
    components["schemas"]["Problem"] = problems.SCHEMA
    components["responses"] = {
        _component(status): problems.described(status) for status in problems.STATUSES
    }


def _describe(operation: Document, route: APIRoute, method: str) -> None:
    text = " ".join(operation["description"].split())
    found = _SENTENCE.match(text)
    operation["summary"] = found[1] if found else text
    if isinstance(route, GuardedRoute):
        role = route.guards()[0].role
        operation["description"] += f"\n\nRole: `{role}`."
        operation["x-role"] = role
    if isinstance(route, IdempotentRoute) and method in CHANGING:
        operation.setdefault("parameters", []).append(_IDEMPOTENCY_KEY)
    responses = operation["responses"]
    for status in {int(code) for code in responses if int(code) >= 400} | _usual(route, method):
        responses[str(status)] = {"$ref": f"#/components/responses/{_component(status)}"}
    operation["responses"] = dict(sorted(responses.items()))


def operations(document: Document) -> Iterator[Document]:
    """Yield every operation of a document."""
    for path in document["paths"].values():
        yield from path.values()


def _give_examples(operations: Iterable[Document], schemas: Document) -> None:
    """Have each answer that is JSON show an example, made of those of its fields."""
    for operation in operations:
        for response in operation["responses"].values():
            for kind, content in response.get("content", {}).items():
                if kind == "application/json" and "example" not in content:
                    content["example"] = example_of(content["schema"], schemas)


def _usual(route: APIRoute, method: str) -> set[int]:
    """List the problems that the shape of a route lets one expect."""
    if not isinstance(route, GuardedRoute):
        return set()
    statuses = {401, 403, 422, 429, 500, 503}
    if route.param_convertors:
        statuses |= {404}
    if method in CHANGING:
        statuses |= {400, 413}
    if route.body_field is not None:
        statuses |= {415}
    if isinstance(route, IdempotentRoute) and method in CHANGING:
        statuses |= {409}
    return statuses


def _component(status: int) -> str:
    return f"Problem{status}"
