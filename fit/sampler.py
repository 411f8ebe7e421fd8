"""A sampler that keeps every request under experiment, whatever the sampler inside it says, and
what injectors report.

An experiment whose traces were sampled away proves nothing. The first span of each service that
such a request enters also says which experiment and which arm it belongs to, and every span of it
how many calls were begun inside it: a trace in which one of them is missing is no evidence.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import baggage, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind
from opentelemetry.trace.span import TraceState

from ldfi.fit import arriving_request, request, runtime
from ldfi.fit.protocol import attributes
from ldfi.fit.protocol.attributes import MARK, REACH
from ldfi.fit.protocol.context import ENTRY

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.sampling import Sampler as SdkSampler
    from opentelemetry.sdk.trace.sampling import SamplingResult
    from opentelemetry.util.types import Attributes
else:
    SdkSampler = object  # the SDK asks for the methods only, and may not be installed


_log = logging.getLogger("fit")
_CALLING: Final = frozenset({SpanKind.CLIENT, SpanKind.PRODUCER})
_one_by_one: Final = threading.Lock()
"""A span may make calls from several threads, and each adds to what the ones before have told."""


class Sampler(SdkSampler):
    """Wraps ``inner``; give it to OpenTelemetry's ``TracerProvider(sampler=...)``."""

    def __init__(self, inner: SdkSampler) -> None:
        self._inner = inner

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """Decide on one span; called once for each (OpenTelemetry's interface)."""
        result = self._inner.should_sample(
            parent_context, trace_id, name, kind, attributes, links, trace_state
        )
        try:
            if attributes and (REACH in attributes or MARK in attributes):
                return _kept(result, attributes, {})
            marks = _marks(parent_context)
            edge = _at_the_edge(parent_context) if kind is SpanKind.SERVER else {}
            if marks is not None:
                around = trace.get_current_span(parent_context)
                request.note(around)
                if not marks and _is_call(kind, attributes):
                    _announce(around)
                return _kept(result, attributes, {**marks, **edge})
            return _with(result, attributes, edge) if edge else result
        except Exception:
            runtime.swallow()
            return result

    def get_description(self) -> str:
        """Describe the sampler for the tracer's own logs."""
        return f"fit.Sampler({self._inner.get_description()})"


def from_argument(argument: str | None) -> SdkSampler:
    """Make the sampler of ``OTEL_TRACES_SAMPLER=fit``: it keeps the share of traces that
    ``OTEL_TRACES_SAMPLER_ARG`` says (all, without one), what a parent has decided, and every
    request under experiment."""
    from opentelemetry.sdk.trace import sampling

    class Registered(Sampler, sampling.Sampler):
        """The SDK takes nothing from an entry point that is not of its own class."""

    try:
        share = float(argument) if argument else 1.0
        inner = sampling.ParentBasedTraceIdRatio(share)
    except ValueError:
        _log.warning("OTEL_TRACES_SAMPLER_ARG is %r, no share from 0 to 1; all is kept", argument)
        inner = sampling.ParentBasedTraceIdRatio(1.0)
    return Registered(inner)


def _marks(parent_context: Context | None) -> dict[str, str] | None:
    """Return what the first span of a request under experiment shall carry; None for any other
    request. One that goes on when its context has run out is still under experiment."""
    active = runtime.active()
    value = baggage.get_baggage(ENTRY, parent_context) if active else None
    context = active.recognize(str(value)) if active and value is not None else None
    if context is None:
        return None
    parent = trace.get_current_span(parent_context).get_span_context()
    if parent.is_valid and not parent.is_remote:
        return {}
    return {attributes.EXPERIMENT: context.experiment, attributes.ARM: context.arm}


def _at_the_edge(parent_context: Context | None) -> dict[str, Any]:
    """Return what a request shall carry that has just come in at the edge."""
    if runtime.active() is None:
        return {}
    parent = trace.get_current_span(parent_context).get_span_context()
    word = arriving_request.taken(parent)
    if word is None:
        return {}
    told = {f"{attributes.FEATURE}{name}": value for name, value in word.features.items()}
    again = {attributes.AGAIN: True} if word.again else {}
    return {attributes.EDGE: True, **told, **again}


def _is_call(kind: SpanKind | None, given: Attributes) -> bool:
    return kind in _CALLING or attributes.POINT in (given or {})


def _announce(around: Any) -> None:
    """Write on a span that one call more was begun inside it: its span will come, or was lost."""
    if not around.is_recording():
        return
    with _one_by_one:
        told = (getattr(around, "attributes", None) or {}).get(attributes.CALLS, 0)
        around.set_attribute(attributes.CALLS, told + 1)


def _kept(result: Any, given: Attributes, marks: Mapping[str, Any]) -> SamplingResult:
    from opentelemetry.sdk.trace.sampling import Decision

    return _with(result, given, marks, Decision.RECORD_AND_SAMPLE)


def _with(
    result: Any, given: Attributes, marks: Mapping[str, Any], decision: Any = None
) -> SamplingResult:
    """Return a decision with ``marks`` beside all that the span is given anyway."""
    from opentelemetry.sdk.trace.sampling import SamplingResult

    described = {**(given or {}), **(result.attributes or {}), **marks}
    return SamplingResult(decision or result.decision, described, result.trace_state)
