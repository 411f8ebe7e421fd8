"""Recommendations, where there is a Redis to count in: without it they are what everybody likes.

Planted: of Redis they know that it may be away, and not that it may be read-only, as a server is
after a failover to the wrong side (a mask, behind a store).
"""

from __future__ import annotations

import os
from typing import Any

import redis
from flask import jsonify
from opentelemetry.instrumentation.redis import RedisInstrumentor
from redis.backoff import NoBackoff
from redis.retry import Retry
from shelf import app, serve

RedisInstrumentor().instrument()
store = redis.Redis.from_url(
    os.environ["REDIS"], socket_timeout=5, socket_connect_timeout=5, retry=Retry(NoBackoff(), 0)
)


@app.get("/like/<int:book>")
def like(book: int) -> Any:
    """Recommend what comes next to whoever looks at a book that others have looked at."""
    try:
        looked = store.incr(f"looked:{book}")
    except redis.ConnectionError:
        looked = 0
    return jsonify([book + 1] if looked else [1])


if __name__ == "__main__":
    serve()
