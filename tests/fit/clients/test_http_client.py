"""http.client and urllib.request: one call is one point, whoever it goes through."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pytest
import requests
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.instrumentation.urllib import URLLibInstrumentor

from ldfi.fit import hosts
from ldfi.fit.clients import http_client as ours
from tests.fit.clients.contract import Requests, holds, seen, unharmed


@pytest.fixture(autouse=True)
def instrumented(requests_made: Requests) -> Iterator[None]:
    every: tuple[Any, ...] = (URLLibInstrumentor(), RequestsInstrumentor())
    for each in every:
        each.instrument(tracer_provider=requests_made.provider)
    yield
    for each in every:
        each.uninstrument()


@pytest.fixture
def point(server: str) -> str:
    return f"api>http:GET:{server.removeprefix('http://')}/titles/*"


def opened(url: str, timeout: float | None = 5) -> bytes:
    """What urllib.request gets of it, past any proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=timeout) as answer:
        return bytes(answer.read())


def unavailable(answer: object) -> bool:
    if isinstance(answer, urllib.error.HTTPError):
        answer.close()
        return answer.code == 503
    return False


def test_urllib_request(requests_made: Requests, server: str, point: str) -> None:
    call = seen(lambda: opened(f"{server}/titles/17?page=2", 0.2))
    late = lambda answer: isinstance(answer, TimeoutError)  # noqa: E731
    holds(requests_made, point, call, unavailable, late)
    unharmed(requests_made, ours, point, seen(lambda: opened(f"{server}/titles/17")), unavailable)


def test_a_call_of_urllib3_is_hit_once(requests_made: Requests, server: str, point: str) -> None:
    with requests.Session() as session:
        session.trust_env = False
        with requests_made.request(f"error:1@{point}"):
            codes = [session.get(f"{server}/titles/17").status_code for _ in range(2)]
    assert codes == [503, 200]
    [_, second] = requests_made.calls()
    assert (second.attributes or {})["fit.let_through"]


def test_http_client_is_hit_in_a_span_of_ours(
    requests_made: Requests, own_spans: None, server: str, point: str
) -> None:
    host = server.removeprefix("http://")
    with closing(HTTPConnection(host, timeout=5)) as connection:
        with requests_made.request(f"status:418@{point}"):
            connection.request("GET", "/titles/17")
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (418, b"fault injected")
            assert len(requests_made.calls()) == 1
        assert requests_made.lineage().fired == {f"status:418@{point}"}
        connection.request("GET", "/titles/17")  # the connection goes on
        assert connection.getresponse().status == 200


def test_a_body_sent_by_hand_goes_nowhere(
    requests_made: Requests, own_spans: None, server: str
) -> None:
    """Nothing of a request is sent in whose place an answer is given."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(0.05)
        port = silent.getsockname()[1]
        point = f"api>http:POST:127.0.0.1:{port}/orders"
        with (
            requests_made.request(f"reset@{point}"),
            closing(HTTPConnection("127.0.0.1", port)) as connection,
        ):
            connection.putrequest("POST", "/orders")
            connection.putheader("Content-Length", "5")
            connection.endheaders()
            connection.send(b"lorem")
            with pytest.raises(ConnectionResetError):
                connection.getresponse()
        with pytest.raises(TimeoutError):
            silent.accept()


def test_a_request_through_a_tunnel_is_named_by_where_it_goes(
    requests_made: Requests, own_spans: None
) -> None:
    point = "api>http:GET:shop.internal/titles/*"
    with (
        requests_made.request(f"refused@{point}"),
        closing(HTTPConnection("127.0.0.1", 9)) as connection,
    ):
        connection.set_tunnel("shop.internal", 443)
        with pytest.raises(ConnectionRefusedError) as refused:
            connection.request("GET", "/titles/17")
    assert refused.value.__notes__ == ["fault injected"]
    assert requests_made.lineage().fired == {f"refused@{point}"}


@pytest.mark.parametrize(("allowed", "sent"), [("127.0.0.1,!*", True), ("", False)])
def test_which_hosts_the_context_goes_to(
    requests_made: Requests, server: str, monkeypatch: pytest.MonkeyPatch, allowed: str, sent: bool
) -> None:
    monkeypatch.setenv(hosts.VARIABLE, allowed)
    hosts.forget()
    try:
        with requests_made.request("error@api>http:GET:elsewhere/"):
            assert (b"fit=" in opened(f"{server}/titles/17")) is sent
    finally:
        hosts.forget()
