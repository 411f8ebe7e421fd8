"""One context for a whole process: threads that carry none of their own are taken for the test's.

A run of a test is all that a process is asked for just then. A call that is made in a pool, by a
timer or by a worker that has begun long before has no context, and so would be no call of the run:
it could not be seen, and no fault could hit it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Token
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry.context import Context

from ldfi.fit import inject


class _Fallback:
    """OpenTelemetry's own context runtime; where it holds nothing, ``context`` stands in."""

    def __init__(self, inner: Any, context: Context) -> None:
        self._inner = inner
        self._context = context

    def get_current(self) -> Context:
        return self._inner.get_current() or self._context

    def attach(self, context: Context) -> Token[Context]:
        token: Token[Context] = self._inner.attach(context)
        return token

    def detach(self, token: Token[Context]) -> None:
        self._inner.detach(token)


@contextmanager
def everywhere(context: Context) -> Iterator[None]:
    """Have ``context`` be the current one, as long as this lasts, wherever there is no other."""
    found: Any = otel_context
    inner = getattr(found, "_RUNTIME_CONTEXT", None)
    if inner is None:  # another version of OpenTelemetry: threads stay as they are
        yield
        return
    reader: Any = inject
    found._RUNTIME_CONTEXT = fallback = _Fallback(inner, context)
    before, reader.current = reader.current, fallback.get_current
    try:
        yield
    finally:
        found._RUNTIME_CONTEXT, reader.current = inner, before
