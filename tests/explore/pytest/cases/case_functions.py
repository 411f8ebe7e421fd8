"""Functions under test, called by the test itself: their calls are dependencies."""

from __future__ import annotations

import contextlib
import inspect
import unittest
from collections.abc import Iterator
from typing import Any

import httpcore
import httpx
import pytest

from ldfi import fit
from ldfi.explore.pytest.fixture import Ldfi
from ldfi.fit import runtime


def price(http: httpx.Client) -> Any:
    """Two sources, one after the other."""
    try:
        return http.get("http://pricing/17").raise_for_status().json()
    except httpx.HTTPError:
        return http.get("http://pricecache/17").raise_for_status().json()


@pytest.mark.ldfi
def test_pair(http: httpx.Client) -> None:
    assert price(http)


@pytest.mark.ldfi(max_size=1)
def test_singles_only(http: httpx.Client) -> None:
    assert price(http)


@pytest.mark.ldfi(protected=["*:pricecache/*"])
def test_protected(http: httpx.Client) -> None:
    assert price(http)


@pytest.mark.ldfi(kinds=("delay",), delay=0.2)
def test_delays(http: httpx.Client) -> None:
    assert price(http)


@pytest.mark.ldfi(kinds="delay", delay=0.01)
def test_delays_outlasted(http: httpx.Client) -> None:
    assert price(http)


def test_fixture(http: httpx.Client, ldfi: Ldfi) -> None:
    if ldfi.faults:
        assert {fault.kind for fault in ldfi.faults} == {"refused"}
        with contextlib.suppress(httpx.HTTPError):
            price(http)
        return  # content with nothing then
    assert price(http)


@pytest.mark.ldfi
@pytest.mark.parametrize("host", ["one", "two"])
def test_parametrized(http: httpx.Client, host: str) -> None:
    http.get(f"http://{host}/").raise_for_status()


@fit.point("cache", "get", peer="homecache")
def cached() -> str:
    """A dependency that is no HTTP."""
    return "home"


@pytest.mark.ldfi
def test_decorated() -> None:
    assert cached() == "home"


@pytest.mark.ldfi
def test_libraries_that_fake_sockets_find_them_as_they_are(http: httpx.Client) -> None:
    """respx looks at whether this is a coroutine function."""
    assert inspect.iscoroutinefunction(httpcore.AsyncConnectionPool.handle_async_request)
    with contextlib.suppress(httpx.HTTPError):
        http.get("http://optional/")


made: list[int] = []


@pytest.fixture
def counter() -> Iterator[list[int]]:
    """Made for each run."""
    made.append(1)
    yield []
    made.pop()


@pytest.mark.ldfi
class TestClass:
    """Each run has an instance of its own, and fixtures of its own."""

    def test_anew(self, http: httpx.Client, counter: list[int], tmp_path: Any) -> None:
        assert not hasattr(self, "used")
        assert (counter, made, list(tmp_path.iterdir())) == ([], [1], [])
        self.used = True
        counter.append(1)
        (tmp_path / "file").write_text("")
        price(http)


class TestUnittest(unittest.TestCase):
    """The marker on a method of a TestCase."""

    def setUp(self) -> None:
        self.asked = 0

    @pytest.mark.ldfi
    def test_case(self) -> None:
        self.asked += 1
        assert self.asked == 1
        price(httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, json=1))))


def test_nothing_is_left_behind() -> None:
    assert runtime.active() is None
    for client in (httpx.Client, httpx.AsyncClient):
        assert client._send_single_request.__module__.startswith("httpx")
