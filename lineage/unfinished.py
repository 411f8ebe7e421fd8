"""A trace that is not whole, as far as it can be read: the calls of a request without its root.

Services export at their own pace, and the root comes last: the request must end first, and its edge
export. A call that failed is known earlier, from whoever made it. To read it where it stands,
something is put in the place of each span that is missing above others, all of it within one
request. What comes of that is good for who fails right now, and evidence of nothing.
"""

from __future__ import annotations

from ldfi.lineage.operation import operation
from ldfi.lineage.span import Span, Trace

_ABOVE = "what is to come"


def partial_trace(trace: Trace) -> Trace:
    """Complete a trace without a root; any other is returned as it is."""
    spans = trace.spans
    there = {span.span_id for span in spans}
    if not spans or any(span.parent_id is None for span in spans):
        return trace
    begin, end = min(span.start for span in spans), max(span.end for span in spans)
    service = spans[0].operation.service
    what = operation(service, _ABOVE, "server", 0, False, ())
    added = [Span(trace.trace_id, _ABOVE, None, begin, end, what)]
    missing = dict.fromkeys(s.parent_id for s in spans if s.parent_id not in there)
    for parent in missing:
        if parent is not None:
            mine = next(span for span in spans if span.parent_id == parent)
            within = operation(mine.operation.service, _ABOVE, "internal", 0, False, ())
            added.append(Span(trace.trace_id, parent, _ABOVE, begin, end, within))
    return Trace.of(trace.trace_id, [*added, *spans], trace.missing, trace.heard)
