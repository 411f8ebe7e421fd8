"""A sampler that keeps every request under experiment, whatever the sampler inside it says.

An experiment whose traces were sampled away proves nothing. The first span of each service that
such a request enters also says which experiment and which arm it belongs to.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind
from opentelemetry.trace.span import TraceState

from ldfi.fit import attributes, runtime

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.sampling import Sampler as SdkSampler
    from opentelemetry.sdk.trace.sampling import SamplingResult
    from opentelemetry.util.types import Attributes
else:
    SdkSampler = object  # the SDK asks for the methods only, and may not be installed


_log = logging.getLogger("fit")


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
            marks = _marks(parent_context)
            return result if marks is None else _kept(result, attributes, marks)
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
    """Say what the first span of a request under experiment shall carry; None for any other
    request."""
    active = runtime.active()
    context = active.context(parent_context) if active else None
    if context is None:
        return None
    parent = trace.get_current_span(parent_context).get_span_context()
    if parent.is_valid and not parent.is_remote:
        return {}
    return {attributes.EXPERIMENT: context.experiment, attributes.ARM: context.arm}


def _kept(result: Any, given: Attributes, marks: dict[str, str]) -> SamplingResult:
    from opentelemetry.sdk.trace.sampling import Decision, SamplingResult

    described = {**(given or {}), **(result.attributes or {}), **marks}
    return SamplingResult(Decision.RECORD_AND_SAMPLE, described, result.trace_state)
