from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import grpc
import pytest
from grpc import aio
from opentelemetry.instrumentation.grpc import GrpcAioInstrumentorClient

from ldfi.fit.clients import grpc_aio as ours
from tests.fit.clients.contract import Requests, holds, seen_async, unharmed
from tests.fit.clients.test_grpc import serve

TIMEOUT = 1.0


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    server, port = serve()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait(5)


@pytest.fixture(autouse=True)
def instrumented(requests_made: Requests) -> Iterator[None]:
    instrumentor = GrpcAioInstrumentorClient()  # type: ignore[no-untyped-call]
    instrumentor.instrument(tracer_provider=requests_made.provider)
    yield
    instrumentor.uninstrument()


async def _given() -> AsyncIterator[bytes]:
    yield b"x"
    yield b"y"


async def get(channel: aio.Channel) -> object:
    return await channel.unary_unary("/shop.Prices/Get")(b"x", timeout=TIMEOUT)


async def stream(channel: aio.Channel) -> object:
    call = channel.unary_stream("/shop.Prices/List")(b"x", timeout=TIMEOUT)
    return [item async for item in call]


async def put(channel: aio.Channel) -> object:
    return await channel.stream_unary("/shop.Prices/Put")(_given(), timeout=TIMEOUT)


async def chat(channel: aio.Channel) -> object:
    call = channel.stream_stream("/shop.Prices/Chat")(_given(), timeout=TIMEOUT)
    return [item async for item in call]


def failed_with(code: grpc.StatusCode) -> Callable[[Any], bool]:
    return lambda answer: isinstance(answer, aio.AioRpcError) and answer.code() is code


@pytest.mark.parametrize(
    ("method", "call"), [("Get", get), ("List", stream), ("Put", put), ("Chat", chat)]
)
def test_one_name_at_both_ends(
    requests_made: Requests, target: str, method: str, call: Callable[[aio.Channel], Any]
) -> None:
    async def within() -> object:
        async with aio.insecure_channel(target) as channel:
            return await call(channel)

    holds(
        requests_made,
        f"api>rpc:{method}:/shop.Prices",
        seen_async(within),
        failed_with(grpc.StatusCode.UNAVAILABLE),
        failed_with(grpc.StatusCode.DEADLINE_EXCEEDED),
    )


def test_a_failed_call_answers_like_any_other(requests_made: Requests, target: str) -> None:
    async def within() -> tuple[Any, ...]:
        async with aio.insecure_channel(target) as channel:
            call = channel.unary_unary("/shop.Prices/Get")(b"x")
            return await call.code(), await call.details(), call.done(), call.cancelled()

    with requests_made.request("error@api>rpc:Get:/shop.Prices"):
        answer = asyncio.run(within())

    assert answer == (grpc.StatusCode.UNAVAILABLE, "fault injected", True, False)


def test_a_delayed_call_is_cancelled_with_its_task(requests_made: Requests, target: str) -> None:
    async def within() -> None:
        async with aio.insecure_channel(target) as channel, asyncio.timeout(0.1):
            await channel.unary_unary("/shop.Prices/Get")(b"x")

    with (
        requests_made.request("delay@api>rpc:Get:/shop.Prices", delay_ms=60_000),
        pytest.raises(TimeoutError),
    ):
        asyncio.run(within())


def test_a_channel_without_interceptors_is_left_alone(requests_made: Requests, target: str) -> None:
    GrpcAioInstrumentorClient().uninstrument()  # type: ignore[no-untyped-call]

    async def within() -> tuple[object, type]:
        async with aio.insecure_channel(target) as channel:
            call = channel.unary_unary("/shop.Prices/Get")(b"x")
            return await call, type(call)

    with requests_made.request("error@api>rpc:Get:/shop.Prices"):
        assert asyncio.run(within()) == (b"x", aio._call.UnaryUnaryCall)


@pytest.mark.parametrize(
    ("method", "call"), [("Get", get), ("List", stream), ("Put", put), ("Chat", chat)]
)
def test_the_host_is_unharmed(
    requests_made: Requests, target: str, method: str, call: Callable[[aio.Channel], Any]
) -> None:
    async def within() -> object:
        async with aio.insecure_channel(target) as channel:
            return await call(channel)

    unharmed(
        requests_made,
        ours,
        f"api>rpc:{method}:/shop.Prices",
        seen_async(within),
        failed_with(grpc.StatusCode.UNAVAILABLE),
    )
