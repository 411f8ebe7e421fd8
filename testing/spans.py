"""Spans, call trees and lineages in few words."""

from __future__ import annotations

from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.operation import operation
from ldfi.lineage.span import Span, Trace
from ldfi.lineage.tree import Tree, build

TRACE = "0" * 31 + "1"


def span(
    name: str,
    parent: str | None = None,
    kind: str = "client",
    service: str = "api",
    failed: bool | None = False,
    at: tuple[int, int] = (1, 2),
    trace: str = TRACE,
    **fields: str,
) -> Span:
    """Make one span. Its id is its name; a CLIENT span is the point of that name, unless told."""
    if kind == "client" and "point" not in fields:
        fields["point"] = name
    status = 0 if failed is None else (2 if failed else 1)
    what = operation(service, name, kind, status, False, tuple(sorted(fields.items())))
    return Span(trace, name, parent, at[0], at[1], what)


def tree(*spans: Span) -> Tree:
    """Build the call tree of spans, which must have one."""
    built = build(Trace.of(TRACE, spans))
    if built is None:
        raise ValueError("these spans have no root")
    return built


def lineage(*spans: Span) -> Lineage:
    """Learn the lineage of spans, which must have one."""
    learned = learn(Trace.of(TRACE, spans))
    if learned is None:
        raise ValueError("these spans have no root")
    return learned
