"""Fakes of aiohttp's session."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any
from unittest import mock

import aiohttp
import pytest
import vcr
from aioresponses import aioresponses

pytestmark = [pytest.mark.ldfi, pytest.mark.anyio]
STOCK = "http://stock/17"
REVIEWS = "http://reviews/17"


async def shop() -> None:
    """Fails without ``stock``; does without ``reviews``."""
    async with aiohttp.ClientSession(raise_for_status=True) as session:
        with contextlib.suppress(aiohttp.ClientError):
            async with session.get(REVIEWS):
                pass
        async with session.get(STOCK) as answer:
            assert await answer.read() == b"ok"


class Answer(aiohttp.ClientResponse):
    """aioresponses 0.7.9 does not know what aiohttp 3.14 asks for."""

    def __init__(self, *given: Any, **named: Any) -> None:
        named.setdefault("stream_writer", mock.Mock())
        super().__init__(*given, **named)


async def test_aioresponses() -> None:
    with aioresponses() as fake:
        fake.get(STOCK, body="ok", response_class=Answer)
        fake.get(REVIEWS, body="ok", response_class=Answer)
        await shop()


async def test_vcrpy(cassette: Path) -> None:
    with vcr.use_cassette(cassette, record_mode="none"):
        await shop()
