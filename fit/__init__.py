"""fit: what runs inside the systems under test.

    fit.install()                                          # injection points for HTTP clients
    app = fit.EdgeMiddleware(OpenTelemetryMiddleware(app))  # at the edge; WSGIEdgeMiddleware, too
    provider = TracerProvider(sampler=fit.Sampler(sampler)) # keeps requests under experiment

    @fit.point("cache", "get", peer="homecache")           # anything else that can fail
    async def cached_home(device): ...

It needs the standard library and OpenTelemetry's API, and does nothing without ``FIT_KEYS``. Names
are imported when they are first asked for: who needs ``ldfi.fit.protocol`` alone gets nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ldfi.fit.asgi import EdgeMiddleware
    from ldfi.fit.functions import point
    from ldfi.fit.protocol import errors
    from ldfi.fit.protocol.context import FailureContext
    from ldfi.fit.protocol.errors import InjectedFault
    from ldfi.fit.protocol.faults import Fault
    from ldfi.fit.protocol.points import Point
    from ldfi.fit.runtime import current
    from ldfi.fit.sampler import Sampler
    from ldfi.fit.startup import install, uninstall
    from ldfi.fit.wsgi import WSGIEdgeMiddleware

_HOMES: Final = {
    "EdgeMiddleware": "asgi",
    "FailureContext": "protocol.context",
    "Fault": "protocol.faults",
    "InjectedFault": "protocol.errors",
    "Point": "protocol.points",
    "Sampler": "sampler",
    "WSGIEdgeMiddleware": "wsgi",
    "current": "runtime",
    "errors": "protocol.errors",
    "install": "startup",
    "point": "functions",
    "uninstall": "startup",
}
"""Public name → the module that has it."""

__all__ = [
    "EdgeMiddleware",
    "FailureContext",
    "Fault",
    "InjectedFault",
    "Point",
    "Sampler",
    "WSGIEdgeMiddleware",
    "current",
    "errors",
    "install",
    "point",
    "uninstall",
]


def __getattr__(name: str) -> Any:
    """Import a public name. Raises AttributeError for any other (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_HOMES[name]}")
    found = globals()[name] = getattr(home, name, home)  # or the module itself is meant
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
