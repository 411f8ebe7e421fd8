"""The stock, where there is a PostgreSQL to keep it in: without that it has nothing to say."""

from __future__ import annotations

import os
from typing import Any

import psycopg
from flask import abort, jsonify
from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
from shelf import app, serve

PsycopgInstrumentor().instrument()


@app.get("/copies/<int:book>")
def copies(book: int) -> Any:
    try:
        with psycopg.connect(os.environ["POSTGRES"], autocommit=True) as connection:
            found = connection.execute("select many from copies where book = %s", [book])
            many = found.fetchone()
    except psycopg.OperationalError:
        abort(503)
    return jsonify(many[0] if many else 0)


if __name__ == "__main__":
    serve()
