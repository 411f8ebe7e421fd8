"""Spans that the extension holds: made to spans of ours only where somebody looks at them.

Most traces are plain trees of a shape that was seen before, and then nobody looks: what is learned
of them depends on their shape alone (:mod:`ldfi.lineage.recognition`), and whether they are whole
on how many calls of each kind were answered in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, overload

from ldfi.lineage.machine_code import extension
from ldfi.lineage.operation import Operation, calls_inside
from ldfi.lineage.span import Span

Counted = list[tuple[Operation, int]]
"""Operations, each with how many spans are of it."""

_new_span = partial(tuple.__new__, Span)
"""``Span(...)`` without the detour through Python."""

_CALLING: Final = frozenset({"client", "producer"})


def spans_of(rows: Iterable[Any]) -> list[Span]:
    """Make spans of the rows that the extension gives."""
    return list(map(_new_span, rows))


def traits(what: Operation) -> int:
    """Return what the extension asks of an operation, as bits: it serves, a request may enter at
    it, somebody has to look at its trace (it may be detached, a fault of ours was carried out in
    it, or is about to be), it is a call of a point that may be answered, it announces calls."""
    said = (
        what.serves,
        what.kind == "server",
        what.detached or bool(what.fired) or bool(what.mark),
        what.kind in _CALLING and what.point is not None,
        calls_inside(what) > 0,
    )
    return sum(1 << bit for bit, each in enumerate(said) if each)


class Plain(NamedTuple):
    """A trace that is a plain tree: one root, every id once, all parents there, nothing that may go
    on alone, no call that a fault of ours has stopped."""

    shape: int
    """The number of its shape: never given twice."""
    root: Operation
    start: int
    end: int
    """Of the root: nanoseconds since the epoch."""
    outermost: bool
    """The root says no parent."""
    announces: bool
    """Some span announces how many calls are made inside it."""


class Packed(Sequence[Span]):
    """Spans in parts that the extension holds, each of one trace.

    They stand in the order in which they came or, of a trace (``plain`` or ``by_time``), by time.
    """

    __slots__ = ("_by_time", "_spans", "parts", "plain")

    def __init__(
        self, parts: Sequence[Any], plain: Plain | None = None, by_time: bool = False
    ) -> None:
        self.parts = parts
        self.plain = plain
        self._by_time = by_time or plain is not None
        self._spans: tuple[Span, ...] | None = None

    def __len__(self) -> int:
        """Count the spans, without a look at them."""
        return sum(map(len, self.parts))

    @overload
    def __getitem__(self, at: int) -> Span: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Span, ...]: ...
    def __getitem__(self, at: int | slice) -> Span | tuple[Span, ...]:
        return self.look()[at]

    def __iter__(self) -> Iterator[Span]:
        return iter(self.look())

    def __eq__(self, other: object) -> bool:
        return self.look() == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.look())

    def __repr__(self) -> str:
        return repr(self.look())

    def look(self) -> tuple[Span, ...]:
        """Make spans of them, once."""
        if self._spans is None:
            self._spans = tuple(spans_of(extension().rows(self.parts, self._by_time)))
        return self._spans


def traces_of(spans: Sequence[Span]) -> list[str]:
    """List the traces that spans are of, in the order in which they come."""
    if isinstance(spans, Packed):
        return [part.trace_id for part in spans.parts]
    return list(dict.fromkeys(span[0] for span in spans))


class Usual(NamedTuple):
    """What a plain trace tells of what is usual: operations that served below others, calls that
    were answered, and calls that were not."""

    under: Counted
    answered: Counted
    unanswered: Counted


class _Shelf:
    """The extension's memory of shapes, made where there is one."""

    known: Any = None


def recognise(parts: Sequence[Any]) -> Plain | None:
    """Recognise a trace by all its parts; None for one that is no plain tree."""
    if _Shelf.known is None:
        _Shelf.known = extension().Shelf()
    found = _Shelf.known.recognise(parts)
    return None if found is None else Plain(*found)


def usual(parts: Sequence[Any]) -> Usual:
    """Count what a plain trace tells of what is usual."""
    return Usual(*extension().Shelf.told(parts))
