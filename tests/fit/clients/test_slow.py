"""A body that comes slowly: what callers see of it is what they see of a server that really sends
slowly."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

import aiohttp
import httpx
import pytest
import requests
import responses
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from ldfi.fit import slow
from ldfi.fit.clients import fakes, httpx_transports
from ldfi.fit.clock import steady
from ldfi.fit.slow import Pace
from tests.fit.clients.callers import HTTP, look
from tests.fit.clients.contract import Requests
from tests.fit.clients.dying import Behaviour, dying, hang, nobody, reset, says
from tests.fit.clients.test_kinds import FINE, alike, claims

pytestmark = pytest.mark.usefixtures("own_spans")

LENGTH: Final = 0.4
HEAD, _, BODY = FINE.partition(b"\r\n\r\n")


def url(port: int) -> str:
    return f"http://127.0.0.1:{port}/titles/17"


def point(port: int, method: str = "GET") -> str:
    return f"api>http:{method}:127.0.0.1:{port}/titles/*"


Read = Callable[[bytes], bool]
"""What a caller does with a piece: whether it reads on."""


def _httpx(port: int, timeout: float | None, read: Read, method: str) -> None:
    with (
        httpx.Client(trust_env=False, timeout=httpx.Timeout(None, read=timeout)) as client,
        client.stream(method, url(port)) as answer,
    ):
        read(b"")
        for piece in answer.iter_raw():
            if not read(piece):
                break


def _httpx_in_tests(port: int, timeout: float | None, read: Read, method: str) -> None:
    with httpx_transports.patched():
        _httpx(port, timeout, read, method)


async def _httpx_async(port: int, timeout: float | None, read: Read, method: str) -> None:
    async with (
        httpx.AsyncClient(trust_env=False, timeout=httpx.Timeout(None, read=timeout)) as client,
        client.stream(method, url(port)) as answer,
    ):
        read(b"")
        async for piece in answer.aiter_raw():
            if not read(piece):
                break


async def _httpx_async_in_tests(port: int, timeout: float | None, read: Read, method: str) -> None:
    with httpx_transports.patched():
        await _httpx_async(port, timeout, read, method)


def _requests(port: int, timeout: float | None, read: Read, method: str) -> None:
    with requests.Session() as session:
        session.trust_env = False
        with session.request(method, url(port), timeout=(5, timeout), stream=True) as answer:
            read(b"")
            while (piece := answer.raw.read1(65536)) and read(piece):
                pass


def _urllib3(port: int, timeout: float | None, read: Read, method: str) -> None:
    with urllib3.PoolManager() as pool:
        limits = urllib3.Timeout(read=timeout)
        answer = pool.request(
            method, url(port), timeout=limits, retries=False, preload_content=False
        )
        read(b"")
        while (piece := answer.read1(65536)) and read(piece):
            pass
        answer.close()


async def _aiohttp(port: int, timeout: float | None, read: Read, method: str) -> None:
    limits = aiohttp.ClientTimeout(total=None, sock_read=timeout)
    async with (
        aiohttp.ClientSession(timeout=limits) as session,
        session.request(method, url(port)) as answer,
    ):
        read(b"")
        async for piece in answer.content.iter_any():
            if not read(piece):
                break


def _run(call: Callable[..., Any]) -> Callable[..., None]:
    return lambda *given: asyncio.run(call(*given))


STREAMS: Final[dict[str, Callable[[int, float | None, Read, str], None]]] = {
    "httpx": _httpx,
    "httpx, asyncio": _run(_httpx_async),
    "httpx, in tests": _httpx_in_tests,
    "httpx, asyncio, in tests": _run(_httpx_async_in_tests),
    "requests": _requests,
    "urllib3": _urllib3,
    "aiohttp": _run(_aiohttp),
}
every_client: Final = pytest.mark.parametrize("client", STREAMS)


class Arrivals:
    """What came, and when: seconds after the headers."""

    def __init__(self) -> None:
        self.began = 0.0
        self.pieces: list[tuple[float, bytes]] = []

    def __call__(self, piece: bytes) -> bool:
        if not self.began:
            self.began = time.monotonic()
        elif piece:
            self.pieces.append((time.monotonic() - self.began, piece))
        return True

    @property
    def body(self) -> bytes:
        return b"".join(piece for _, piece in self.pieces)


def got(client: str, port: int, timeout: float | None = None, method: str = "GET") -> Arrivals:
    arrivals = Arrivals()
    STREAMS[client](port, timeout, arrivals, method)
    return arrivals


@every_client
def test_it_comes_piece_by_piece_like_that_of_a_server_that_really_sends_slowly(
    requests_made: Requests, client: str
) -> None:
    """The first piece in the first half, in one of three tries: a machine may stand still."""
    late, fired = 0, set()
    while True:
        with dying(says(FINE, over=LENGTH)) as port:
            real = got(client, port)
        with dying(says(FINE)) as port:
            with requests_made.request(f"slow:{LENGTH}@{point(port)}", delay_ms=5000):
                injected = got(client, port)
            fired.add(("fit.fired", "slow", point(port)))
            assert claims(requests_made) == fired
        assert injected.body == real.body == BODY
        for arrivals in (real, injected):
            assert len(arrivals.pieces) >= 8
            assert arrivals.pieces[-1][0] >= LENGTH * 0.95
        if max(arrivals.pieces[0][0] for arrivals in (real, injected)) < LENGTH / 2:
            break
        late += 1
        assert late < 3, (real.pieces, injected.pieces)


@every_client
def test_a_read_timeout_ends_it_only_below_the_gap(requests_made: Requests, client: str) -> None:
    def sight(port: int, timeout: float) -> Any:
        return look(lambda: got(client, port, timeout).body)

    for timeout, ends in ((0.2, True), (1, False)):
        with dying(says(TINY, over=0.8, pieces=2)) as port:
            real = sight(port, timeout)
        with dying(says(TINY)) as port:
            with requests_made.request(f"slow:0.8@{point(port)}", delay_ms=5000):
                injected = sight(port, timeout)
            assert claims(requests_made) == {("fit.fired", "slow", point(port))}
        assert alike(injected, real), (injected, real)
        assert (real.head != "answer") == ends


CHUNKED: Final = (
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    + b"".join(b"%x\r\n%s\r\n" % (100, BODY[at : at + 100]) for at in range(0, 1000, 100))
    + b"0\r\n\r\n"
)
TO_THE_END: Final = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + BODY
PACKED: Final = gzip.compress(BODY)
GZIP: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(PACKED)
    + PACKED
)
EARLY: Final = b"HTTP/1.1 100 Continue\r\n\r\n" + FINE
TINY: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nOK"


@pytest.mark.parametrize(
    "answer", [CHUNKED, TO_THE_END, GZIP, EARLY, TINY], ids=["chunked", "end", "gzip", "100", "2"]
)
@pytest.mark.parametrize("client", HTTP)
def test_the_body_is_whole_however_it_is_sent_and_takes_its_time(
    requests_made: Requests, client: str, answer: bytes
) -> None:
    with dying(says(answer)) as port:
        usual = look(lambda: HTTP[client].call(port, None))
        with requests_made.request(f"slow:0.3@{point(port)}", delay_ms=5000):
            began = time.monotonic()
            injected = look(lambda: HTTP[client].call(port, None))
            took = time.monotonic() - began

        assert usual.head == "200"
        assert injected == usual
        assert claims(requests_made) == {("fit.fired", "slow", point(port))}
    assert 0.29 <= took < 5


@pytest.mark.parametrize("arm", ["treatment", "control"])
@every_client
def test_an_answer_without_a_body_cannot_be_slow_and_nothing_is_claimed(
    requests_made: Requests, client: str, arm: Any
) -> None:
    for head, method in (
        (b"HTTP/1.1 204 No Content\r\n\r\n", "GET"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "GET"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n", "HEAD"),
    ):
        with dying(says(head)) as port:
            fault = f"slow:30@{point(port, method)}"
            with requests_made.request(fault, arm=arm, delay_ms=60_000):
                began = time.monotonic()
                assert got(client, port, method=method).body == b""
            assert time.monotonic() - began < 10
            assert claims(requests_made) == set()
            assert all(span.end_time for span in requests_made.calls())


@every_client
def test_a_call_that_fails_by_itself_was_not_slow(requests_made: Requests, client: str) -> None:
    broken: list[tuple[Any, float | None]] = [
        (nobody(), None),
        (dying(reset), 5),
        (dying(hang), 0.2),
    ]
    for server, timeout in broken:
        with server as port:
            real = look(partial(got, client, port, timeout))
            with requests_made.request(f"slow:2@{point(port)}", delay_ms=5000):
                assert alike(look(partial(got, client, port, timeout)), real)
            assert claims(requests_made) == set()
            # ours, each of which has ended; aiohttp finds nobody before it comes to its point
            assert len(requests_made.calls()) >= (timeout is not None)


@every_client
def test_the_first_calls_alone_are_slow(requests_made: Requests, client: str) -> None:
    with (
        dying(says(FINE)) as port,
        requests_made.request(f"slow:0.1:1@{point(port)}", delay_ms=5000),
    ):
        for _ in range(2):
            assert got(client, port).body == BODY
    hit = [(span.attributes or {}).get("fit.fired") for span in requests_made.calls()]
    assert hit.count("slow") == 1


def gone(told: threading.Event) -> Behaviour:
    """A server that answers at once and in full, and tells when its caller closes."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(FINE.replace(b"connection: close\r\n", b""))
        connection.settimeout(5)
        with suppress(OSError):
            while connection.recv(65536):
                pass
            told.set()

    return answer


@every_client
def test_a_caller_that_closes_is_rid_of_it_at_once(requests_made: Requests, client: str) -> None:
    told = threading.Event()
    with dying(gone(told)) as port:
        with requests_made.request(f"slow:30@{point(port)}", delay_ms=60_000):
            began = time.monotonic()
            STREAMS[client](port, None, lambda piece: not piece, "GET")
        assert told.wait(10), "the connection is open"
        assert time.monotonic() - began < 10
        assert claims(requests_made) == {("fit.fired", "slow", point(port))}


@pytest.mark.parametrize("client", ["httpx, asyncio", "httpx, asyncio, in tests", "aiohttp"])
def test_a_deadline_ends_it_while_other_tasks_run(requests_made: Requests, client: str) -> None:
    call = {
        "aiohttp": _aiohttp,
        "httpx, asyncio": _httpx_async,
        "httpx, asyncio, in tests": _httpx_async_in_tests,
    }[client]
    ticks, began = 0, time.monotonic()

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async def within(port: int) -> None:
        ticking = asyncio.create_task(tick())
        try:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(call(port, None, bool, "GET"), 0.4)
        finally:
            ticking.cancel()

    with (
        dying(says(TINY)) as port,
        requests_made.request(f"slow:30@{point(port)}", delay_ms=60_000),
    ):
        asyncio.run(within(port))
    assert ticks > 2
    assert time.monotonic() - began < 10


def test_the_total_timeout_of_aiohttp_ends_it(requests_made: Requests) -> None:
    async def within(port: int) -> None:
        limits = aiohttp.ClientTimeout(total=0.4)
        async with (
            aiohttp.ClientSession(timeout=limits) as session,
            session.get(url(port)) as answer,
        ):
            await answer.read()

    def sight(port: int) -> Any:
        return look(lambda: asyncio.run(within(port)))

    with dying(says(FINE, over=2)) as port:
        real = sight(port)
    with dying(says(FINE)) as port, requests_made.request(f"slow:2@{point(port)}", delay_ms=5000):
        assert sight(port) == real
    assert real.head == "builtins.TimeoutError"


HUGE: Final = 20_000_000
MOST_KEPT: Final = 4_000_000
"""Bytes, those of the server in the same process among them."""


@contextmanager
def huge(headers: bytes) -> Iterator[tuple[int, list[tuple[float, int]]]]:
    """A server whose body is huge; its port, and how much it could send until when."""
    sent: list[tuple[float, int]] = []

    def answer(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\n" + headers + b"\r\n")
        block, total = bytes(500_000), 0
        while total < HUGE:
            connection.sendall(block)
            total += len(block)
            sent.append((time.monotonic(), total))
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass

    with dying(answer) as port:
        yield port, sent


@pytest.mark.parametrize(
    ("client", "headers"),
    [
        *((client, b"content-length: %d\r\n" % HUGE) for client in STREAMS),
        *((client, b"") for client in ("httpx", "urllib3", "aiohttp")),
    ],
)
def test_a_huge_body_is_never_held_in_memory(
    requests_made: Requests, client: str, headers: bytes
) -> None:
    """Nor sent before it is asked for, in one of three tries: a machine may stand still."""
    total, began, halfway, fired = 0, 0.0, HUGE, set()

    def count(piece: bytes) -> bool:
        nonlocal total, began
        began = began or time.monotonic()
        total += len(piece)
        return True

    for _ in range(3):
        total, began = 0, 0.0
        with huge(headers) as (port, sent):
            with requests_made.request(f"slow:0.5@{point(port)}", delay_ms=5000):
                tracemalloc.start()
                try:
                    STREAMS[client](port, None, count, "GET")
                    _, most = tracemalloc.get_traced_memory()
                finally:
                    tracemalloc.stop()
            fired.add(("fit.fired", "slow", point(port)))
            assert claims(requests_made) == fired
        assert total == HUGE
        assert most < MOST_KEPT
        halfway = max((count for at, count in sent if at < began + 0.25), default=0)
        if halfway < HUGE * 0.7:
            break
    assert halfway < HUGE * 0.7


@pytest.mark.parametrize("arm", ["treatment", "control"])
def test_under_a_fake_without_slow_bodies_none_is_slow(requests_made: Requests, arm: Any) -> None:
    fakes.patch_all()
    armed = requests_made.request(f"slow:30@{point(1)}", arm=arm, delay_ms=60_000)
    with armed, responses.RequestsMock() as faked:
        faked.get(url(1), body=BODY)
        assert requests.get(url(1), timeout=5).content == BODY
    assert claims(requests_made) == set()


def test_under_a_fake_of_httpx_a_body_is_slow(requests_made: Requests) -> None:
    fake = httpx.MockTransport(lambda _: httpx.Response(200, content=BODY))
    with (
        httpx_transports.patched(),
        httpx.Client(transport=fake) as client,
        requests_made.request(f"slow:0.3@{point(1)}", delay_ms=5000),
    ):
        began = time.monotonic()
        assert client.get(url(1)).content == BODY
        assert time.monotonic() - began >= 0.3
    assert claims(requests_made) == {("fit.fired", "slow", point(1))}


@every_client
def test_what_breaks_in_reading_the_headers_is_not_the_hosts(
    requests_made: Requests, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(slow, "Pace", broken)
    with dying(says(FINE)) as port:
        with requests_made.request(f"slow:2@{point(port)}", delay_ms=5000):
            assert got(client, port).body == BODY
        assert len(requests_made.calls()) == 1


@given(
    seconds=st.floats(0.001, 3600),
    length=st.integers(1, 10**9),
    at=st.floats(0, 1, exclude_max=True),
)
def test_each_byte_comes_when_its_share_is_over(seconds: float, length: int, at: float) -> None:
    pace = Pace(seconds, length, steady())
    byte = int(at * length)
    now = steady() - pace.began
    due = pace.due(byte) + now

    assert due <= seconds + 0.01
    assert due >= seconds * byte / length - 0.01
    size = pace.size(byte, length - byte)
    assert 1 <= size <= length - byte
    assert pace.due(byte + size - 1) + steady() - pace.began == pytest.approx(due, abs=0.05)
    if byte + size < length:
        assert pace.due(byte + size) > pace.due(byte)
        assert pace.size(0, length) <= max(1, length / min(10, length)) + 1
    else:
        assert due == pytest.approx(seconds, abs=0.05)
