"""Other libraries' calls: seen through OpenTelemetry's instrumentation of each, where installed.

Without a span a call is not in the lineage, and what is not there is never tried. So what the
application has imported and not instrumented itself is instrumented while its test is explored.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from opentelemetry.trace import TracerProvider

INSTRUMENTORS: Final = {
    "requests": ("opentelemetry.instrumentation.requests", "RequestsInstrumentor"),
    "urllib3": ("opentelemetry.instrumentation.urllib3", "URLLib3Instrumentor"),
    "aiohttp": ("opentelemetry.instrumentation.aiohttp_client", "AioHttpClientInstrumentor"),
    "redis": ("opentelemetry.instrumentation.redis", "RedisInstrumentor"),
    "grpc": ("opentelemetry.instrumentation.grpc", "GrpcInstrumentorClient"),
    "grpc.aio": ("opentelemetry.instrumentation.grpc", "GrpcAioInstrumentorClient"),
}
"""The module that brings a library into the process → its instrumentation. SQLAlchemy and Kafka
are missing: theirs sees only what is made after it, so the application has to switch it on."""


@contextmanager
def instrumented(provider: TracerProvider) -> Iterator[None]:
    """Have the spans of these libraries made by ``provider`` as long as this lasts."""
    with ExitStack() as stack:
        for library, (module, name) in INSTRUMENTORS.items():
            if library in sys.modules and _installed(module):
                instrumentor: Any = getattr(import_module(module), name)()
                if not instrumentor.is_instrumented_by_opentelemetry:
                    instrumentor.instrument(tracer_provider=provider)
                    stack.callback(instrumentor.uninstrument)
        yield


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
