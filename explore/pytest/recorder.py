"""The spans of one run of a test, and the lineage they make.

Spans come from two providers: one of our own, for the calls that the plugin itself sees, and the
application's, where it has one. Neither knows the other's spans: what is inside what is therefore
told by the span that was current when a span began, or, where that one was not recorded (the
application samples), by the nearest of ours around it.

Times are replaced by the order of events. Lineages compare times, they never measure them, and a
run of a test that does the same things in the same order then has the same lineage.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from types import CodeType
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.environment_variables import OTEL_SDK_DISABLED
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace import Span as SdkSpan
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from ldfi.errors import LdfiError
from ldfi.explore.external.requests import SentRequest, as_call, root_span
from ldfi.explore.external.stamp import Stamp
from ldfi.explore.pytest.own_calls import asked_within, faked
from ldfi.explore.pytest.run import Asked
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.operation import operation
from ldfi.lineage.readers.otlp_json import read_fields
from ldfi.lineage.span import Span, Trace

KEY: Final = "ldfi-test"
"""Where OpenTelemetry's context holds the recorder and the innermost of our spans."""
ENTRY: Final = "ldfi.entry"
"""On the span of a call by which the test itself enters the application: no dependency."""

_SAME_CALL: Final = frozenset({"opentelemetry.instrumentation.httpx"})
"""Instrumentations that see a call which the plugin sees as well."""
_TRACE: Final = f"{1:032x}"
_REQUESTS: Final = ("http.request.method", "http.method", "rpc.system", "rpc.system.name")
"""One of these is on the span of every call over HTTP or gRPC."""


class NotRun(LdfiError):  # noqa: N818 - it says what happened
    """A test whose own function was never called: something else was run in its place."""


class Recorder(SpanProcessor):
    """Collects the spans of one run. ``service``: the name by which all its points are called.
    ``stamp``: what the test's requests to services elsewhere carry, where there are any."""

    def __init__(self, service: str, tracer: trace.Tracer, stamp: Stamp | None = None) -> None:
        self.service = service
        self.tracer = tracer
        self.stamp = stamp
        self.code: CodeType | None = None
        """The code of the test's own function."""
        self.runs = False
        """Whether the test's own function is running just now."""
        self._clock = itertools.count(1)
        self._lock = Lock()
        self._parents: dict[int, int | None] = {}
        self._began: dict[int, int] = {}
        self._ended: dict[int, tuple[int, ReadableSpan]] = {}
        self._asked: dict[int, Asked] = {}
        self._own: set[int] = set()
        self._trace_ids: dict[int, str] = {}
        self._lifted: dict[int, int | None] = {}

    def on_start(self, span: SdkSpan, parent_context: Context | None = None) -> None:
        """Place a span that begins (OpenTelemetry's protocol)."""
        held = otel_context.get_value(KEY, parent_context)
        ours = held[1] if isinstance(held, tuple) and held[0] is self else None
        with self._lock:
            above = self._kept(span.parent.span_id if span.parent else None)
            if above not in self._parents:
                if ours is None and not self._is_root(span):
                    return  # of something else that goes on in this process
                above = self._kept(ours)
            number = span.get_span_context().span_id
            self._parents[number] = above
            self._began[number] = next(self._clock)
            self._trace_ids[number] = f"{span.get_span_context().trace_id:032x}"
            outermost = above is not None and self._parents.get(above) is None
            if outermost and span.kind is trace.SpanKind.CLIENT and self._asks(span):
                self._own.add(number)

    def on_end(self, span: ReadableSpan) -> None:
        """Take a span that has ended (OpenTelemetry's protocol)."""
        about = span.get_span_context()
        with self._lock:
            if about is not None and about.span_id in self._parents:
                self._ended[about.span_id] = (next(self._clock), span)

    @contextmanager
    def span(
        self, name: str, kind: trace.SpanKind, attributes: Mapping[str, Any]
    ) -> Iterator[trace.Span]:
        """Open a span of ours, current and marked as the innermost."""
        within = otel_context.get_current()
        span = self.tracer.start_span(name, within, kind, dict(attributes))
        number = span.get_span_context().span_id
        inner = otel_context.set_value(KEY, (self, number), trace.set_span_in_context(span, within))
        token = otel_context.attach(inner)
        try:
            yield span
        except BaseException as error:
            span.set_status(trace.StatusCode.ERROR, type(error).__name__)
            raise
        finally:
            otel_context.detach(token)
            span.end()

    def lift(self, span: trace.Span) -> None:
        """Remove a span; its children become those of its parent."""
        number = span.get_span_context().span_id
        with self._lock:
            above = self._lifted[number] = self._parents.pop(number, None)
            for inner, parent in self._parents.items():
                if parent == number:
                    self._parents[inner] = above

    def _kept(self, number: int | None) -> int | None:
        while number in self._lifted:
            number = self._lifted[number]
        return number

    def enter(self, span: trace.Span) -> None:
        """Take a call for a request of the test's own."""
        self._own.add(span.get_span_context().span_id)

    def remember(self, span: trace.Span, request: Asked) -> None:
        """Remember what a call of the test itself sent, in case that it enters the application."""
        self._asked[span.get_span_context().span_id] = request

    @property
    def asked(self) -> Asked | None:
        """The last request by which the test entered the application, where that was seen."""
        entered = [
            n for n in self._asked if n in self._ended and self._enters(n, self._ended[n][1])
        ]
        return self._asked[entered[-1]] if entered else None

    def knows(self, span: trace.Span) -> bool:
        """Return whether a span is of this run."""
        return span.get_span_context().span_id in self._parents

    @property
    def outermost(self) -> bool:
        """Return whether the test itself is running, not the application within a call."""
        current = trace.get_current_span().get_span_context().span_id
        return current in self._parents and self._parents[current] is None

    def asked_by_the_test(self) -> bool:
        """Return whether a call over a socket is a request of the test's own: any, where services
        are elsewhere; else one that its function itself makes."""
        return self.stamp is not None or asked_within(self.code)

    def attributes(self) -> list[Mapping[str, Any]]:
        """Return the attributes of the run's spans."""
        return [span.attributes or {} for _, span in self._ended.values()]

    def sent(self) -> list[SentRequest]:
        """List the test's own requests that nothing in this process answered."""
        return [
            self._sent(number, span)
            for number, (_, span) in self._ended.items()
            if self._enters(number, span) and not self._answered(number)
        ]

    def errors(self) -> int:
        """Count the test's own requests that were answered with an error."""
        entries = [
            self._sent(number, span)
            for number, (_, span) in self._ended.items()
            if self._enters(number, span)
        ]
        return sum(each.failed for each in entries)

    def trace_id(self) -> str:
        """Return the id of the trace that the test's requests are of."""
        root = next(number for number, above in self._parents.items() if above is None)
        return self._trace_ids[root]

    def own_spans(self, *, failed: bool) -> list[Span]:
        """List the spans of this process as they are sent to a service's assembler: of the run's
        own trace, with the times of the clock."""
        trace_id, sent = self.trace_id(), {int(each.span_id, 16): each for each in self.sent()}
        found = []
        for number, (_, span) in self._ended.items():
            above = self._parents[number]
            start, end = span.start_time or 0, span.end_time or 0
            if above is None:
                own = f"{number:016x}"
                found.append(root_span(trace_id, own, self.service, start, end, failed=failed))
            elif number in sent:
                found.append(as_call(trace_id, f"{above:016x}", self.service, sent[number]))
            else:
                known = self._span(number, failed)
                found.append(known._replace(trace_id=trace_id, start=start, end=end))
        return found

    def lineage(self, *, failed: bool) -> Lineage:
        """Return the lineage of the run; ``failed``: whether the test did."""
        spans = [self._span(number, failed) for number in self._ended]
        learned = learn(Trace.of(_TRACE, spans))
        if learned is None:
            raise NotRun(
                "nothing is known of this test, for its own function was not called as it is: does"
                " another plugin or a decorator run something else in its place?"
            )
        return learned

    def _is_root(self, span: SdkSpan) -> bool:
        scope = span.instrumentation_scope
        return not self._parents and scope is not None and scope.name == "ldfi"

    def _span(self, number: int, failed: bool) -> Span:
        end, span = self._ended[number]
        above = self._parents[number]
        kind = "server" if above is None else self._kind(number, span)
        status = span.status.status_code.value
        if above is None:
            status = 2 if failed else 1
        fields = read_fields(kind, list(_pairs(span.attributes or {})))
        if kind == "internal" and self._enters(number, span):
            fields = ()  # not even a point, although it was one while it ran
        escaped = any(event.name == "exception" for event in span.events)
        return Span(
            _TRACE,
            f"{number:016x}",
            None if above is None else f"{above:016x}",
            self._began[number],
            end,
            operation(self.service, span.name, kind, status, escaped, fields),
        )

    def _kind(self, number: int, span: ReadableSpan) -> str:
        if self._scope(number) in _SAME_CALL or self._enters(number, span):
            return "internal"
        kind = span.kind.name.lower()
        # A server in this process goes by the name of the test's service: its caller is the call.
        return "internal" if kind == "server" else kind

    def _enters(self, number: int, span: ReadableSpan) -> bool:
        """Return whether a span is the request: a call of the test itself that something in this
        run answered."""
        if ENTRY in (span.attributes or {}) or number in self._own:
            return True
        above = self._parents[number]
        while above is not None and self._scope(above) in _SAME_CALL:
            above = self._parents[above]
        outermost = above is not None and self._parents.get(above) is None
        return outermost and span.kind is trace.SpanKind.CLIENT and self._answered(number)

    def _asks(self, span: SdkSpan) -> bool:
        """Return whether a call of another library is a request of the test's own."""
        scope = span.instrumentation_scope
        if scope is not None and scope.name in {"ldfi", *_SAME_CALL}:
            return False
        if not any(name in (span.attributes or {}) for name in _REQUESTS):
            return False
        return self.asked_by_the_test() and not faked()

    def _sent(self, number: int, span: ReadableSpan) -> SentRequest:
        said = span.attributes or {}

        def first(*names: str) -> str:
            return next((str(said[name]) for name in names if name in said), "")

        status = first("http.response.status_code", "http.status_code")
        if first("rpc.system", "rpc.system.name"):
            failed = span.status.status_code is trace.StatusCode.ERROR
            status = "500" if failed else "200"
        return SentRequest(
            f"{number:016x}",
            first("http.request.method", "http.method") or "GET",
            first("url.full", "http.url"),
            span.start_time or 0,
            span.end_time or 0,
            int(status) if status.isdecimal() else 0,
        )

    def _answered(self, number: int) -> bool:
        """Return whether anything happened within a call, but its sending."""
        inside = [inner for inner, above in self._parents.items() if above == number]
        return any(
            self._answered(inner) if self._scope(inner) in _SAME_CALL else True for inner in inside
        )

    def _scope(self, number: int) -> str:
        ended = self._ended.get(number)
        scope = ended[1].instrumentation_scope if ended else None
        return scope.name if scope else ""


class Relay(SpanProcessor):
    """Hands spans to the recorder of the run that goes on, if one does."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None

    def on_start(self, span: SdkSpan, parent_context: Context | None = None) -> None:
        """Pass a span that begins to the recorder, where there is one (OpenTelemetry's
        protocol)."""
        if self.recorder is not None:
            self.recorder.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        """Pass a span that has ended to the recorder, where there is one (OpenTelemetry's
        protocol)."""
        if self.recorder is not None:
            self.recorder.on_end(span)


RELAY: Final = Relay()


def current_recorder() -> Recorder | None:
    """Find the recorder of the run within which this is called.

    Where the context came over a socket, all that tells is the span that was current there.
    """
    held = otel_context.get_value(KEY)
    if isinstance(held, tuple):
        return held[0]  # type: ignore[no-any-return]
    recorder = RELAY.recorder
    return recorder if recorder is not None and recorder.knows(trace.get_current_span()) else None


def own_provider(service: str) -> TracerProvider:
    """Make a tracer provider that nobody else sees, and that records everything."""
    disabled = os.environ.pop(OTEL_SDK_DISABLED, None)  # is meant for what the application exports
    try:
        provider = TracerProvider(
            resource=Resource({"service.name": service}), sampler=ALWAYS_ON, shutdown_on_exit=False
        )
    finally:
        if disabled is not None:
            os.environ[OTEL_SDK_DISABLED] = disabled
    provider.add_span_processor(RELAY)
    return provider


def _pairs(attributes: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    for key, value in attributes.items():
        plain = value if isinstance(value, str | int | float) else str(value)
        yield {"key": key, "value": {"stringValue": plain}}
