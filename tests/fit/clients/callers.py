"""One call by each client that knows kinds of fault, and what its caller sees of it."""

from __future__ import annotations

import asyncio
import re
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import partial
from http.client import HTTPConnection
from typing import Any, Final, NamedTuple

import aiohttp
import grpc
import grpc.aio
import httpx
import httpx2
import redis
import redis.asyncio
import requests
import urllib3
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from ldfi.fit.clients import httpx_transports
from ldfi.fit.protocol.points import address

PATIENCE: Final = 0.3
NOBODY: Final = "nobody.onion"
"""A name that no resolver looks up (RFC 7686): that of gRPC says at once that there is none."""
HOST: Final = ContextVar("host", default="127.0.0.1")


@contextmanager
def calling(host: str) -> Iterator[None]:
    """Have every caller call this host."""
    token = HOST.set(host)
    try:
        yield
    finally:
        HOST.reset(token)


class Sight(NamedTuple):
    """What a caller sees: the head says what of, and the rest in which words, with the causes."""

    head: str
    words: tuple[str, ...]
    codes: tuple[int, ...] = ()
    """The operating system's numbers of all errors in the chain."""


def look(call: Callable[[], Any]) -> Sight:
    """What a call comes to: an answer, or an exception with its causes."""
    try:
        answer = call()
    except Exception as failure:  # noqa: BLE001 - whatever the caller sees
        chain = list(_chain(failure))
        head = _name(failure)
        if isinstance(failure, grpc.RpcError):
            head += f" {failure.code().name}"
        codes = tuple(each.errno for each in chain if getattr(each, "errno", None))
        return Sight(head, tuple(f"{_name(each)}: {_words(each)}" for each in chain), codes)
    if isinstance(answer, tuple):
        return Sight(str(answer[0]), tuple(map(repr, answer[1:])))
    return Sight("answer", (repr(answer),))


def _chain(failure: BaseException) -> Iterator[Any]:
    seen: BaseException | None = failure
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _name(failure: BaseException) -> str:
    return f"{type(failure).__module__}.{type(failure).__name__}"


def _words(failure: Any) -> str:
    return hidden(failure.details() if isinstance(failure, grpc.RpcError) else str(failure))


def hidden(said: str) -> str:
    """What is said, without what differs from call to call: names of hosts, ports, addresses."""
    said = re.sub(r"0x[0-9a-f]+|(?<=cancel scope )[0-9a-f]+", "0x", said)
    said = re.sub(rf"\blocalhost\b|\b{re.escape(NOBODY)}\b", "HOST", said)
    return re.sub(r"\b\d{4,5}\b", "PORT", said)


class Caller(NamedTuple):
    """A client as a service uses it: ``call`` goes to a port of loopback, or of
    what :func:`calling` says, with a timeout in seconds or None; ``point`` names it."""

    call: Callable[[int, float | None], Any]
    point: Callable[[int], str]


def _url(port: int) -> str:
    return f"http://{HOST.get()}:{port}/titles/17"


def _http(port: int) -> str:
    return f"api>http:GET:{address(HOST.get(), port)}/titles/*"


def _httpx(port: int, patience: float | None, library: Any = httpx) -> Any:
    with library.Client(trust_env=False, timeout=patience) as client:
        answer = client.get(_url(port))
        return answer.status_code, answer.content, answer.headers.get("content-type")


async def _httpx_async(port: int, patience: float | None, library: Any = httpx) -> Any:
    async with library.AsyncClient(trust_env=False, timeout=patience) as client:
        answer = await client.get(_url(port))
        return answer.status_code, answer.content, answer.headers.get("content-type")


def _requests(port: int, patience: float | None) -> Any:
    with requests.Session() as session:
        session.trust_env = False
        answer = session.get(_url(port), timeout=patience)
        return answer.status_code, answer.content, answer.headers.get("content-type")


def _urllib3(port: int, patience: float | None) -> Any:
    with urllib3.PoolManager() as pool:
        timeout = urllib3.Timeout(read=patience)
        answer = pool.request("GET", _url(port), timeout=timeout, retries=False)
        return answer.status, answer.data, answer.headers.get("content-type")


def _http_client(port: int, patience: float | None) -> Any:
    with closing(HTTPConnection(HOST.get(), port, timeout=patience)) as connection:
        connection.request("GET", "/titles/17")
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers.get("content-type")


def _urllib(port: int, patience: float | None) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(_url(port), timeout=patience) as answer:
            return answer.status, answer.read(), answer.headers.get("content-type")
    except urllib.error.HTTPError as said:
        with said:
            return said.code, said.read(), said.headers.get("content-type")


async def _aiohttp(port: int, patience: float | None) -> Any:
    timeout = aiohttp.ClientTimeout(total=None, sock_read=patience)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(_url(port)) as answer:
        return answer.status, await answer.read(), answer.headers.get("content-type")


def _grpc(port: int, patience: float | None) -> Any:
    with grpc.insecure_channel(f"{HOST.get()}:{port}") as channel:
        return channel.unary_unary("/shop.Prices/Get")(b"17", timeout=patience)


class _Present(grpc.aio.UnaryUnaryClientInterceptor):  # type: ignore[misc]
    """As the instrumentation puts one in place: only such channels have points."""

    async def intercept_unary_unary(self, go_on: Any, details: Any, request: Any) -> Any:
        return await go_on(details, request)


async def _grpc_aio(port: int, patience: float | None) -> Any:
    target, present = f"{HOST.get()}:{port}", [_Present()]
    async with grpc.aio.insecure_channel(target, interceptors=present) as channel:
        return await channel.unary_unary("/shop.Prices/Get")(b"17", timeout=patience)


def _redis(port: int, patience: float | None) -> Any:
    retry = Retry(NoBackoff(), 0)
    with redis.Redis(HOST.get(), port, socket_timeout=patience, retry=retry) as client:
        return client.set("k", "v")


async def _redis_async(port: int, patience: float | None) -> Any:
    retry = AsyncRetry(NoBackoff(), 0)
    async with redis.asyncio.Redis(
        host=HOST.get(), port=port, socket_timeout=patience, retry=retry
    ) as client:
        return await client.set("k", "v")


class Streamed(NamedTuple):
    """What a caller sees that reads a body piece by piece."""

    status: int
    read: bytes
    """Before it failed."""
    failure: str


PIECE: Final = 8
"""Bytes."""


def _httpx_streamed(port: int, library: Any = httpx) -> Streamed:
    read = bytearray()
    with library.Client(trust_env=False) as client, client.stream("GET", _url(port)) as answer:
        try:
            for piece in answer.iter_raw(PIECE):
                read += piece
        except library.HTTPError as failure:
            return Streamed(answer.status_code, bytes(read), _name(failure))
    raise AssertionError("it was whole")


async def _httpx_async_streamed(port: int, library: Any = httpx) -> Streamed:
    read = bytearray()
    async with (
        library.AsyncClient(trust_env=False) as client,
        client.stream("GET", _url(port)) as answer,
    ):
        try:
            async for piece in answer.aiter_raw(PIECE):
                read += piece
        except library.HTTPError as failure:
            return Streamed(answer.status_code, bytes(read), _name(failure))
    raise AssertionError("it was whole")


def _requests_streamed(port: int) -> Streamed:
    read = bytearray()
    with requests.Session() as session:
        session.trust_env = False
        answer = session.get(_url(port), timeout=5, stream=True)
        try:
            for piece in answer.iter_content(PIECE):
                read += piece
        except requests.RequestException as failure:
            return Streamed(answer.status_code, bytes(read), _name(failure))
    raise AssertionError("it was whole")


def _urllib3_streamed(port: int) -> Streamed:
    read = bytearray()
    with urllib3.PoolManager() as pool:
        answer = pool.request("GET", _url(port), retries=False, preload_content=False)
        try:
            for piece in answer.stream(PIECE):
                read += piece
        except urllib3.exceptions.HTTPError as failure:
            return Streamed(answer.status, bytes(read), _name(failure))
    raise AssertionError("it was whole")


async def _aiohttp_streamed(port: int) -> Streamed:
    read = bytearray()
    async with aiohttp.ClientSession() as session, session.get(_url(port)) as answer:
        try:
            while piece := await answer.content.read(PIECE):
                read += piece
        except aiohttp.ClientError as failure:
            return Streamed(answer.status, bytes(read), _name(failure))
    raise AssertionError("it was whole")


def _in_tests(call: Callable[[int, float | None], Any]) -> Callable[[int, float | None], Any]:
    """The same with the point where it lies in tests: above httpx's transports."""

    def patched(port: int, patience: float | None) -> Any:
        with httpx_transports.patched():
            return call(port, patience)

    return patched


def _run(call: Callable[[int, float | None], Awaitable[Any]]) -> Callable[[int, float | None], Any]:
    async def within(port: int, patience: float | None) -> Any:
        return await call(port, patience)

    return lambda port, patience: asyncio.run(within(port, patience))


def _rpc(_port: int) -> str:
    return "api>rpc:Get:/shop.Prices"


def _command(port: int) -> str:
    return f"api>db:SET:{address(HOST.get(), port)}"


HTTP: Final = {
    "httpx": Caller(_httpx, _http),
    "httpx, asyncio": Caller(_run(_httpx_async), _http),
    "httpx, in tests": Caller(_in_tests(_httpx), _http),
    "httpx, asyncio, in tests": Caller(_in_tests(_run(_httpx_async)), _http),
    "httpx2": Caller(partial(_httpx, library=httpx2), _http),
    "httpx2, asyncio": Caller(_run(partial(_httpx_async, library=httpx2)), _http),
    "requests": Caller(_requests, _http),
    "urllib3": Caller(_urllib3, _http),
    "http.client": Caller(_http_client, _http),
    "urllib.request": Caller(_urllib, _http),
    "aiohttp": Caller(_run(_aiohttp), _http),
}
GRPC: Final = {
    "gRPC": Caller(_grpc, _rpc),
    "gRPC, asyncio": Caller(_run(_grpc_aio), _rpc),
}
REDIS: Final = {
    "redis-py": Caller(_redis, _command),
    "redis-py, asyncio": Caller(_run(_redis_async), _command),
}
STREAMING: Final[dict[str, Callable[[int], Streamed]]] = {
    "httpx": _httpx_streamed,
    "httpx, asyncio": lambda port: asyncio.run(_httpx_async_streamed(port)),
    "httpx2": partial(_httpx_streamed, library=httpx2),
    "httpx2, asyncio": lambda port: asyncio.run(_httpx_async_streamed(port, httpx2)),
    "requests": _requests_streamed,
    "urllib3": _urllib3_streamed,
    "aiohttp": lambda port: asyncio.run(_aiohttp_streamed(port)),
}
CALLERS: Final = {**HTTP, **GRPC, **REDIS}
