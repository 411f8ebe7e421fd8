"""A trace as one hash, which stays when the trace itself is long gone."""

from __future__ import annotations

import hashlib
import json

from ldfi.lineage.span import Trace


def digest(trace: Trace) -> str:
    """Hash a trace: SHA-256, in hex, of its spans in an order that does not depend on how they
    came, written as canonical JSON (RFC 8785).

    Of each span: id, parent, begin and end (nanoseconds since the epoch, as text, for they are
    more than a double holds), service, name, kind, whether it failed, whether perhaps nobody waited
    for it, what was read of its attributes, and its links.
    """
    spans = [
        [
            *(span.span_id, span.parent_id, str(span.start), str(span.end)),
            *(span.operation.service, span.operation.name, span.operation.kind),
            *(span.operation.failed, span.operation.detached),
            *(span.operation.fields, span.links),
        ]
        for span in trace.spans
    ]
    written = json.dumps([trace.trace_id, spans], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
