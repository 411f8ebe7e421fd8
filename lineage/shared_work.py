"""Work that was done for several requests at once: a batch, a look-up that others wait for.

It runs in one request's context, so a fault that is meant for that one hits the others as well, and
no context can tell them apart. Where spans link to one another (OpenTelemetry's data loaders and
batching clients do so), it shows afterwards.
"""

from __future__ import annotations

from ldfi.lineage.span import Span, Trace


def served(trace: Trace) -> frozenset[str]:
    """List the other traces for which a call was made at which a fault fired: those that its span,
    or one around it, links to."""
    spans = {span.span_id: span for span in trace.spans}
    found: set[str] = set()
    seen: set[str] = set()
    for span in trace.spans:
        above: Span | None = span if span.operation.fired else None
        while above is not None and above.span_id not in seen:
            seen.add(above.span_id)
            found.update(trace_id for trace_id, _ in above.links)
            above = spans.get(above.parent_id or "")
    return frozenset(found - {trace.trace_id})


def linked(trace: Trace) -> frozenset[str]:
    """List all other traces that spans of this one link to."""
    there = {trace_id for span in trace.spans for trace_id, _ in span.links}
    return frozenset(there - {trace.trace_id})


def most_fired(trace: Trace) -> int:
    """Count how often the fault that fired most often did so."""
    counts: dict[str, int] = {}
    for span in trace.spans:
        for kind in span.operation.fired:
            fault = f"{kind}@{span.operation.point}"
            counts[fault] = counts.get(fault, 0) + 1
    return max(counts.values(), default=0)
