"""Calls of threads and pools: hit where OpenTelemetry's instrumentation of threads hands the
context on, and without it let through and named."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Thread, Timer
from typing import Any, Final

import httpx
import pytest
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.instrumentation.threading import ThreadingInstrumentor

from ldfi.fit import bare, reporting
from tests.fit.clients.contract import Requests

Call = Callable[[], int]


def _in_pool(call: Call) -> int:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def _mapped(call: Call) -> int:
    with ThreadPoolExecutor(1) as pool:
        return next(iter(pool.map(lambda _: call(), [1])))


def _in_loop(call: Call) -> int:
    async def run() -> int:
        return await asyncio.get_running_loop().run_in_executor(None, call)

    return asyncio.run(run())


def _by(made: Callable[[Callable[[], None]], Thread]) -> Callable[[Call], int]:
    def run(call: Call) -> int:
        answer: Future[int] = Future()
        thread = made(lambda: answer.set_result(call()))
        thread.start()
        thread.join()
        return answer.result(30)

    return run


CARRIERS: Final[dict[str, Callable[[Call], int]]] = {
    "pool": _in_pool,
    "map": _mapped,
    "loop": _in_loop,
    "thread": _by(lambda work: Thread(target=work)),
    "timer": _by(lambda work: Timer(0, work)),
}


@contextmanager
def _instrumented(instrumentor: Any, **options: Any) -> Iterator[None]:
    instrumentor.instrument(**options)
    try:
        yield
    finally:
        instrumentor.uninstrument()


@pytest.fixture
def called(server: str) -> Iterator[tuple[Call, str]]:
    """A call of a client, and its point."""
    with httpx.Client(trust_env=False) as client:
        point = f"api>http:GET:{server.removeprefix('http://')}/titles/*"
        yield lambda: client.get(f"{server}/titles/17").status_code, point


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_call_that_is_handed_the_context_is_hit_as_its_request_is(
    requests_made: Requests, called: tuple[Call, str], carrier: str
) -> None:
    call, point = called
    with (
        _instrumented(HTTPXClientInstrumentor(), tracer_provider=requests_made.provider),
        _instrumented(ThreadingInstrumentor()),
    ):
        for arm, status, said in (("treatment", 503, "fired"), ("control", 200, "would_fire")):
            with requests_made.request(f"error@{point}", arm=arm):  # type: ignore[arg-type]
                assert CARRIERS[carrier](call) == status
            assert getattr(requests_made.lineage(), said) == {f"error@{point}"}
            assert requests_made.lineage().called == {point}


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_call_without_the_context_is_let_through_and_named(
    requests_made: Requests,
    called: tuple[Call, str],
    carrier: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: dict[str, int] = {}
    monkeypatch.setattr(bare, "_calls", Counter())
    monkeypatch.setattr(reporting, "_bare", told)
    call, point = called
    with requests_made.request(f"error@{point}"):
        assert CARRIERS[carrier](call) == 200
    assert told["httpx"] == 1  # what other tests have left running may be told of besides
    assert "api>bare:httpx:1|none" in str(reporting.report("api"))

    with (
        _instrumented(HTTPXClientInstrumentor(), tracer_provider=requests_made.provider),
        requests_made.request(f"error@{point}"),
    ):
        assert CARRIERS[carrier](call) == 200
    (span,) = requests_made.calls()
    assert span.parent is None  # by which the lineage tells it
    assert "fit.fired" not in (span.attributes or {})


def test_a_pool_keeps_no_context_of_an_earlier_request(
    requests_made: Requests, called: tuple[Call, str]
) -> None:
    call, point = called
    with _instrumented(ThreadingInstrumentor()), ThreadPoolExecutor(1) as pool:
        with requests_made.request(f"error@{point}"):
            pool.submit(int).result()  # its worker begins here
        with requests_made.request():
            assert pool.submit(call).result() == 200
        assert pool.submit(call).result() == 200
