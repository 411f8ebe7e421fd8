"""A process in which one test is explored: what is switched on meanwhile, and off again after it.

No network and no control plane: the failure context is signed with a key made here and now, and
put into the baggage of the test's own context. Nothing of it outlives the exploration.
"""

from __future__ import annotations

import inspect
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, Final
from weakref import WeakSet

from opentelemetry import baggage, trace
from opentelemetry import context as otel_context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanKind

from ldfi.experiments.pytest_plugin import calls, libraries
from ldfi.experiments.pytest_plugin.recorder import RELAY, Recorder, own_provider
from ldfi.fit import clients, runtime
from ldfi.fit.clients import fakes
from ldfi.fit.context import ENTRY, encode
from ldfi.fit.faults import Fault
from ldfi.fit.install import uninstall
from ldfi.fit.keys import Keys
from ldfi.fit.runtime import Runtime

SERVICE: Final = "app"
"""What the service is called in names of points where ``OTEL_SERVICE_NAME`` says nothing."""

_LIFETIME: Final = 3600
"""Seconds a context is valid; it leaves with its test, and so does its key."""

_followed: WeakSet[TracerProvider] = WeakSet()


class Armed:
    """Runs of one test: each records its spans, and carries its faults."""

    def __init__(self, service: str, keys: Keys, provider: TracerProvider) -> None:
        self._service = service
        self._keys = keys
        self._tracer = provider.get_tracer("ldfi")
        self.recorder = self.next_run()

    def next_run(self) -> Recorder:
        """Forget the spans of the run before."""
        self.recorder = RELAY.recorder = Recorder(self._service, self._tracer)
        return self.recorder

    def within(self, function: Any, faults: tuple[Fault, ...], delay: float) -> Any:
        """Wrap the test's function in a context that carries these faults. Seconds of ``delay``."""

        @contextmanager
        def carrying() -> Iterator[None]:
            value = encode(
                self._keys,
                "pytest",
                "treatment",
                int(time.time()) + _LIFETIME,
                faults,
                delay_ms=max(1, round(delay * 1000)),
            )
            _follow_the_application()  # now: a fixture may have set its provider
            token = otel_context.attach(baggage.set_baggage(ENTRY, value))
            try:
                with self.recorder.span("test", SpanKind.INTERNAL, {}):
                    yield
            finally:
                otel_context.detach(token)

        return _wrapped(function, carrying)


def _wrapped(function: Any, carrying: Callable[[], Any]) -> Any:
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def run_async(*args: Any, **kwargs: Any) -> Any:
            with carrying():
                return await function(*args, **kwargs)

        return run_async

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with carrying():
            return function(*args, **kwargs)

    return run


def service_name() -> str:
    """Name the service under test as the names of its points do."""
    return os.environ.get("OTEL_SERVICE_NAME") or SERVICE


@contextmanager
def armed() -> Iterator[Armed]:
    """Set up everything that an exploration needs in this process; put back as it was
    afterwards."""
    service = service_name()
    keys = Keys.parse(f"pytest:{secrets.token_hex(16)}")
    before = runtime.active()
    provider = own_provider(service)
    with ExitStack() as stack:
        stack.callback(_let_go, before)
        runtime.activate(Runtime(service, keys))
        clients.patch_all(besides=["httpcore"])  # httpx has its points in ``calls``
        fakes.patch_all()
        stack.enter_context(calls.seen())
        stack.enter_context(libraries.instrumented(provider))
        stack.enter_context(_tracing_for_fit(provider))
        yield Armed(service, keys, provider)


def _let_go(before: Runtime | None) -> None:
    RELAY.recorder = None
    if before is None:
        uninstall()
    else:
        runtime.activate(before)


@contextmanager
def _tracing_for_fit(provider: TracerProvider) -> Iterator[None]:
    """Send spans that ``fit`` makes itself to us: the application may have no provider at all."""
    original = trace.get_tracer

    def get_tracer(name: str, *args: Any, **kwargs: Any) -> trace.Tracer:
        return provider.get_tracer("fit") if name == "fit" else original(name, *args, **kwargs)

    trace.get_tracer = get_tracer  # type: ignore[assignment] # takes the same arguments
    try:
        yield
    finally:
        trace.get_tracer = original


def _follow_the_application() -> None:
    """See the application's own spans, too. A processor cannot be taken out again; it idles."""
    theirs = trace.get_tracer_provider()
    if isinstance(theirs, TracerProvider) and theirs not in _followed:
        _followed.add(theirs)
        theirs.add_span_processor(RELAY)
