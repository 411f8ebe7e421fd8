"""Commands to Redis that the test's own function sends: they set the scene or look at it, so they
are no dependency of what is tested. They are sent outside of the run: no fault hits them, also
where the application sends the same, and no span of theirs is taken for a call of the run's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, Final
from unittest.mock import patch

from opentelemetry import context as otel_context
from opentelemetry.context import Context

from ldfi.explore.pytest.recorder import RELAY

_OUTSIDE: Final = Context({"ldfi-outside": True})
"""Of no run, and not empty: what has no context at all is taken for the run's."""

_WAYS: Final = (
    ("redis.client", "Redis", "execute_command"),
    ("redis.client", "Pipeline", "execute"),
    ("redis.asyncio.client", "Redis", "execute_command"),
    ("redis.asyncio.client", "Pipeline", "execute"),
)


@contextmanager
def set_aside() -> Iterator[None]:
    """Have the test's own commands sent outside of its run as long as this lasts."""
    with ExitStack() as stack:
        for module, owner, method in _WAYS:
            held = getattr(sys.modules.get(module), owner, None)
            if held is not None:
                waits = "asyncio" in module
                outside = _outside(held.__dict__[method], waits=waits)
                stack.enter_context(patch.object(held, method, outside))
        yield


def _outside(original: Any, *, waits: bool) -> Any:
    """Wrap a method; ``waits``: what it returns is awaited."""

    @wraps(original)
    def send(client: Any, *call: Any, **options: Any) -> Any:
        bound = original.__get__(client, type(client))  # instrumentation has to know whose it is
        if not _asks():
            return bound(*call, **options)
        if waits:
            return _alone(bound, *call, **options)
        token = otel_context.attach(_OUTSIDE)
        try:
            return bound(*call, **options)
        finally:
            otel_context.detach(token)

    return send


async def _alone(bound: Any, *call: Any, **options: Any) -> Any:
    token = otel_context.attach(_OUTSIDE)
    try:
        return await bound(*call, **options)
    finally:
        otel_context.detach(token)


def _asks() -> bool:
    """Return whether it is the test itself that sends just now."""
    recorder = RELAY.recorder
    return (
        recorder is not None
        and recorder.runs
        and recorder.outermost
        and recorder.asked_by_the_test()
    )
