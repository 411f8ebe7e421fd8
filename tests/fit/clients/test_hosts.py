"""What each client sends to a host that may not have the failure context, and to one that may."""

from __future__ import annotations

import asyncio
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from functools import partial
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import grpc
import httpx
import httpx2
import pytest
import requests
import urllib3
from botocore.awsrequest import AWSRequest
from botocore.httpsession import URLLib3Session
from grpc import aio
from multidict import CIMultiDict
from opentelemetry import baggage, context, propagate
from opentelemetry.context import Context
from opentelemetry.instrumentation.aiohttp_client import AioHttpClientInstrumentor
from opentelemetry.instrumentation.grpc import GrpcAioInstrumentorClient, GrpcInstrumentorClient
from opentelemetry.instrumentation.httpx import HTTPX2ClientInstrumentor, HTTPXClientInstrumentor
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.instrumentation.urllib3 import URLLib3Instrumentor
from opentelemetry.instrumentation.utils import suppress_instrumentation
from starlette.applications import Starlette
from starlette.requests import Request as Asked
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.routing import Route
from urllib3 import HTTPHeaderDict

from ldfi.fit import hosts
from ldfi.fit.clients import kafka
from ldfi.fit.clients.grpc import addressed
from ldfi.testing.live_service import served
from tests.fit.clients.contract import Requests

OURS, THEIRS = "fit=", "tenant=blue"
POINT = "api>http:GET:elsewhere/"


@contextmanager
def only(allowed: str | None) -> Iterator[None]:
    """Allow these hosts; private ones where that is None."""
    try:
        with pytest.MonkeyPatch.context() as patch:
            if allowed is None:
                patch.delenv(hosts.VARIABLE, raising=False)
            else:
                patch.setenv(hosts.VARIABLE, allowed)
            hosts.forget()
            yield
    finally:
        hosts.forget()


def _echo(request: Asked) -> PlainTextResponse:
    return PlainTextResponse(",".join(request.headers.getlist("baggage")))


def _away(request: Asked) -> RedirectResponse:
    """Send on to the same server, by another name."""
    return RedirectResponse(str(request.url.replace(hostname="localhost", path="/")))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(Starlette(routes=[Route("/", _echo), Route("/away", _away)])) as url:
        yield url + "/"


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    def told(_: bytes, within: grpc.ServicerContext) -> bytes:
        sent = within.invocation_metadata()
        return ",".join(str(value) for key, value in sent if key == "baggage").encode()

    server = grpc.server(futures.ThreadPoolExecutor(2))
    handlers = {"Get": grpc.unary_unary_rpc_method_handler(told)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("s.S", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait(5)


@pytest.fixture(autouse=True)
def instrumented(requests_made: Requests) -> Iterator[None]:
    every: tuple[Any, ...] = (
        HTTPXClientInstrumentor(),
        HTTPX2ClientInstrumentor(),
        RequestsInstrumentor(),
        URLLib3Instrumentor(),
        AioHttpClientInstrumentor(),
        GrpcInstrumentorClient(),  # type: ignore[no-untyped-call]
        GrpcAioInstrumentorClient(),  # type: ignore[no-untyped-call]
    )
    with ExitStack() as stack:
        for each in every:
            each.instrument(tracer_provider=requests_made.provider)
            stack.callback(each.uninstrument)
        yield


def sent_by_urllib3(url: str, _: str, headers: Any = None) -> str:
    with urllib3.PoolManager() as pool:
        return pool.request("GET", url, headers=headers).data.decode()


def sent_by_requests(url: str, _: str, headers: Any = None) -> str:
    with requests.Session() as session:
        session.trust_env = False
        return session.get(url, headers=headers).text


def sent_by_botocore(url: str, _: str, headers: Any = None) -> str:
    request = AWSRequest("GET", url, headers).prepare()
    answer = URLLib3Session().send(request)
    return str(answer.text)


def sent_by_httpx(url: str, _: str, headers: Any = None, library: Any = httpx) -> str:
    with library.Client(trust_env=False) as client:
        return str(client.get(url, headers=headers).text)


def sent_by_httpx_async(url: str, _: str, headers: Any = None, library: Any = httpx) -> str:
    async def get() -> str:
        async with library.AsyncClient(trust_env=False) as client:
            return str((await client.get(url, headers=headers)).text)

    return asyncio.run(get())


sent_by_httpx2 = partial(sent_by_httpx, library=httpx2)
sent_by_httpx2_async = partial(sent_by_httpx_async, library=httpx2)


def sent_by_aiohttp(url: str, _: str, headers: Any = None) -> str:
    async def beneath(request: Any, send: Any) -> Any:
        request.headers.extend(
            headers or ()
        )  # beneath instrumentation, which replaces what is there
        return await send(request)

    async def get() -> str:
        async with aiohttp.ClientSession(middlewares=[beneath]) as session, session.get(url) as got:
            return await got.text()

    return asyncio.run(get())


def sent_by_grpc(_: str, target: str, headers: Any = None) -> str:
    with grpc.insecure_channel(target) as channel:
        call = channel.unary_unary("/s.S/Get")
        return bytes(call(b"", timeout=10, metadata=headers)).decode()


def sent_by_grpc_aio(_: str, target: str, headers: Any = None) -> str:
    async def get() -> str:
        async with aio.insecure_channel(target) as channel:
            call = channel.unary_unary("/s.S/Get")
            return bytes(await call(b"", timeout=10, metadata=headers)).decode()

    return asyncio.run(get())


@contextmanager
def attached(around: Context) -> Iterator[None]:
    token = context.attach(around)
    try:
        yield
    finally:
        context.detach(token)


def also_theirs() -> AbstractContextManager[None]:
    """Baggage of the application's own, beside ours."""
    return attached(baggage.set_baggage("tenant", "blue"))


@pytest.mark.parametrize(
    "call",
    [
        *(sent_by_httpx, sent_by_httpx_async, sent_by_httpx2, sent_by_httpx2_async),
        *(sent_by_requests, sent_by_urllib3, sent_by_aiohttp, sent_by_grpc, sent_by_grpc_aio),
    ],
)
def test_the_context_goes_to_allowed_hosts_only(
    requests_made: Requests,
    call: Callable[[str, str], str],
    url: str,
    target: str,
) -> None:
    for allowed in (None, "127.0.0.1,!*", "!127.0.0.1", ""):
        for around in (nullcontext, also_theirs):
            with only(allowed), requests_made.request(f"error@{POINT}"), around():
                sent = call(url, target)
            # Without a word it goes to private hosts; elsewhere the rest of it does
            assert sent.count(OURS) == (allowed in (None, "127.0.0.1,!*"))
            assert sent.count(THEIRS) == (around is also_theirs)


def _asking(opened: Any) -> str:
    with opened as answer:
        return str(answer.read().decode())


async def _asking_aiohttp(url: str) -> str:
    async with aiohttp.ClientSession(trust_env=True) as session, session.get(url) as got:
        return await got.text()


async def _asking_httpx(url: str) -> str:
    async with httpx.AsyncClient() as client:
        return (await client.get(url)).text


def _tunnelled(url: str, proxy: str) -> str:
    """Through a tunnel that encrypts nothing."""
    to, via = urlsplit(url), urlsplit(proxy)
    with closing(HTTPConnection(via.hostname or "", via.port, timeout=10)) as connection:
        connection.set_tunnel(to.hostname or "", to.port or 80)
        connection.request("GET", "/", headers={"traceparent": "00-1-2-01"})
        return _asking(connection.getresponse())


PROXIED: dict[str, Callable[[str, str], str]] = {
    "httpx": lambda url, _: httpx.get(url).text,
    "httpx, asyncio": lambda url, _: asyncio.run(_asking_httpx(url)),
    "httpx2": lambda url, _: str(httpx2.get(url).text),
    "requests": lambda url, _: requests.get(url, timeout=10).text,
    "urllib3": lambda url, proxy: urllib3.ProxyManager(proxy).request("GET", url).data.decode(),
    "aiohttp": lambda url, _: asyncio.run(_asking_aiohttp(url)),
    "urllib.request": lambda url, proxy: _asking(
        urllib.request.build_opener(
            urllib.request.ProxyHandler({"http": proxy} if proxy else {})
        ).open(
            urllib.request.Request(url, headers={"traceparent": "00-1-2-01"})  # noqa: S310
        )
    ),
    "http.client": _tunnelled,
}


@pytest.fixture(scope="module")
def proxy() -> Iterator[str]:
    """A proxy that answers in the name of whoever it is asked for, also within a tunnel."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Proxy) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with what of the baggage arrived."""
        body = ",".join(self.headers.get_all("baggage", [])).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_CONNECT(self) -> None:
        """Be the other end of the tunnel as well."""
        self.send_response(200)
        self.end_headers()
        self.close_connection = False

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.mark.parametrize("client", PROXIED)
def test_a_proxy_that_reads_a_request_must_be_allowed_too(
    requests_made: Requests, client: str, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.setenv("no_proxy", "")
    seen = {}
    for allowed in ("shop.internal,127.0.0.1,!*", "shop.internal,!*", "127.0.0.1,!*"):
        with only(allowed), requests_made.request("error@api>http:GET:elsewhere/"):
            seen[allowed] = PROXIED[client]("http://shop.internal/", proxy)

    assert [OURS in each for each in seen.values()] == [True, False, False]


REDIRECTED: dict[str, Callable[[str, str], str]] = {
    **PROXIED,
    "httpx": lambda url, _: httpx.get(url, follow_redirects=True).text,
    "httpx2": lambda url, _: str(httpx2.get(url, follow_redirects=True).text),
}


@pytest.mark.parametrize("client", ["httpx", "httpx2", "requests", "aiohttp", "urllib.request"])
def test_a_redirect_takes_the_context_to_nobody_who_may_not_have_it(
    requests_made: Requests, client: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    seen = {}
    for allowed in ("127.0.0.1,localhost,!*", "127.0.0.1,!*", "localhost,!*"):
        with only(allowed), requests_made.request(f"error@{POINT}"):
            seen[allowed] = REDIRECTED[client](url + "away", "")

    assert [OURS in each for each in seen.values()] == [True, False, True]


def sent_by_hand(url: str, _: str) -> str:
    headers: dict[str, str] = {}
    propagate.inject(headers)
    with suppress_instrumentation():
        return sent_by_httpx(url, "", headers)


def sent_by_a_stranger(url: str, _: str) -> str:
    """A library that OpenTelemetry instruments, and that ``fit`` does not know."""
    headers: dict[str, str] = {}
    propagate.inject(headers)
    to = urlsplit(url)
    lines = [f"GET {to.path or '/'} HTTP/1.0", *(f"{name}: {it}" for name, it in headers.items())]
    with socket.create_connection((to.hostname or "", to.port or 80), timeout=10) as line:
        line.sendall("\r\n".join([*lines, "", ""]).encode())
        return b"".join(iter(lambda: line.recv(65_536), b"")).decode()


@pytest.mark.parametrize(("call", "goes"), [(sent_by_hand, True), (sent_by_a_stranger, False)])
def test_only_a_known_client_sends_the_context(
    requests_made: Requests, call: Callable[[str, str], str], goes: bool, url: str
) -> None:
    for allowed in (None, "*"):
        with only(allowed), requests_made.request(f"error@{POINT}"), also_theirs():
            sent = call(url, "")
        assert (OURS in sent, THEIRS in sent) == (goes, True)
    with only("*"), requests_made.request(f"error@{POINT}"), suppress_instrumentation():
        assert OURS not in sent_by_httpx(url, "", {"x": "y"}), "where no trace goes along"


@pytest.mark.parametrize(
    ("value", "sent"),
    [("a b", ""), ("x\r\ny: z", ""), ("x" * 5_000, ""), (7, ""), ("1.k.e", "fit=1.k.e")],
)
def test_nothing_unsafe_is_written_into_headers(value: Any, sent: str, url: str) -> None:
    with attached(baggage.set_baggage("fit", value)):
        assert sent_by_httpx(url, "") == sent


@pytest.mark.parametrize("servers", ["10.0.0.1:9092,kafka", ["PLAINTEXT://kafka:9092"], "[::1]:9"])
@pytest.mark.parametrize("listed", [None, "*.example.com"])
def test_the_context_goes_to_brokers_that_may_have_it(servers: Any, listed: str | None) -> None:
    traced = [("traceparent", b"00-1-2-01")]
    ours = [*traced, ("baggage", b"fit=x")]
    far = [*([servers] if isinstance(servers, str) else servers), "kafka.example.com:9092"]
    with only(listed), attached(baggage.set_baggage("fit", "x")):
        for given in (traced, dict(traced)):
            assert kafka.addressed(servers, 1, ("v",), {"headers": given}) == (
                ("v",),
                {"headers": ours},
            )
            assert kafka.addressed(servers, 1, ("v", given), {}) == (("v", ours), {})
        assert kafka.addressed(servers, 1, ("v",), {}) is None
        told = kafka.addressed(far, 0, (ours,), {})
    assert told == (None if listed else (([*traced, ("baggage", b"")],), {}))


BOTH = f"{THEIRS},fit=x"
APART = [("baggage", THEIRS), ("Baggage", "fit=x")]
LOWER = [(name.lower(), value) for name, value in APART]
TOKEN = {"Authorization": "Bearer xxbaggagexx", "baggage": BOTH}


@pytest.mark.parametrize(
    ("send", "headers"),
    [
        (sent_by_urllib3, HTTPHeaderDict(APART)),
        (sent_by_urllib3, HTTPHeaderDict([("baggage", BOTH), ("baggage", "fit=x,z=1")])),
        (sent_by_urllib3, dict(APART)),
        (sent_by_urllib3, MappingProxyType(dict(APART))),
        (sent_by_urllib3, {"baggage": BOTH.encode()}),
        (sent_by_urllib3, {b"baggage": BOTH}),
        (sent_by_urllib3, TOKEN),
        (sent_by_requests, {"baggage": BOTH.encode()}),
        (sent_by_requests, TOKEN),
        (sent_by_botocore, {"baggage": BOTH.encode()}),
        (sent_by_botocore, TOKEN),
        (sent_by_httpx, APART),
        (sent_by_httpx, [(b"baggage", BOTH.encode())]),
        (sent_by_httpx_async, APART),
        (sent_by_httpx_async, TOKEN),
        (sent_by_httpx2, APART),
        (sent_by_httpx2_async, TOKEN),
        (sent_by_aiohttp, APART),
        (sent_by_aiohttp, CIMultiDict(APART)),
        (sent_by_aiohttp, TOKEN),
        (sent_by_grpc, LOWER),
        (sent_by_grpc, tuple(LOWER)),
        (sent_by_grpc, [("baggage", BOTH.encode())]),
        (sent_by_grpc_aio, LOWER),
        (sent_by_grpc_aio, aio.Metadata(*LOWER)),
        (sent_by_grpc_aio, [("baggage", BOTH.encode())]),
    ],
)
def test_the_context_is_taken_out_of_headers_of_every_shape(
    requests_made: Requests,
    send: Callable[[str, str, Any], str],
    headers: Any,
    url: str,
    target: str,
) -> None:
    seen = {}
    for allowed in ("127.0.0.1", "!127.0.0.1"):
        with only(allowed), requests_made.request(f"error@{POINT}"), suppress_instrumentation():
            seen[allowed] = send(url, target, headers)
    assert [OURS in each for each in seen.values()] == [True, False]
    assert [THEIRS in each for each in seen.values()] == [True, True]


@pytest.mark.parametrize("written", ["{}", "dns:{}", "dns:///{}", "dns:/{}", "ipv4:{}"])
@pytest.mark.parametrize("send", [sent_by_grpc, sent_by_grpc_aio])
def test_grpc_targets_are_told_by_their_host_however_they_are_written(
    requests_made: Requests,
    send: Callable[[str, str, Any], str],
    written: str,
    target: str,
) -> None:
    seen = {}
    for allowed in ("127.0.0.1", "!127.0.0.1"):
        with only(allowed), requests_made.request(f"error@{POINT}"), suppress_instrumentation():
            seen[allowed] = send("", written.format(target), [("baggage", BOTH)])
    assert list(seen.values()) == [BOTH, THEIRS]


@pytest.mark.parametrize(
    ("target", "goes"),
    [
        ("dns:prices.internal:443", True),
        ("dns:prices.internal", True),
        ("dns://8.8.8.8/prices.internal:443", True),
        ("dns://prices.internal/8.8.8.8:443", False),
        ("prices.internal:https", True),
        ("dns:example.com:443", False),
        ("dns:///example.com", False),
        ("dns:%65xample.com%2e", False),
        ("dns:prices%2einternal:443", True),
        ("ipv4:10.0.0.1:50051", True),
        ("ipv4:10.0.0.1:50051,10.0.0.2:50051", True),
        ("ipv4:10.0.0.1:50051,8.8.8.8:50051", False),
        ("ipv6:[::1]:50051", True),
        ("ipv6:%5B::1%5D:50051", True),
        ("ipv6:::1", True),
        ("ipv6:[::2]:50051,[::1]:50051", False),
        ("[::1]:50051", True),
        ("::1", True),
        ("xds:///prices.internal", True),
        ("10.0.0.1", True),
        ("unix:/run/prices.sock", True),
        ("unix-abstract:prices", True),
        ("dns.internal:443", True),
        ("dns", False),
    ],
)
def test_grpc_targets_are_read_as_grpc_does(target: str, goes: bool) -> None:
    with only("*.internal,10.*,::1,localhost,!*"):
        left = addressed(target, [("baggage", BOTH)])
        nothing = addressed(target, None)
    assert left == (None if goes else [("baggage", THEIRS)])
    assert nothing is None
