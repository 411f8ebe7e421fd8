"""Ten forms that tests have, and in each of them six subjects: sixty that are right or loud."""

from __future__ import annotations

import socketserver
import threading
import unittest
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import grpc
import httpx
import pytest
import redis


class Store(socketserver.StreamRequestHandler):
    """A Redis that knows one answer: it has nothing."""

    def handle(self) -> None:
        while head := self.rfile.readline():
            words = [self._word() for _ in range(int(head[1:]))]
            self.wfile.write(b"$-1\r\n" if words[0] == b"GET" else b"+OK\r\n")

    def _word(self) -> bytes:
        return self.rfile.read(int(self.rfile.readline()[1:]) + 2)[:-2]


class Serving(socketserver.ThreadingTCPServer):
    daemon_threads = True


STORE = Serving(("127.0.0.1", 0), Store)
threading.Thread(target=STORE.serve_forever, daemon=True).start()
REDIS = redis.Redis(port=STORE.server_address[1], socket_timeout=5, retry=None)  # type: ignore[arg-type]


def ask(service: str) -> None:
    with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200))) as http:
        http.get(f"http://{service}/").raise_for_status()


def perhaps(service: str) -> None:
    with suppress(httpx.HTTPError):
        ask(service)


def needed() -> None:
    perhaps("optional")
    ask("needed")


def survived() -> None:
    perhaps("optional")


def cached() -> None:
    with suppress(redis.RedisError):
        REDIS.get("seed")
    perhaps("optional")


def stored() -> None:
    REDIS.get("seed")


def without_end() -> None:
    """Nobody waits for an answer that never comes: what then would happen cannot be tried."""
    answers = httpx.MockTransport(lambda _: httpx.Response(200))
    with httpx.Client(transport=answers, timeout=None) as http:  # noqa: S113
        http.get("http://needed/")


class Pages(grpc.GenericRpcHandler):  # type: ignore[misc] # gRPC has no types
    def service(self, call: Any) -> Any:
        def answered(_request: bytes, _context: Any) -> bytes:
            needed()
            return b""

        return grpc.unary_unary_rpc_method_handler(answered)


SERVER = grpc.server(ThreadPoolExecutor(2), [Pages()])
PORT = SERVER.add_insecure_port("127.0.0.1:0")
SERVER.start()


def by_grpc() -> Any:
    """Made anew for each run: what is instrumented meanwhile takes part."""
    return grpc.insecure_channel(f"127.0.0.1:{PORT}")


class Subject(NamedTuple):
    """``asks`` is called by the test's own function, which sends commands of its own before where
    there are ``seeds``."""

    asks: Callable[[], Any]
    seeds: bool = False
    over_grpc: bool = False


SUBJECTS = {
    "needed": Subject(needed),
    "survived": Subject(survived),
    "grpc": Subject(needed, over_grpc=True),
    "seeds_and_cache": Subject(cached, seeds=True),
    "seeds_and_store": Subject(stored, seeds=True),
    "without_timeout": Subject(without_end),
}
EACH = [
    pytest.param(
        subject,
        id=name,
        marks=pytest.mark.ldfi(kinds=("timeout",) if name == "without_timeout" else ("error",)),
    )
    for name, subject in SUBJECTS.items()
]


@pytest.mark.parametrize("subject", EACH)
def test_function(subject: Subject) -> None:
    if subject.seeds:
        REDIS.set("seed", "1")
        REDIS.get("seed")
    if subject.over_grpc:
        with by_grpc() as channel:
            channel.unary_unary("/shop.Pages/Get")(b"", timeout=20)
    else:
        subject.asks()


class TestClass:
    @pytest.mark.parametrize("subject", EACH)
    def test_method(self, subject: Subject) -> None:
        if subject.seeds:
            REDIS.set("seed", "1")
            REDIS.get("seed")
        if subject.over_grpc:
            with by_grpc() as channel:
                channel.unary_unary("/shop.Pages/Get")(b"", timeout=20)
        else:
            subject.asks()


@pytest.fixture
def seeded() -> Iterator[redis.Redis]:
    REDIS.set("seed", "1")
    yield REDIS
    REDIS.delete("seed")


@pytest.mark.parametrize("subject", EACH)
def test_with_a_fixture(subject: Subject, seeded: redis.Redis) -> None:
    if subject.over_grpc:
        with by_grpc() as channel:
            channel.unary_unary("/shop.Pages/Get")(b"", timeout=20)
    else:
        subject.asks()
    if subject.seeds:
        assert seeded.get("seed") is None


@pytest.mark.parametrize("subject", EACH)
def test_subtests_of_pytest(subject: Subject, subtests: Any) -> None:
    if subject.seeds:
        REDIS.set("seed", "1")
    with subtests.test("one"):
        if subject.over_grpc:
            with by_grpc() as channel:
                channel.unary_unary("/shop.Pages/Get")(b"", timeout=20)
        else:
            subject.asks()
    with subtests.test("another"):
        pass


@pytest.mark.anyio
@pytest.mark.parametrize("subject", EACH)
async def test_coroutine(subject: Subject) -> None:
    if subject.seeds:
        REDIS.set("seed", "1")
        pipeline = REDIS.pipeline(transaction=False)
        pipeline.get("seed")
        pipeline.execute()
    if subject.over_grpc:
        with by_grpc() as channel:
            channel.unary_unary("/shop.Pages/Get")(b"", timeout=20)
    else:
        subject.asks()


@pytest.mark.parametrize("number", [1])
@pytest.mark.parametrize("subject", EACH)
def test_parametrized(subject: Subject, number: int, tmp_path: Any, request: Any) -> None:
    if subject.seeds:
        REDIS.set(f"seed{number}", "1")
    if subject.over_grpc:
        with by_grpc() as channel:
            channel.unary_unary("/shop.Pages/Get")(b"", timeout=20)
    else:
        subject.asks()


class Plain(unittest.TestCase):
    subject: Subject

    def test_case(self) -> None:
        if self.subject.seeds:
            REDIS.set("seed", "1")
        if self.subject.over_grpc:
            with by_grpc() as channel:
                channel.unary_unary("/shop.Pages/Get")(b"", timeout=20)
        else:
            self.subject.asks()


class InSubTests(unittest.TestCase):
    subject: Subject

    def test_case(self) -> None:
        for number in (1, 2):
            with self.subTest(number=number):
                if self.subject.seeds:
                    REDIS.set("seed", "1")
                if self.subject.over_grpc:
                    with by_grpc() as channel:
                        channel.unary_unary("/shop.Pages/Get")(b"", timeout=20)
                else:
                    self.subject.asks()


class Asynchronous(unittest.IsolatedAsyncioTestCase):
    subject: Subject

    async def test_case(self) -> None:
        if self.subject.seeds:
            REDIS.set("seed", "1")
        if self.subject.over_grpc:
            with by_grpc() as channel:
                channel.unary_unary("/shop.Pages/Get")(b"", timeout=20)
        else:
            self.subject.asks()


class AsynchronousInSubTests(unittest.IsolatedAsyncioTestCase):
    subject: Subject

    async def test_case(self) -> None:
        with self.subTest("one"):
            if self.subject.seeds:
                REDIS.set("seed", "1")
            if self.subject.over_grpc:
                with by_grpc() as channel:
                    channel.unary_unary("/shop.Pages/Get")(b"", timeout=20)
            else:
                self.subject.asks()
        with self.subTest("another"):
            pass


FORMS = (Plain, InSubTests, Asynchronous, AsynchronousInSubTests)


def _cases() -> Iterator[tuple[str, Any]]:
    for form in FORMS:
        for each in EACH:
            made: Any = type(f"Test{form.__name__}_{each.id}", (form,), {"subject": each.values[0]})
            (mark,) = each.marks
            yield made.__name__, mark(made)  # type: ignore[operator] # a decorator


globals().update(_cases())
for _form in FORMS:
    del globals()[_form.__name__]
