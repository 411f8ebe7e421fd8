"""A shop in Django with Celery, Redis and psycopg2, prepared as docs/injection-points.md says and
no further: settings, pages and tasks in one module, served at PORT.

``/order`` writes the order down and publishes the task that sends it: without either it answers
500. What is popular, and how many visits there were, it can do without.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any
from wsgiref.simple_server import make_server

import django
import redis
from celery import Celery
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.urls import path
from redis.backoff import NoBackoff
from redis.retry import Retry

from ldfi import fit

BROKER = f"redis://127.0.0.1:{os.environ['BROKER']}/0"
celery = Celery("shop", broker=BROKER)
cache = redis.Redis(port=int(os.environ["CACHE"]), retry=Retry(NoBackoff(), 0))


@celery.task(name="send_order")  # type: ignore[untyped-decorator]
def send_order(number: int) -> None:
    """Send it: a worker's, elsewhere."""
    raise NotImplementedError(number)


def order(request: HttpRequest) -> JsonResponse:
    """Take an order."""
    popular = None
    with suppress(redis.RedisError):
        popular = cache.get("popular")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO orders (product) VALUES (%s) RETURNING id", [17])
        (number,) = cursor.fetchone()
        with suppress(DatabaseError):
            cursor.execute("SELECT count(*) FROM visits")
    retries = {"max_retries": 1, "interval_start": 0, "interval_step": 0.01}
    send_order.apply_async([number], retry_policy=retries)
    return JsonResponse({"order": number, "popular": bool(popular)})


urlpatterns = [path("order", order)]


def main() -> None:
    """Serve it."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.instrumentation.celery import CeleryInstrumentor
    from opentelemetry.instrumentation.django import DjangoInstrumentor
    from opentelemetry.instrumentation.psycopg2 import Psycopg2Instrumentor
    from opentelemetry.instrumentation.redis import RedisInstrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    fit.install()
    provider = TracerProvider(sampler=fit.Sampler(ALWAYS_ON))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    settings.configure(
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["*"],
        SECRET_KEY="x" * 50,
        MIDDLEWARE=[],
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "HOST": os.environ["DATABASE_HOST"],
                "NAME": os.environ["DATABASE"],
                "USER": os.environ["DATABASE_USER"],
                "CONN_MAX_AGE": 60,
            }
        },
    )
    for instrumentor in (
        DjangoInstrumentor(),
        CeleryInstrumentor(),  # type: ignore[no-untyped-call]
        Psycopg2Instrumentor(),
        RedisInstrumentor(),
    ):
        untyped: Any = instrumentor
        untyped.instrument()
    django.setup()
    make_server("127.0.0.1", int(os.environ["PORT"]), get_wsgi_application()).serve_forever()


if __name__ == "__main__":
    main()
