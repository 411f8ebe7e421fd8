"""What each client sends to a host that may not have the failure context, and to one that may."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import Any

import aiohttp
import grpc
import httpx
import pytest
import requests
import urllib3
from botocore.awsrequest import AWSRequest
from botocore.httpsession import URLLib3Session
from grpc import aio
from multidict import CIMultiDict
from opentelemetry import baggage, context
from opentelemetry.instrumentation.aiohttp_client import AioHttpClientInstrumentor
from opentelemetry.instrumentation.grpc import GrpcAioInstrumentorClient, GrpcInstrumentorClient
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.instrumentation.urllib3 import URLLib3Instrumentor
from opentelemetry.instrumentation.utils import suppress_instrumentation
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from urllib3 import HTTPHeaderDict

from ldfi.fit import hosts
from ldfi.fit.clients.grpc import permitted
from ldfi.testing.serving import served
from tests.fit.clients.contract import Requests

OURS, THEIRS = "fit=", "tenant=blue"
POINT = "api>http:GET:elsewhere/"


@contextmanager
def only(allowed: str | None) -> Iterator[None]:
    """Allow these hosts; every host where that is None."""
    try:
        with pytest.MonkeyPatch.context() as patch:
            if allowed is not None:
                patch.setenv(hosts.VARIABLE, allowed)
            hosts.forget()
            yield
    finally:
        hosts.forget()


def _echo(request: Request) -> PlainTextResponse:
    return PlainTextResponse(",".join(request.headers.getlist("baggage")))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(Starlette(routes=[Route("/", _echo)])) as url:
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


def sent_by_httpx(url: str, _: str, headers: Any = None) -> str:
    with httpx.Client(trust_env=False) as client:
        return client.get(url, headers=headers).text


def sent_by_httpx_async(url: str, _: str, headers: Any = None) -> str:
    async def get() -> str:
        async with httpx.AsyncClient(trust_env=False) as client:
            return (await client.get(url, headers=headers)).text

    return asyncio.run(get())


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
def also_theirs() -> Iterator[None]:
    """Baggage of the application's own, beside ours."""
    token = context.attach(baggage.set_baggage("tenant", "blue"))
    try:
        yield
    finally:
        context.detach(token)


@pytest.mark.parametrize(
    "call",
    [
        *(sent_by_httpx, sent_by_httpx_async, sent_by_requests, sent_by_urllib3),
        *(sent_by_aiohttp, sent_by_grpc, sent_by_grpc_aio),
    ],
)
def test_the_context_goes_to_allowed_hosts_only(
    requests_made: Requests,
    call: Callable[[str, str], str],
    url: str,
    target: str,
) -> None:
    seen = {}
    for allowed in (None, "127.0.0.1,*.internal", "*.internal"):
        with only(allowed), requests_made.request(f"error@{POINT}"), also_theirs():
            seen[allowed] = call(url, target)
    # Without a word, and to a host that is named, it goes; to any other the rest of it does
    assert [OURS in each for each in seen.values()] == [True, True, False]
    assert [THEIRS in each for each in seen.values()] == [True, True, True]


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
    for allowed in ("127.0.0.1", "*.internal"):
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
    for allowed in ("127.0.0.1", "*.internal"):
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
        ("unix:/run/prices.sock", False),
        ("dns.internal:443", True),
        ("dns", False),
    ],
)
def test_grpc_targets_are_read_as_grpc_does(target: str, goes: bool) -> None:
    with only("*.internal,10.*,::1"):
        left = permitted(target, [("baggage", BOTH)])
        nothing = permitted(target, None)
    assert left == (None if goes else [("baggage", THEIRS)])
    assert nothing is None
