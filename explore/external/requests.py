"""The test's own requests: what enters the system under test, and is never a dependency of it.

While a trace is waited for, a request of the test's is a call like any other: its callee usually
answers with a span, and that is waited for. When the trace is whole, the request and the SERVER
span that answers it become transparent, so that what stands below them are the points.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.operation import Operation, operation
from ldfi.lineage.readers.otlp_json import read_fields
from ldfi.lineage.span import Span, Trace


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request of the test's own. Times in nanoseconds; ``status`` 0: it was not answered."""

    span_id: str
    method: str
    url: str
    start: int
    end: int
    status: int

    @property
    def failed(self) -> bool:
        """Return whether it was answered with an error, or not at all."""
        return self.status == 0 or self.status >= 400

    def __str__(self) -> str:
        return f"{self.method} {self.url.partition('?')[0]}"


def as_call(trace_id: str, root: str, service: str, sent: SentRequest) -> Span:
    """Make the span of a request of the test's own, as a call to be waited for."""
    url = urlsplit(sent.url)
    said = {
        "http.request.method": sent.method,
        "server.address": url.hostname or "",
        "url.path": url.path or "/",
    }
    said |= {"server.port": str(url.port)} if url.port else {}
    said |= {"http.response.status_code": str(sent.status)} if sent.status else {}
    pairs = [{"key": key, "value": {"stringValue": value}} for key, value in said.items()]
    status = 2 if sent.status == 0 or sent.status >= 500 else 0
    what = operation(service, str(sent), "client", status, False, read_fields("client", pairs))
    return Span(trace_id, sent.span_id, root, sent.start, sent.end, what)


def root_span(
    trace_id: str, span_id: str, service: str, start: int, end: int, *, failed: bool
) -> Span:
    """Make the span around all of a run: it failed where the test did."""
    what = operation(service, "test", "server", 2 if failed else 1, False, ())
    return Span(trace_id, span_id, None, start, end, what)


def entered(trace: Trace, own: Collection[str]) -> Trace:
    """Make the test's own requests transparent, and the spans that answer them. ``own``: their
    ids."""
    spans = [
        span._replace(operation=_transparent(span.operation))
        if span.span_id in own or (span.parent_id in own and span.operation.serves)
        else span
        for span in trace.spans
    ]
    return Trace(trace.trace_id, tuple(spans), trace.missing)


def unanswered(trace: Trace, sent: Iterable[SentRequest]) -> list[SentRequest]:
    """List the requests of the test's own below which there is no span of anybody."""
    above = {span.parent_id for span in trace.spans}
    return [each for each in sent if each.span_id not in above]


def untold(trace: Trace) -> bool:
    """Return whether a call went well over HTTP or gRPC below which there is no span of anybody."""
    above = {span.parent_id for span in trace.spans}
    return any(
        (span.operation.point or "").startswith(("http:", "rpc:"))
        and not span.operation.failed
        and span.span_id not in above
        for span in trace.spans
    )


def lineage_of(trace: Trace, own: Collection[str]) -> Lineage:
    """Return the lineage of a run."""
    learned = learn(entered(trace, own))
    if learned is None:
        raise RuntimeError("a run without its root")
    return learned


def _transparent(what: Operation) -> Operation:
    status = 0 if what.failed is None else 2 if what.failed else 1
    return operation(what.service, what.name, "internal", status, False, ())
