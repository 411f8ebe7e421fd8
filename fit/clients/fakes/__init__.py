"""Fakes that take the place of a client above its injection point, so that it is never reached.

Where a request under a context comes to such a fake, the real client is let at the call first,
down to the point in it: there a fault takes effect as it does in production, beneath retries and
all. Where none does, the fake answers, as if it stood at the wire. (Fakes of httpx:
:mod:`httpx_transports <ldfi.fit.clients.httpx_transports>`.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Final, Literal

from ldfi.fit import patching

ANSWER: Final = "_fit_answer"
"""On a connection that stands in for one: what answers the request in place of the wire."""

FAKES: Final = {
    "responses": "responses",
    "aioresponses": "aioresponses",
    "vcr.stubs.aiohttp_stubs": "vcrpy_aiohttp",
}
"""The module whose import brings a fake into the process → the file here that knows it."""

_State = Literal["", "asked", "passed"]
_state: ContextVar[_State] = ContextVar("fit-fake", default="")


class LetThrough(BaseException):
    """The point has been passed and nothing happened: the fake shall answer."""


def patch_all() -> None:
    """Let faults take effect through every fake here: at once where it is imported, else when it
    is."""
    for library, here in FAKES.items():
        patching.when_imported(library, _patch(here))


def _patch(here: str) -> Callable[[], None]:
    def patch() -> None:
        import_module(f"ldfi.fit.clients.fakes.{here}").patch()

    return patch


@contextmanager
def calling(state: _State) -> Iterator[None]:
    """Return how far a call has come: the real client is ``asked``, or its point is ``passed``."""
    token = _state.set(state)
    try:
        yield
    finally:
        _state.reset(token)


def passed() -> bool:
    """Return whether the call that is going on has passed its point already."""
    return _state.get() == "passed"


def answers() -> bool:
    """Return whether a fake is to answer the call that is going on, which knows nothing of slow
    bodies."""
    return _state.get() == "asked"


def let_through() -> None:
    """Go no further than this where a fake stands in for the wire. Raises LetThrough there."""
    if _state.get() == "asked":
        raise LetThrough
