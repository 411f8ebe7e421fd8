"""fit: what runs inside the systems under test.

    fit.install()                                          # injection points for HTTP clients
    app = fit.EdgeMiddleware(OpenTelemetryMiddleware(app))  # at the edge; WSGIEdgeMiddleware, too
    provider = TracerProvider(sampler=fit.Sampler(sampler)) # keeps requests under experiment

    @fit.point("cache", "get", peer="homecache")           # anything else that can fail
    async def cached_home(device): ...

It needs the standard library and OpenTelemetry's API, and does nothing without ``FIT_KEYS``.
"""

from fit.asgi import EdgeMiddleware
from fit.context import FailureContext
from fit.faults import Fault
from fit.functions import point
from fit.install import install
from fit.points import Point
from fit.runtime import current
from fit.sampler import Sampler
from fit.wsgi import WSGIEdgeMiddleware

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
