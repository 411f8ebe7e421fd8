from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial

import httpx
import pytest
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor

from ldfi.fit.clients import httpx as ours
from ldfi.fit.clients import httpx_transports
from tests.fit.clients.contract import Requests, holds, seen, seen_async, unharmed

TIMEOUT = httpx.Timeout(5, read=0.2)


@pytest.fixture(autouse=True)
def instrumented(requests_made: Requests) -> Iterator[None]:
    HTTPXClientInstrumentor().instrument(tracer_provider=requests_made.provider)
    yield
    HTTPXClientInstrumentor().uninstrument()


def unavailable(answer: object) -> bool:
    return isinstance(answer, httpx.Response) and answer.status_code == 503


def timed_out(answer: object) -> bool:
    return isinstance(answer, httpx.ReadTimeout)


@pytest.mark.parametrize("semantics", ["", "http"])
def test_one_name_at_both_ends(
    requests_made: Requests, server: str, semantics: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", semantics)
    point = f"api>http:GET:{server.removeprefix('http://')}/titles/*"
    with httpx.Client(timeout=TIMEOUT, trust_env=False) as client:
        call = seen(lambda: client.get(f"{server}/titles/17?page=2"))
        holds(requests_made, point, call, unavailable, timed_out)


def test_one_name_at_both_ends_async(requests_made: Requests, server: str) -> None:
    point = f"api>http:POST:{server.removeprefix('http://')}/titles/*"

    async def call() -> httpx.Response:
        async with httpx.AsyncClient(timeout=TIMEOUT, trust_env=False) as client:
            return await client.post(f"{server}/titles/17", json={})

    holds(requests_made, point, seen_async(call), unavailable, timed_out)


def test_an_injected_answer_reads_as_any_other(requests_made: Requests, server: str) -> None:
    point = f"api>http:GET:{server.removeprefix('http://')}/titles/*"
    with httpx.Client(trust_env=False) as client:
        with requests_made.request(f"error@{point}"):
            response = client.get(f"{server}/titles/17")
            with client.stream("GET", f"{server}/titles/17") as stream:
                streamed = b"".join(stream.iter_bytes())
        assert client.get(f"{server}/titles/17").status_code == 200

    assert response.text == "fault injected"
    assert streamed == b"fault injected"
    with pytest.raises(httpx.HTTPStatusError):
        response.raise_for_status()


def test_the_host_is_unharmed(requests_made: Requests, server: str) -> None:
    point = f"api>http:GET:{server.removeprefix('http://')}/titles/*"
    with httpx.Client(trust_env=False) as client:
        call = seen(lambda: client.get(f"{server}/titles/17"))
        unharmed(requests_made, ours, point, call, unavailable)


class Fallback(httpx.BaseTransport):
    """Asks another path where the first one fails: an application's own transport."""

    def __init__(self) -> None:
        self.inner = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        try:
            answer = self.inner.handle_request(request)
            if answer.status_code < 500:
                return answer
            answer.close()
        except httpx.TransportError:
            pass
        url = request.url.copy_with(path="/backup")
        extensions = {"timeout": request.extensions["timeout"]}
        return self.inner.handle_request(httpx.Request(request.method, url, extensions=extensions))

    def close(self) -> None:
        self.inner.close()


@pytest.mark.parametrize("kind", ["error", "refused", "reset", "timeout", "status:500"])
def test_a_transport_of_the_applications_own_is_above_the_point_in_tests_as_in_production(
    requests_made: Requests, server: str, kind: str
) -> None:
    host = server.removeprefix("http://")
    first, second = f"api>http:GET:{host}/titles/*", f"api>http:GET:{host}/backup"
    for placed in (nullcontext, httpx_transports.patched):
        with placed(), httpx.Client(transport=Fallback(), timeout=TIMEOUT) as client:
            with requests_made.request(f"{kind}@{first}", delay_ms=1_000):
                answer = client.get(f"{server}/titles/17")
            assert (answer.status_code, answer.request.url.path) == (200, "/titles/17")
            with requests_made.request(f"{kind}@{first}", f"{kind}@{second}", delay_ms=1_000):
                both = seen(partial(client.get, f"{server}/titles/17"))()
            assert isinstance(both, httpx.TransportError) or both.status_code >= 500
