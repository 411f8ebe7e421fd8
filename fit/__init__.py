"""fit: what runs inside the systems under test.

    fit.install()                                          # injection points for HTTP clients
    app = fit.EdgeMiddleware(OpenTelemetryMiddleware(app))  # at the edge; WSGIEdgeMiddleware, too
    provider = TracerProvider(sampler=fit.Sampler(sampler)) # keeps requests under experiment

    @fit.point("cache", "get", peer="homecache")           # anything else that can fail
    async def cached_home(device): ...

It needs the standard library and OpenTelemetry's API, and does nothing without ``FIT_KEYS``.
"""

from ldfi.fit.asgi import EdgeMiddleware
from ldfi.fit.functions import point
from ldfi.fit.install import install
from ldfi.fit.protocol.context import FailureContext
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.points import Point
from ldfi.fit.runtime import current
from ldfi.fit.sampler import Sampler
from ldfi.fit.wsgi import WSGIEdgeMiddleware

__all__ = [
    "EdgeMiddleware",
    "FailureContext",
    "Fault",
    "Point",
    "Sampler",
    "WSGIEdgeMiddleware",
    "current",
    "install",
    "point",
]
