from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterator

import aiohttp
import pytest
from opentelemetry.instrumentation.aiohttp_client import AioHttpClientInstrumentor

from ldfi.fit.clients import aiohttp as ours
from tests.fit.clients.contract import Requests, holds, seen_async, unharmed


@pytest.fixture(autouse=True)
def instrumented(requests_made: Requests) -> Iterator[None]:
    AioHttpClientInstrumentor().instrument(tracer_provider=requests_made.provider)
    yield
    AioHttpClientInstrumentor().uninstrument()


@pytest.fixture
def point(server: str) -> str:
    return f"api>http:GET:{server.removeprefix('http://')}/titles/*"


async def get(url: str, **timeouts: float) -> int:
    timeout = aiohttp.ClientTimeout(**timeouts)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.get(url, params={"page": 2}) as response,
    ):
        await response.read()
        return response.status


def refused(answer: object) -> bool:
    return isinstance(answer, aiohttp.ClientConnectorError)


def test_one_name_at_both_ends(requests_made: Requests, server: str, point: str) -> None:
    holds(
        requests_made,
        point,
        seen_async(lambda: get(f"{server}/titles/17", sock_read=0.2)),
        refused,
        lambda answer: isinstance(answer, aiohttp.SocketTimeoutError),
    )


def test_a_refused_connection_reads_as_any_other(
    requests_made: Requests, server: str, point: str
) -> None:
    with requests_made.request(f"error@{point}"), pytest.raises(aiohttp.ClientError) as caught:
        asyncio.run(get(f"{server}/titles/17"))

    assert isinstance(caught.value, aiohttp.ClientConnectorError)
    assert caught.value.os_error.errno == errno.ECONNREFUSED
    assert f"{caught.value.host}:{caught.value.port}" == server.removeprefix("http://")


def test_the_total_timeout_and_the_callers_own_end_a_delay(
    requests_made: Requests, server: str, point: str
) -> None:
    async def impatient() -> None:
        async with asyncio.timeout(0.1):
            await get(f"{server}/titles/17")

    for call in (lambda: get(f"{server}/titles/17", total=0.1), impatient):
        with (
            requests_made.request(f"delay@{point}", delay_ms=60_000),
            pytest.raises(TimeoutError) as caught,
        ):
            asyncio.run(call())
        assert not isinstance(caught.value, aiohttp.ClientConnectorError)
        assert requests_made.lineage().failed == {point}


def test_the_host_is_unharmed(requests_made: Requests, server: str, point: str) -> None:
    call = seen_async(lambda: get(f"{server}/titles/17"))
    unharmed(requests_made, ours, point, call, refused)
