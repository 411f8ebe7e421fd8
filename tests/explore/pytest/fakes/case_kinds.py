"""Every fake of the wire under every kind of fault: an application that masks one kind and not
another, and one whose callers have no patience that could run out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import aiohttp
import httpx
import pytest
import requests
import responses
import respx
import vcr
from aioresponses import aioresponses
from pytest_httpx import HTTPXMock

KINDS = ("refused", "reset", "timeout", "status:500", "empty", "truncated", "corrupt")
STOCK = "http://stock/17"
REVIEWS = "http://reviews/17"
PATIENCE = 0.05

every_kind = pytest.mark.ldfi(kinds=KINDS, each_kind=True, max_size=1, time_limit=180.0)
only_timeouts = pytest.mark.ldfi(kinds="timeout", max_size=1, delay=0.1)
pytestmark = pytest.mark.httpx_mock(
    assert_all_responses_were_requested=False, can_send_already_matched_responses=True
)


def by_httpx(patience: float | None = PATIENCE) -> None:
    """Needs ``stock``; takes no answer of ``reviews`` for none, but an error for an error."""
    with httpx.Client(timeout=patience) as client:
        reviews = None
        with suppress(httpx.TransportError):
            reviews = client.get(REVIEWS)
        if reviews is not None:
            reviews.raise_for_status()
        assert client.get(STOCK).raise_for_status().text == "ok"


async def by_httpx_async(patience: float | None = PATIENCE) -> None:
    """The same."""
    async with httpx.AsyncClient(timeout=patience) as client:
        reviews = None
        with suppress(httpx.TransportError):
            reviews = await client.get(REVIEWS)
        if reviews is not None:
            reviews.raise_for_status()
        assert (await client.get(STOCK)).raise_for_status().text == "ok"


def by_requests(patience: float | None = PATIENCE) -> None:
    """The same."""
    with requests.Session() as session:
        reviews = None
        with suppress(requests.RequestException):
            reviews = session.get(REVIEWS, timeout=patience)
        if reviews is not None:
            reviews.raise_for_status()
        stock = session.get(STOCK, timeout=patience)
        stock.raise_for_status()
        assert stock.text == "ok"


async def by_aiohttp(patience: float | None = PATIENCE) -> None:
    """The same."""
    timeout = aiohttp.ClientTimeout(total=None, sock_read=patience)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        status = 200
        with suppress(aiohttp.ClientError):
            async with session.get(REVIEWS) as reviews:
                status = reviews.status
                await reviews.read()
        assert status < 400
        async with session.get(STOCK) as stock:
            stock.raise_for_status()
            assert await stock.read() == b"ok"


class Fallback(httpx.BaseTransport):
    """Asks another host where the first one fails: an application's own transport."""

    def __init__(self, inner: httpx.BaseTransport) -> None:
        self.inner = inner

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with suppress(httpx.TransportError):
            answer = self.inner.handle_request(request)
            if answer.status_code < 500:
                return answer
        url = request.url.copy_with(host="reviews")
        timeouts = {"timeout": request.extensions["timeout"]}
        return self.inner.handle_request(httpx.Request(request.method, url, extensions=timeouts))


class Answer(aiohttp.ClientResponse):
    """aioresponses 0.7.9 does not know what aiohttp 3.14 asks for."""

    def __init__(self, *given: Any, **named: Any) -> None:
        named.setdefault("stream_writer", mock.Mock())
        super().__init__(*given, **named)


@pytest.fixture
def by_respx(respx_mock: respx.MockRouter) -> None:
    respx_mock.get(url__regex=r"http://(stock|reviews)/\d+").respond(text="ok")


@pytest.fixture
def by_pytest_httpx(httpx_mock: HTTPXMock) -> None:
    httpx_mock.add_response(text="ok")


@pytest.fixture
def by_responses() -> Iterator[None]:
    with responses.mock:
        responses.get(STOCK, body="ok")
        responses.get(REVIEWS, body="ok")
        yield


@pytest.fixture
def by_aioresponses() -> Iterator[None]:
    with aioresponses() as fake:
        fake.get(STOCK, body="ok", response_class=Answer, repeat=True)
        fake.get(REVIEWS, body="ok", response_class=Answer, repeat=True)
        yield


@pytest.fixture
def by_vcrpy(cassette: Path) -> Iterator[None]:
    with vcr.use_cassette(cassette, record_mode="none", allow_playback_repeats=True):
        yield


@every_kind
@pytest.mark.usefixtures("by_respx")
def test_respx() -> None:
    by_httpx()


@every_kind
@pytest.mark.anyio
@pytest.mark.usefixtures("by_respx")
async def test_respx_async() -> None:
    await by_httpx_async()


@every_kind
@pytest.mark.usefixtures("by_pytest_httpx")
def test_pytest_httpx() -> None:
    by_httpx()


@every_kind
@pytest.mark.anyio
@pytest.mark.usefixtures("by_pytest_httpx")
async def test_pytest_httpx_async() -> None:
    await by_httpx_async()


@every_kind
@pytest.mark.usefixtures("by_vcrpy")
def test_vcrpy_httpx() -> None:
    by_httpx()


@every_kind
@pytest.mark.anyio
@pytest.mark.usefixtures("by_vcrpy")
async def test_vcrpy_httpx_async() -> None:
    await by_httpx_async()


@every_kind
@pytest.mark.usefixtures("by_responses")
def test_responses() -> None:
    by_requests()


@every_kind
@pytest.mark.usefixtures("by_vcrpy")
def test_vcrpy_requests() -> None:
    by_requests()


@every_kind
@pytest.mark.anyio
@pytest.mark.usefixtures("by_aioresponses")
async def test_aioresponses() -> None:
    await by_aiohttp()


@every_kind
@pytest.mark.anyio
@pytest.mark.usefixtures("by_vcrpy")
async def test_vcrpy_aiohttp() -> None:
    await by_aiohttp()


@pytest.mark.ldfi(kinds=("refused", "reset", "timeout", "status:500"), max_size=1)
@pytest.mark.usefixtures("by_respx")
def test_fallback_respx() -> None:
    with httpx.Client(transport=Fallback(httpx.HTTPTransport()), timeout=PATIENCE) as client:
        assert client.get(STOCK).raise_for_status().text == "ok"


@pytest.mark.ldfi(kinds=("refused", "reset", "timeout", "status:500"), max_size=1)
@pytest.mark.usefixtures("by_pytest_httpx")
def test_fallback_pytest_httpx() -> None:
    with httpx.Client(transport=Fallback(httpx.HTTPTransport()), timeout=PATIENCE) as client:
        assert client.get(STOCK).raise_for_status().text == "ok"


@only_timeouts
@pytest.mark.usefixtures("by_respx")
def test_respx_never() -> None:
    by_httpx(None)


@only_timeouts
@pytest.mark.anyio
@pytest.mark.usefixtures("by_respx")
async def test_respx_async_never() -> None:
    await by_httpx_async(None)


@only_timeouts
@pytest.mark.usefixtures("by_pytest_httpx")
def test_pytest_httpx_never() -> None:
    by_httpx(None)


@only_timeouts
@pytest.mark.usefixtures("by_vcrpy")
def test_vcrpy_httpx_never() -> None:
    by_httpx(None)


@only_timeouts
@pytest.mark.usefixtures("by_responses")
def test_responses_never() -> None:
    by_requests(None)


@only_timeouts
@pytest.mark.usefixtures("by_vcrpy")
def test_vcrpy_requests_never() -> None:
    by_requests(None)


@only_timeouts
@pytest.mark.anyio
@pytest.mark.usefixtures("by_aioresponses")
async def test_aioresponses_never() -> None:
    await by_aiohttp(None)


@only_timeouts
@pytest.mark.anyio
@pytest.mark.usefixtures("by_vcrpy")
async def test_vcrpy_aiohttp_never() -> None:
    await by_aiohttp(None)
