"""Python finds this when it starts under libfaketime (:mod:`soak.faketime`).

From 3.11 on ``time.sleep`` asks for clock_nanosleep with a moment of the monotonic clock. Told to
leave that clock alone, libfaketime hands on a moment that it never set, and the system refuses it
(EINVAL): who sleeps before trying again tries at once, for ever.
"""

import select
import time
from typing import SupportsIndex


def _sleep(seconds: SupportsIndex | float) -> None:
    """Sleep without that call."""
    if float(seconds) < 0:
        raise ValueError("sleep length must be non-negative")
    select.select([], [], [], float(seconds))


time.sleep = _sleep
