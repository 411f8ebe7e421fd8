"""The wire below httpx: sockets are kept, and every way of failing has httpx's name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import httpx
import pytest

from ldfi.demo.client import fetch
from ldfi.demo.resolver import NamedTransport
from ldfi.demo.serve import Shedding

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Use = Callable[[httpx.AsyncClient], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


def test_a_socket_is_used_again_and_concurrent_requests_have_their_own() -> None:
    peers = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.add(writer.get_extra_info("peername"))
        while await reader.readuntil(b"\r\n\r\n"):
            await asyncio.sleep(0.01)
            writer.write(OK)

    async def use(client: httpx.AsyncClient) -> None:
        for _ in range(5):
            assert await fetch(client, "http://there/x") == {}
        assert len(peers) == 1
        await asyncio.gather(*(fetch(client, "http://there/x") for _ in range(4)))
        assert len(peers) == 4

    _with_server(answer, use)


def test_a_service_that_says_close_is_believed() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        writer.close()

    async def use(client: httpx.AsyncClient) -> None:
        for _ in range(3):
            assert await fetch(client, "http://there/x") == {}

    _with_server(answer, use)


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"", httpx.ReadError),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}", httpx.ReadError),
        (b"what?\r\n\r\n", httpx.RemoteProtocolError),
        (b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", httpx.HTTPStatusError),
    ],
)
def test_a_bad_answer_is_an_http_error(sent: bytes, error: type[Exception]) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        writer.close()

    async def use(client: httpx.AsyncClient) -> None:
        with pytest.raises(error):
            await fetch(client, "http://there/x")

    _with_server(answer, use)


def test_no_answer_in_time_is_a_timeout_and_the_socket_is_given_up() -> None:
    peers = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.append(writer.get_extra_info("peername"))
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.2 if len(peers) == 1 else 0)
        writer.write(OK)

    async def use(client: httpx.AsyncClient) -> None:
        with pytest.raises(httpx.ReadTimeout):
            await fetch(client, "http://there/x", 0.05)
        assert await fetch(client, "http://there/x") == {}
        assert len(peers) == 2

    _with_server(answer, use)


def test_a_service_nobody_knows_or_nobody_runs_cannot_be_reached() -> None:
    async def use() -> None:
        async with httpx.AsyncClient(transport=NamedTransport({"gone": "127.0.0.1:9"})) as client:
            with pytest.raises(httpx.ConnectError):
                await fetch(client, "http://gone/x")
            with pytest.raises(httpx.ConnectError, match="no service is called 'nobody'"):
                await fetch(client, "http://nobody/x")

    asyncio.run(use())


def test_the_gateway_refuses_what_comes_on_top() -> None:
    async def slow(scope: object, receive: object, send: Callable[..., Awaitable[None]]) -> None:
        await asyncio.sleep(0.01)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def use() -> list[int]:
        transport = httpx.ASGITransport(Shedding(slow, most=2))
        async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
            answers = await asyncio.gather(*(client.get("/boot") for _ in range(3)))
            later = await client.get("/boot")
        return [answer.status_code for answer in (*answers, later)]

    assert asyncio.run(use()) == [200, 200, 503, 200]


def _with_server(answer: Answer, use: Use) -> None:
    async def run() -> None:
        server = await asyncio.start_server(_forgiving(answer), "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        async with (
            server,
            httpx.AsyncClient(transport=NamedTransport({"there": f"{host}:{port}"})) as client,
        ):
            await use(client)
            server.close()

    asyncio.run(run())


def _forgiving(answer: Answer) -> Answer:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    return handle
