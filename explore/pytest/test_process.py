"""A process in which one test is explored: what is switched on meanwhile, and off again after it.

No network and no control plane: the failure context is signed with a key made here and now, and
put into the baggage of the test's own context. Nothing of it outlives the exploration.
"""

from __future__ import annotations

import inspect
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import Token
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from opentelemetry import baggage, trace
from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanKind

from ldfi.explore.external.requests import SentRequest
from ldfi.explore.external.run_result import TO_SET, RunResult
from ldfi.explore.external.stamp import SharedKeys, Stamp
from ldfi.explore.pytest import httpx_calls
from ldfi.explore.pytest.own_commands import set_aside
from ldfi.explore.pytest.recorder import RELAY, Recorder, own_provider
from ldfi.explore.pytest.service import service_name
from ldfi.explore.pytest.unseen import Untraced, watched
from ldfi.fit import clients, inject, runtime, uninstall
from ldfi.fit.clients import fakes
from ldfi.fit.protocol.context import ENTRY
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.runtime import Runtime

if TYPE_CHECKING:
    from ldfi.explore.external.session import Elsewhere


_followed: WeakSet[TracerProvider] = WeakSet()


class Armed:
    """Runs of one test: each records its spans, and carries its faults. ``elsewhere``: where the
    spans of services in other processes come in, if they do."""

    def __init__(
        self,
        service: str,
        keys: Keys,
        provider: TracerProvider,
        elsewhere: Elsewhere | None,
        unseen: Untraced,
    ) -> None:
        self._unseen = unseen
        self._service = service
        self._keys = keys
        self._elsewhere = elsewhere
        self._faults: tuple[Fault, ...] = ()
        self._tracer = provider.get_tracer("ldfi")
        self.recorder = self.next_run()

    def next_run(self) -> Recorder:
        """Forget the spans of the run before."""
        self.recorder = RELAY.recorder = Recorder(self._service, self._tracer)
        return self.recorder

    def within(self, function: Any, faults: tuple[Fault, ...], delay: float) -> Any:
        """Wrap the test's function in a context that carries these faults. Seconds of ``delay``."""
        stamp, recorder = Stamp(self._keys, faults, delay), self.recorder
        self._faults = faults
        recorder.code = getattr(inspect.unwrap(function), "__code__", None)
        if self._elsewhere is not None:
            recorder.stamp = stamp

        @contextmanager
        def carrying() -> Iterator[None]:
            _follow_the_application()  # now: a fixture may have set its provider
            token = otel_context.attach(baggage.set_baggage(ENTRY, stamp.context()))
            try:
                with (
                    recorder.span("test", SpanKind.INTERNAL, {}),
                    everywhere(otel_context.get_current()),
                ):
                    if self._elsewhere is not None:
                        self._elsewhere.begin(recorder.trace_id())
                    recorder.runs = True
                    yield
            finally:
                recorder.runs = False
                otel_context.detach(token)

        return _wrapped(function, carrying)

    def doubt(self) -> str:
        """Return why a conclusion may be wrong; empty if there is no reason."""
        late = self._elsewhere.doubt() if self._elsewhere is not None else ""
        return late or self._unseen.doubt(self.recorder)

    def shown(self, *, failed: bool) -> RunResult:
        """Return the result of the run, once all of it is here. ``failed``: the test did."""
        recorder = self.recorder
        if self._elsewhere is not None:
            own, sent = recorder.own_spans(failed=failed), recorder.sent()
            return self._elsewhere.shown(recorder.trace_id(), own, sent, self._faults)
        lineage, sent = recorder.lineage(failed=failed), recorder.sent()
        return RunResult(lineage, _apart(sent[0]) if sent and not lineage.called else "")


def _apart(sent: SentRequest) -> str:
    return (
        f"{sent} was answered by another process, of which nothing was seen: that request is the"
        " test's own, not a dependency. Start pytest with --receive 127.0.0.1:4318, or start the"
        f" services with the fixture ldfi_services. {TO_SET}"
    )


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


@contextmanager
def armed(elsewhere: Elsewhere | None = None) -> Iterator[Armed]:
    """Set up everything that an exploration needs in this process; put back as it was
    afterwards."""
    service = service_name()
    known = elsewhere.secrets if elsewhere else SharedKeys(f"pytest:{secrets.token_hex(16)}")
    keys = known.keys
    before = runtime.active()
    provider = own_provider(service)
    with ExitStack() as stack:
        stack.callback(_let_go, before)
        runtime.activate(Runtime(service, keys))
        clients.patch_all(skip=["httpcore"])  # httpx has its points in ``calls``
        fakes.patch_all()
        stack.enter_context(httpx_calls.seen())
        stack.enter_context(instrumented(provider))
        stack.enter_context(set_aside())
        stack.enter_context(_tracing_for_fit(provider))
        unseen = stack.enter_context(watched())
        yield Armed(service, keys, provider, elsewhere, unseen)


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


# Other libraries' calls: seen through OpenTelemetry's instrumentation of each, where installed.
#
# Without a span a call is not in the lineage, and what is not there is never tried. So what the
# application has imported and not instrumented itself is instrumented while its test is explored.

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


# One context for a whole process: threads that carry none of their own are taken for the test's.
#
# A run of a test is all that a process is asked for just then. A call that is made in a pool, by a
# timer or by a worker that has begun long before has no context, and so would be no call of the
# run: it could not be seen, and no fault could hit it.
class _Fallback:
    """OpenTelemetry's own context runtime; where it holds nothing, ``context`` stands in."""

    def __init__(self, inner: Any, context: Context) -> None:
        self._inner = inner
        self._context = context

    def get_current(self) -> Context:
        return self._inner.get_current() or self._context

    def attach(self, context: Context) -> Token[Context]:
        token: Token[Context] = self._inner.attach(context)
        return token

    def detach(self, token: Token[Context]) -> None:
        self._inner.detach(token)


@contextmanager
def everywhere(context: Context) -> Iterator[None]:
    """Have ``context`` be the current one, as long as this lasts, wherever there is no other."""
    found: Any = otel_context
    inner = getattr(found, "_RUNTIME_CONTEXT", None)
    if inner is None:  # another version of OpenTelemetry: threads stay as they are
        yield
        return
    reader: Any = inject
    found._RUNTIME_CONTEXT = fallback = _Fallback(inner, context)
    before, reader.current = reader.current, fallback.get_current
    try:
        yield
    finally:
        found._RUNTIME_CONTEXT, reader.current = inner, before
