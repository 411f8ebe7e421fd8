"""Injection points in client libraries, one file each.

``patch()`` puts the point where OpenTelemetry's instrumentation of the library has the call's span
current. What a library's callers see of a fault is told in ``docs/injection-points.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from typing import Final

from ldfi.fit import patching, reporting

LIBRARIES: Final = {
    "httpcore": "httpx",
    "httpcore2": "httpx2",
    "urllib3": "requests_urllib3",
    "http.client": "http_client",
    "botocore": "botocore",
    "aiohttp": "aiohttp",
    "grpc": "grpc",
    "grpc.aio": "grpc_aio",
    "sqlalchemy": "sqlalchemy",
    "psycopg": "psycopg",
    "psycopg2": "psycopg2",
    "asyncpg": "asyncpg",
    "pymysql.cursors": "pymysql",
    "redis": "redis",
    "kafka": "kafka_python",
    "aiokafka": "aiokafka",
    "confluent_kafka": "confluent_kafka",
    "kombu.messaging": "kombu",
    "celery.app.base": "celery",
}
"""The module whose import brings a library into the process → the file here that knows it."""

KINDS: Final = {
    "botocore": ("rpc", "db"),
    "grpc": ("rpc",),
    "grpc_aio": ("rpc",),
    "sqlalchemy": ("db",),
    "psycopg": ("db",),
    "psycopg2": ("db",),
    "asyncpg": ("db",),
    "pymysql": ("db",),
    "redis": ("db",),
    "kafka_python": ("message",),
    "aiokafka": ("message",),
    "confluent_kafka": ("message",),
    "kombu": ("message",),
    "celery": ("message",),
}
"""The file → the kinds of its points, where they are not HTTP."""


INSTRUMENTED: Final = {
    "aiohttp": ("aiohttp_client",),
    "grpc_aio": ("grpc",),
    "http_client": ("urllib",),
    "kafka_python": ("kafka",),
    "kombu": ("celery",),
    "requests_urllib3": ("requests", "urllib3"),
}
"""The file → OpenTelemetry's instrumentations of the libraries that it knows, where that is not the
one of its own name. Reports call libraries so, and so do the scopes of spans."""

_NO_CLIENTS: Final = frozenset(
    [
        "aiohttp_server",
        "asgi",
        "asyncio",
        "aws_lambda",
        "click",
        "django",
        "falcon",
        "fastapi",
        "flask",
        "jinja2",
        "logging",
        "pyramid",
        "starlette",
        "system_metrics",
        "threading",
        "wsgi",
    ]
)
"""Those of libraries that call nobody."""

_INSTRUMENTORS: Final = "opentelemetry_instrumentor"
"""The entry point under which an instrumentation is installed."""


def libraries_of(here: str) -> tuple[str, ...]:
    """Name the libraries that a file of these knows, as OpenTelemetry's instrumentations do."""
    return INSTRUMENTED.get(here, (here,))


def watch_for_others() -> None:
    """Have every other library that OpenTelemetry instruments named in the report, once its
    instrumentation is imported."""
    known = {name for here in LIBRARIES.values() for name in libraries_of(here)} | _NO_CLIENTS
    for entry in entry_points(group=_INSTRUMENTORS):
        last = entry.module.rpartition(".")[2]
        if last not in known:
            patching.when_imported(entry.module, partial(reporting.lacks, last))


def patch_all(skip: Container[str] = ()) -> None:
    """Make injection points in every library: at once where it is imported, else when it is.

    ``skip``: libraries that somebody else makes the points of.
    """
    for library, here in LIBRARIES.items():
        if library not in skip:
            patching.when_imported(library, _patch(here))


def _patch(here: str) -> Callable[[], None]:
    def patch() -> None:
        import_module(f"ldfi.fit.clients.{here}").patch()
        for kind in KINDS.get(here, ("http",)):
            reporting.reaches(kind, libraries_of(here))

    return patch
