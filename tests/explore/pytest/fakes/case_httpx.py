"""Fakes of httpx's wire, and what applications put above it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest
import respx
import vcr
from pytest_httpx import HTTPXMock

pytestmark = [
    pytest.mark.ldfi,
    pytest.mark.httpx_mock(
        assert_all_responses_were_requested=False, can_send_already_matched_responses=True
    ),
]
STOCK = "http://stock/17"
REVIEWS = "http://reviews/17"


def shop(client: httpx.Client) -> None:
    """Fails without ``stock``; does without ``reviews``."""
    with contextlib.suppress(httpx.HTTPError):
        client.get(REVIEWS).raise_for_status()
    client.get(STOCK).raise_for_status()


async def shop_async() -> None:
    async with httpx.AsyncClient() as client:
        with contextlib.suppress(httpx.HTTPError):
            (await client.get(REVIEWS)).raise_for_status()
        (await client.get(STOCK)).raise_for_status()


def test_respx(respx_mock: respx.MockRouter) -> None:
    respx_mock.get(url__regex=r"http://(stock|reviews)/\d+")
    with httpx.Client() as client:
        shop(client)


@pytest.mark.anyio
async def test_respx_async(respx_mock: respx.MockRouter) -> None:
    respx_mock.get(url__regex=r"http://(stock|reviews)/\d+")
    await shop_async()


def test_respx_of_httpx() -> None:
    with respx.mock(assert_all_called=False, using="httpx") as router, httpx.Client() as client:
        router.get(STOCK)
        router.get(REVIEWS)
        shop(client)


def test_pytest_httpx(httpx_mock: HTTPXMock) -> None:
    httpx_mock.add_response()
    with httpx.Client() as client:
        shop(client)


@pytest.mark.anyio
async def test_pytest_httpx_async(httpx_mock: HTTPXMock) -> None:
    httpx_mock.add_response()
    await shop_async()


def test_vcrpy(cassette: Path) -> None:
    with vcr.use_cassette(cassette, record_mode="none"), httpx.Client() as client:
        shop(client)


@pytest.mark.anyio
async def test_vcrpy_async(cassette: Path) -> None:
    with vcr.use_cassette(cassette, record_mode="none"):
        await shop_async()


def test_replaced_by_hand() -> None:
    """Whoever needs no library for it."""
    answer: Any = lambda transport, request: httpx.Response(200)  # noqa: E731
    with mock.patch.object(httpx.HTTPTransport, "handle_request", answer), httpx.Client() as client:
        shop(client)


class CampaignCertificate(httpx.BaseTransport):
    """A fake written by hand."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200)


def test_written_by_hand() -> None:
    shop(httpx.Client(transport=CampaignCertificate()))


class Fallback(httpx.BaseTransport):
    """Asks another host where the first one fails: an application's own transport."""

    def __init__(self, inner: httpx.BaseTransport) -> None:
        self.inner = inner

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        try:
            answer = self.inner.handle_request(request)
            if answer.status_code < 500:
                return answer
        except httpx.TransportError:
            pass
        url = request.url.copy_with(host="backup")
        return self.inner.handle_request(httpx.Request(request.method, url))


class Retry(httpx.HTTPTransport):
    """Tries twice: an application's own transport above its parent's."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        try:
            answer = super().handle_request(request)
            if answer.status_code < 500:
                return answer
        except httpx.TransportError:
            pass
        return super().handle_request(request)


def needs(transport: httpx.BaseTransport) -> None:
    with httpx.Client(transport=transport) as client:
        client.get(STOCK).raise_for_status()


def test_fallback_above_mock() -> None:
    needs(Fallback(httpx.MockTransport(lambda _: httpx.Response(200))))


def test_fallback_above_written() -> None:
    needs(Fallback(CampaignCertificate()))


def test_fallback_above_respx(respx_mock: respx.MockRouter) -> None:
    respx_mock.get(url__regex=r"http://(stock|backup)/\d+")
    needs(Fallback(httpx.HTTPTransport()))


def test_fallback_above_pytest_httpx(httpx_mock: HTTPXMock) -> None:
    httpx_mock.add_response()
    needs(Fallback(httpx.HTTPTransport()))


def test_fallback_above_vcrpy(cassette: Path) -> None:
    with vcr.use_cassette(
        cassette, record_mode="none", match_on=["path"], allow_playback_repeats=True
    ):
        needs(Fallback(httpx.HTTPTransport()))


def test_retry_above_pytest_httpx(httpx_mock: HTTPXMock) -> None:
    httpx_mock.add_response()
    needs(Retry())


class Closed(Fallback):
    """Holds what it delegates to out of sight."""

    def __init__(self) -> None:
        self.ask = CampaignCertificate().handle_request

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.inner = mock.Mock(handle_request=self.ask)
        try:
            return super().handle_request(request)
        finally:
            del self.inner


def test_fallback_out_of_sight() -> None:
    needs(Closed())
