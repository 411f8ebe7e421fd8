"""Tests as other frameworks have them: subtests, and unittest's asynchronous cases."""

from __future__ import annotations

import unittest
from typing import Any

import httpx
import pytest


def answering(_: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json=1)


def ask(service: str) -> None:
    with httpx.Client(transport=httpx.MockTransport(answering)) as http:
        http.get(f"http://{service}/").raise_for_status()


def perhaps(service: str) -> None:
    try:
        ask(service)
    except httpx.HTTPError:
        return


class TestSubTests(unittest.TestCase):
    """A subtest that fails lets the rest go on, and the test itself passes."""

    @pytest.mark.ldfi
    def test_sub_test_that_needs_it(self) -> None:
        for service in ("optional", "needed"):
            with self.subTest(service=service):
                (ask if service == "needed" else perhaps)(service)

    @pytest.mark.ldfi
    def test_sub_test_that_survives(self) -> None:
        with self.subTest():
            perhaps("optional")

    @pytest.mark.ldfi
    def test_sub_test_that_always_fails(self) -> None:
        with self.subTest():
            ask("needed")
            self.fail("by itself")


class TestAsynchronous(unittest.IsolatedAsyncioTestCase):
    """unittest looks the method up by itself."""

    async def asyncSetUp(self) -> None:
        self.asked = 0

    @pytest.mark.ldfi
    async def test_async_case(self) -> None:
        self.asked += 1
        assert self.asked == 1
        async with httpx.AsyncClient(transport=httpx.MockTransport(answering)) as http:
            await http.get("http://needed/")

    @pytest.mark.ldfi
    async def test_async_sub_test(self) -> None:
        with self.subTest():
            ask("needed")


@pytest.mark.ldfi
def test_subtests_of_pytest(subtests: Any) -> None:
    with subtests.test("optional"):
        perhaps("optional")
    with subtests.test("needed"):
        ask("needed")


class NeverCalled(unittest.TestCase):
    """Runs something else in the place of its methods."""

    def run(self, result: Any = None) -> Any:
        result.startTest(self)
        result.addSuccess(self)
        result.stopTest(self)
        return result


class TestNeverCalled(NeverCalled):
    """Passes, and nothing is known of it."""

    @pytest.mark.ldfi
    def test_never_called(self) -> None:
        ask("needed")
