"""Tests that cannot be explored, or not as they are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

pytestmark = pytest.mark.ldfi
runs: dict[str, Iterator[int]] = {}


def run_number(test: str) -> int:
    """How often this was asked, from 0."""
    return next(runs.setdefault(test, itertools.count()))


def is_there(http: httpx.Client) -> bool:
    """Whether ``a`` answers."""
    with suppress(httpx.HTTPError):
        return http.get("http://a/").is_success
    return False


def test_broken(http: httpx.Client) -> None:
    assert http.get("http://a/").status_code == 418


def test_calls_nothing() -> None:
    assert True


def test_skipped() -> None:
    pytest.skip("not today")


@pytest.mark.xfail(strict=True)
def test_expected_to_fail(http: httpx.Client) -> None:
    assert http.get("http://a/").is_success


def test_skips_under_faults(http: httpx.Client) -> None:
    if not is_there(http):
        pytest.skip("a is down")


@pytest.mark.ldfi(time_limit=0.000001)
def test_out_of_time(http: httpx.Client) -> None:
    for host in "abcdef":
        try:
            http.get(f"http://{host}/").raise_for_status()
        except httpx.HTTPError:
            http.get(f"http://{host}{host}/").raise_for_status()


@pytest.fixture
def fails_later() -> None:
    assert run_number("fails_later") < 2


def test_broken_fixture(http: httpx.Client, fails_later: None) -> None:
    http.get("http://a/")


@pytest.fixture
def bad_teardown(http: httpx.Client) -> Iterator[None]:
    yield
    raise RuntimeError("always")


def test_broken_teardown(bad_teardown: None, http: httpx.Client) -> None:
    http.get("http://a/")


@pytest.fixture
def strict_teardown() -> Iterator[list[str]]:
    asked: list[str] = []
    yield asked
    assert asked == ["a", "b"]


def test_teardown_that_asks_too_much(http: httpx.Client, strict_teardown: list[str]) -> None:
    if is_there(http):
        strict_teardown.append("a")
    strict_teardown.append("b")


def test_fails_by_chance(http: httpx.Client) -> None:
    is_there(http)
    assert run_number("chance") != 2


def test_cached(http: httpx.Client) -> None:
    """Asks only the first time: afterwards nothing is there to fail."""
    if run_number("cached") == 0:
        http.get("http://a/").raise_for_status()
