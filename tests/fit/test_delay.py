from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace

from ldfi.fit.delay import delay, hang, hang_async
from ldfi.fit.effect import Effect
from tests.fit.clients.contract import Requests


def test_it_lasts_until_the_callers_patience_ends_and_then_fails_as_a_timeout() -> None:
    effect = delay(5_000, 0.2, lambda: "timed out")

    assert (effect.seconds, effect.failure) == (0.2, "timed out")


@given(st.integers(1, 10_000), st.one_of(st.none(), st.floats(0, 20)))
def test_it_outlasts_neither_itself_nor_the_patience(delay_ms: int, patience: float | None) -> None:
    effect = delay(delay_ms, patience, lambda: "timed out")

    assert effect.seconds <= delay_ms / 1000
    assert patience is None or effect.seconds <= patience
    outlasted = patience is None or patience > delay_ms / 1000
    assert (effect.failure is None) == outlasted


def test_without_a_known_timeout_it_is_outlasted() -> None:
    assert delay(100) == Effect(0.1)


def test_a_coroutine_that_hangs_lets_others_run_and_can_be_cancelled(recorded_by: Requests) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    async def cancelled() -> None:
        other = asyncio.create_task(tick())
        with recorded_by.provider.get_tracer("test").start_as_current_span("call") as span:
            async with asyncio.timeout(0.1):
                await hang_async(60, span)
        other.cancel()

    began = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(cancelled())

    assert time.monotonic() - began < 5
    assert ticks > 3
    (span,) = recorded_by.exporter.get_finished_spans()
    assert span.status.status_code is trace.StatusCode.ERROR
    assert dict(span.attributes or {})["error.type"] == "CancelledError"


def test_a_thread_that_hangs_waits() -> None:
    began = time.monotonic()
    hang(0.05)
    assert time.monotonic() - began >= 0.05
