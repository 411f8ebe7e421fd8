from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor

from ldfi.fit.clients import httpx as ours
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
