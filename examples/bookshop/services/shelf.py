"""The services behind the page, in Flask: ``python shelf.py``, ``OTEL_SERVICE_NAME`` says which.

The catalogue knows whether a book is there by the stock, and where that is away by the warehouse;
nothing replaces both. Prices do without discounts. ``stock.py`` and ``recommendations.py`` are
shelves that ask a store.
"""

from __future__ import annotations

import os
from typing import Any

import requests
from flask import Flask, abort, jsonify
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.instrumentation.wsgi import OpenTelemetryMiddleware
from telemetry import set_up
from werkzeug.serving import WSGIRequestHandler, run_simple

NAME = os.environ["OTEL_SERVICE_NAME"]
app = Flask(NAME)
RequestsInstrumentor().instrument(tracer_provider=set_up())


def asked(service: str, path: str) -> Any:
    """Return what a service answers; None where it does not."""
    try:
        with requests.Session() as session:
            session.trust_env = False
            answer = session.get(os.environ[service.upper()] + path, timeout=5)
            return answer.json() if answer.ok else None
    except requests.RequestException:
        return None


@app.get("/health")
def health() -> str:
    return "ok"


@app.get("/books/<int:book>")
def a_book(book: int) -> Any:
    copies = asked("stock", f"/copies/{book}")
    if copies is None:
        copies = asked("warehouse", f"/boxes/{book}")
    if copies is None:
        abort(500)
    return jsonify(title=f"Book {book}", copies=copies)


@app.get("/prices/<int:book>")
def a_price(book: int) -> Any:
    asked("stock", f"/clearance/{book}")
    return jsonify(1200)


@app.get("/<what>/<int:book>")
def anything(what: str, book: int) -> Any:
    return jsonify(book if what in {"copies", "boxes"} else f"{what} of {book}")


@app.get("/<what>")
def something(what: str) -> Any:
    return jsonify(what)


class Quiet(WSGIRequestHandler):
    def log_request(self, *_: Any) -> None:
        """Say nothing."""


def serve() -> None:
    run_simple(
        "127.0.0.1",
        int(os.environ["PORT"]),
        OpenTelemetryMiddleware(app),
        threaded=True,
        request_handler=Quiet,
    )


if __name__ == "__main__":
    serve()
