"""Collecting garbage a little at a time: Python does it while nothing else goes on.

Nearly all that a service holds it goes on holding, but a full collection looks at all of it: with
two hundred request classes that takes a fifth of a second, again and again.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

THOROUGH_SECONDS: Final = 3600.0
"""How often everything is looked at all the same: what died since it was set aside goes then."""


@contextmanager
def short_collections(clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Freeze what survives a full collection, so that the next one is short."""
    thorough_at = clock() + THOROUGH_SECONDS

    def collected(phase: str, info: dict[str, int]) -> None:
        nonlocal thorough_at
        if phase != "stop" or info["generation"] != 2:
            return
        if clock() < thorough_at:
            gc.freeze()
        else:  # so the next one looks at everything
            thorough_at = clock() + THOROUGH_SECONDS
            gc.unfreeze()

    gc.callbacks.append(collected)
    try:
        yield
    finally:
        gc.callbacks.remove(collected)
        gc.unfreeze()
