"""Tests of a system in other processes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import httpx
import pytest

from ldfi.explore.pytest.fixture import Ldfi

pytestmark = pytest.mark.ldfi(time_limit=300)
Ask = Callable[[str], httpx.Response]
runs = count()


def good(answer: httpx.Response) -> bool:
    return answer.status_code == 200 and bool(answer.json()["price"])


def test_page(ask: Ask) -> None:
    assert good(ask("page"))


def test_silent(ask: Ask) -> None:
    assert good(ask("silent"))


def test_alone(ask: Ask) -> None:
    assert good(ask("alone"))


def test_keyless(ask: Ask) -> None:
    assert good(ask("keyless"))


def test_slow(ask: Ask) -> None:
    assert good(ask("slow"))


@pytest.mark.ldfi(max_size=1, time_limit=300)
def test_restarts(ask: Ask) -> None:
    assert good(ask("restarts"))


@pytest.mark.ldfi(max_size=1, protected=("*price*",))
def test_flaky(ask: Ask) -> None:
    assert good(ask("page"))
    assert next(runs) != 2


@pytest.mark.ldfi(max_size=1)
def test_degraded(ask: Ask, ldfi: Ldfi) -> None:
    assert good(ask("page")) or ldfi.faults


@pytest.mark.anyio
@pytest.mark.ldfi(max_size=1)
async def test_async(urls: dict[str, str]) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
        assert good(await client.get(f"{urls['page']}/page/17"))
