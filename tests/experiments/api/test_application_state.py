"""What goes on beside the routes ends before what it works on is closed."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ldfi.experiments.api.application_state import to_its_end


def test_whoever_is_cancelled_waits_for_the_end_of_what_a_thread_does() -> None:
    begun, go_on, over = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait(10)
        over.set()

    async def cancelled() -> None:
        task = asyncio.create_task(to_its_end(work))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.sleep(0.05)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert over.is_set()

    asyncio.run(cancelled())


def test_what_a_thread_raises_is_raised() -> None:
    def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(to_its_end(work))
