"""The faults ``delay`` and ``timeout``: the call is slower than its caller will wait.

It hangs until the caller's own timeout where that is known, and then ends with the timeout that
the library would have raised. Where the caller waits longer than the fault lasts, or for ever, it
hangs for the fault's length and then goes through: it was outlasted. A ``timeout`` is the first of
these alone: it either ends with the caller's own timeout, or is not there.

Nothing is held while it hangs but what the call itself holds, and a cancelled call stops hanging.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from opentelemetry.trace import Span, StatusCode

from ldfi.fit.effect import Effect


def delay(
    delay_ms: int, patience: float | None = None, timeout: Callable[[], object] | None = None
) -> Effect:
    """Hang for ``delay_ms``, or for ``patience`` (seconds) if the caller has less of it.

    ``timeout`` makes the failure for a caller whose patience ran out.
    """
    longest = delay_ms / 1000
    if patience is None or timeout is None or patience > longest:
        return Effect(longest)
    return Effect(max(patience, 0.0), timeout())


def timeout(
    longest_ms: int, patience: float | None, failure: Callable[[], object]
) -> Effect | None:
    """Hang for the caller's whole ``patience`` (seconds), then fail as it does when that is over.

    None where the caller has no patience that can be seen, or more of it than the fault may hang:
    no call may time out before its time.
    """
    if patience is None or patience * 1000 > longest_ms:
        return None
    return Effect(max(patience, 0.0), failure())


def hang(seconds: float) -> None:
    """Wait, holding up the thread."""
    if seconds:
        time.sleep(seconds)


async def hang_async(seconds: float, span: Span) -> None:
    """Wait, letting other tasks run; a caller that gives up is written on ``span``."""
    if not seconds:
        return
    try:
        await asyncio.sleep(seconds)
    except BaseException as error:
        gave_up(span, error)
        raise


def gave_up(span: Span, error: BaseException) -> None:
    """Mark a delayed call that its caller cancelled as failed; OpenTelemetry does not by itself."""
    if span.is_recording():
        span.set_status(StatusCode.ERROR, "cancelled by its caller")
        span.set_attribute("error.type", type(error).__qualname__)
