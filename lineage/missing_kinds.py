"""Spans that say no kind, as older tracers write them: what they are, told by who is around them.

- What has a parent in another service was **served** there: a SERVER span (a CONSUMER below a
  PRODUCER).
- What led to just one such span, and made no other call that is known of, is that **call**: a
  CLIENT span (a PRODUCER above a CONSUMER). Where several services were reached from within, it is
  work, and each of them a call of its own: taken together they would be one point, and which of
  them is needed would never be asked.
- A **root** is the request itself. Where its parent was never exported, the earliest is.
- What says what it asked of a **database**, within no call and with none below it, is that call: a
  CLIENT span, also if it says INTERNAL, as spans that are made by hand and some engines do.

Everything else stays as it is: work within a service. Kinds that were said are believed, but for
those of callees that cannot be: what lies right below a CLIENT span of another service is the
callee's side of that call, though it be called CLIENT as well (under the same name; else it is a
call that the callee makes), or INTERNAL, which is what tracers say where nobody chose.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from ldfi.lineage.attributes import SERVING, wanted
from ldfi.lineage.naming import CALLING
from ldfi.lineage.operation import CACHE, Operation, operation
from ldfi.lineage.outcome import STATUS_ERROR, STATUS_OK, STATUS_UNSET
from ldfi.lineage.span import Span

_STATUS: Final = {True: STATUS_ERROR, False: STATUS_OK, None: STATUS_UNSET}


def with_kinds(spans: Sequence[Span], parents: Sequence[int | None]) -> tuple[Span, ...]:
    """Give kinds to spans that say none, or one that cannot be. ``parents``: the place of each
    span's parent."""
    spans = _as_queries(_as_served(spans, parents), parents)
    if all(span.operation.kind for span in spans):
        return spans
    kinds = [span.operation.kind for span in spans]
    for i, above in enumerate(parents):
        if not kinds[i] and above is not None and _elsewhere(spans[i], spans[above]):
            sent = spans[above].operation.kind == "producer"
            kinds[i] = "consumer" if sent else "server"
    for i in _requests(spans, parents):
        kinds[i] = kinds[i] or "server"
    children: dict[int, list[int]] = defaultdict(list)
    for i, above in enumerate(parents):
        if above is not None:
            children[above].append(i)
    leading = {i: _call(i, children, spans, kinds) for i in children if not kinds[i]}
    return tuple(
        span._replace(operation=_as(span.operation, kinds[i] or leading.get(i, "")))
        for i, span in enumerate(spans)
    )


def _as_served(spans: Sequence[Span], parents: Sequence[int | None]) -> tuple[Span, ...]:
    """Read as SERVER what lies right below a CLIENT span of another service."""
    served = {
        i
        for i, above in enumerate(parents)
        if above is not None
        and spans[above].operation.kind == "client"
        and spans[i].operation.kind in {"client", "internal"}
        and _elsewhere(spans[i], spans[above])
        and _answers(spans[i].operation, spans[above].operation)
    }
    if not served:
        return tuple(spans)
    return tuple(
        span._replace(operation=_as(span.operation, "server")) if i in served else span
        for i, span in enumerate(spans)
    )


def _answers(what: Operation, asked: Operation) -> bool:
    return what.kind == "internal" or what.name == asked.name


def _as_queries(spans: tuple[Span, ...], parents: Sequence[int | None]) -> tuple[Span, ...]:
    """Read as CLIENT the outermost spans that ask a database, where no other span is that call."""
    asking = {i for i, span in enumerate(spans) if _asks_a_database(span.operation)}
    if not asking:
        return spans
    served = {
        i
        for i, above in enumerate(parents)
        if above is not None and _elsewhere(spans[i], spans[above])
    }
    calling = served | {i for i, span in enumerate(spans) if _calls(span)}
    asking -= served | {above for i in calling for above in _above(i, parents)}
    queries = {
        i
        for i in asking
        if not any(
            (above in asking or spans[above].operation.kind in CALLING)
            and not _elsewhere(spans[i], spans[above])
            for above in _above(i, parents)
        )
    }
    return tuple(
        span._replace(operation=_as(span.operation, "client")) if i in queries else span
        for i, span in enumerate(spans)
    )


def _above(i: int, parents: Sequence[int | None]) -> Iterator[int]:
    """Yield what is around a span, the nearest first; of a circle each once."""
    met = {i}
    at = parents[i]
    while at is not None and at not in met:
        met.add(at)
        yield at
        at = parents[at]


@lru_cache(maxsize=CACHE)
def _asks_a_database(what: Operation) -> bool:
    """Return whether a span that is no call, as it says, tells what it asked of a database."""
    if what.kind not in {"", "internal"} or what.point is not None:
        return False
    said = dict(what.fields)
    return "db_statement" in said or ("db" in said and not _ASKED.isdisjoint(said))


_ASKED: Final = frozenset({"db_operation", "db_summary", "db_table"})


def _requests(spans: Sequence[Span], parents: Sequence[int | None]) -> list[int]:
    """List the places of what came from outside."""
    roots = [i for i, span in enumerate(spans) if span.parent_id is None and parents[i] is None]
    if roots:
        return roots
    loose = [i for i, above in enumerate(parents) if above is None]
    if any(spans[i].operation.kind == "server" for i in loose):
        return []
    return sorted(loose, key=lambda i: (spans[i].start, spans[i].span_id))[:1]


def _call(
    i: int, children: dict[int, list[int]], spans: Sequence[Span], kinds: Sequence[str]
) -> str:
    """Return which kind of call a span is; empty for one that is none, or several."""
    below = children[i]
    served = [c for c in below if kinds[c] in SERVING and _elsewhere(spans[c], spans[i])]
    others = [c for c in below if c not in served]
    if len(served) != 1 or any(c in children or _calls(spans[c]) for c in others):
        return ""
    return "producer" if kinds[served[0]] == "consumer" else "client"


def _calls(span: Span) -> bool:
    return span.operation.kind in CALLING or span.operation.point is not None


def _elsewhere(span: Span, above: Span) -> bool:
    return span.operation.service != above.operation.service


@lru_cache(maxsize=CACHE)
def _as(what: Operation, kind: str) -> Operation:
    """Read an operation as one of some kind."""
    if what.kind == kind:
        return what
    fields = {field for field, _ in wanted(kind).values()}
    said = [(field, value) for field, value in what.fields if field in fields]
    if kind in CALLING:  # a caller's query names no point
        said = [(f, value.partition("?")[0] if f == "url" else value) for f, value in said]
    status = _STATUS[what.failed]
    return operation(what.service, what.name, kind, status, False, tuple(said), what.detached)
