"""Services that do not say whom they call: they export no CLIENT spans.

Three things show it: the span of the callee hangs directly below the caller's own, the span of the
callee hangs in the air since its parent never came, or requests fall and show no call at all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from ldfi.analysis.hints import Hint
from ldfi.analysis.words import counted
from ldfi.lineage.classes import RequestClass
from ldfi.lineage.shapes import Shape
from ldfi.lineage.span import Span

_CALLING = frozenset({"client", "producer"})
_ADVICE = "Instrument its client, and let it pass the traceparent header on."


def silent(classes: Iterable[RequestClass], gaps: Iterable[Shape]) -> Iterator[Hint]:
    """Find them. ``gaps``: requests whose traces have gaps, which are in no class."""
    classes = list(classes)
    shapes = [shape for each in classes for shape in each.shapes] + list(gaps)
    reasons: dict[str, list[str]] = defaultdict(list)
    for (caller, callee), count in sorted(_unrecorded(shapes).items()):
        reasons[caller].append(
            f"it exports no client span of its {counted(count, 'call')} to {callee}"
        )
    for each in classes:
        if not any(shape.lineage.called for shape in each.shapes):
            reasons[each.service].extend(_bare(each))
    for service, said in sorted(reasons.items()):
        for reason in said:
            yield Hint((service,), reason, _ADVICE)


def _bare(each: RequestClass) -> Iterator[str]:
    """Yield a message if requests of a class show no calls, although they make some."""
    shown = f"{counted(each.traces, 'request')} of {each.name} show no call at all"
    failed = sum(shape.count for shape in each.shapes if shape.outcome == "failed")
    if any(shape.told for shape in each.shapes):
        yield (
            f"{shown}, though the outcomes tell of faults in what they call: it exports no client"
            " spans there, or loses the traceparent header"
        )
    elif failed:
        yield (
            f"{shown}, and {failed:,} of them failed: it makes none, or exports no client spans"
            " of them"
        )


def _unrecorded(shapes: Iterable[Shape]) -> Counter[tuple[str, str]]:
    """Count calls that only their callee recorded, by caller and callee."""
    below, adrift = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    recorded: set[tuple[str, str]] = set()
    for shape in shapes:
        for (caller, callee), kind in _arrivals(shape):
            if kind == "recorded":
                recorded.add((caller, callee))
            else:
                (below if kind == "below" else adrift)[caller, callee] += shape.count
    for pair in recorded:  # that it did say elsewhere: a span was lost on its way, now and then
        adrift.pop(pair, None)
    return below + adrift


def _arrivals(shape: Shape) -> Iterator[tuple[tuple[str, str], str]]:
    """List the SERVER spans of a request that another service caused, and how that is seen."""
    run = shape.lineage
    spans = run.trace.spans
    known = {span.span_id: span for span in spans}
    shared = Counter(span.span_id for span in spans)
    calling = {span.operation.service for span in spans if span.operation.kind in _CALLING}
    entry = next((s.parent_id for s in spans if _enters(s, shape)), None)
    for span in spans:
        callee, parent = span.operation.service, span.parent_id
        if span.operation.kind != "server" or parent is None:
            continue
        above = known.get(parent)
        if shared[span.span_id] > 1:  # Zipkin gives both halves of a call one id
            continue
        if above is None:
            if parent != entry and run.service != callee and run.service not in calling:
                yield (run.service, callee), "adrift"
        elif shared[parent] == 1 and above.operation.service != callee:
            yield (above.operation.service, callee), _kind(above)


def _enters(span: Span, shape: Shape) -> bool:
    run = shape.lineage
    return span.operation.serves and (span.start, span.operation.service) == (
        run.start,
        run.service,
    )


def _kind(above: Span) -> str:
    return "recorded" if above.operation.kind in _CALLING else "below"
