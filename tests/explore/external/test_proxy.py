"""The proxy before the system: what passes through is stamped, noted and otherwise as it was."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from ldfi.explore.external.assertions import AnswerAssertion
from ldfi.explore.external.proxy import ProxiedRun, Proxy
from ldfi.explore.external.receiver import InvalidAddress
from ldfi.explore.external.stamp import SharedKeys, Stamp
from ldfi.fit import baggage

STAMP = Stamp(SharedKeys("k:0123456789abcdef").keys, (), 1.0)
TRACE = "a" * 32


class Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        got = {
            "method": self.command,
            "path": self.path,
            "headers": {k.lower(): v for k, v in self.headers.items()},
            "body": self.rfile.read(length).decode(),
        }
        said = json.dumps(got).encode()
        self.send_response(418 if "teapot" in self.path else 200)
        self.send_header("x-kept", "yes")
        self.send_header("set-cookie", "a=1")
        self.send_header("set-cookie", "b=2")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(said)

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def target() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@contextmanager
def proxied(target: str, *assertions: str) -> Iterator[Proxy]:
    proxy = Proxy("127.0.0.1:0", target, [AnswerAssertion.parse(each) for each in assertions])
    try:
        yield proxy
    finally:
        proxy.close()


def ask(
    proxy: Proxy, method: str, path: str, body: Any = None, **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=10)
    connection.request(method, path, body, headers, encode_chunked=not isinstance(body, str))
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def test_what_passes_is_stamped_and_else_as_it_was(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1_000_000.0)  # a context expires at a full second
    proxied_run = ProxiedRun(TRACE, STAMP)
    with proxied(target + "/base") as proxy:
        proxy.begin(proxied_run)
        answer, content = ask(
            proxy, "POST", "/a?b=c", "hello", baggage="fit=forged,mine=1", traceparent="00-x"
        )
        proxy.begin(None)
        _, unstamped = ask(proxy, "GET", "/")

    got = json.loads(content)
    assert (got["method"], got["path"], got["body"]) == ("POST", "/base/a?b=c", "hello")
    (sent,) = [each.sent for each in proxied_run.passed]
    assert got["headers"]["traceparent"] == f"00-{TRACE}-{sent.span_id}-01"
    assert baggage.values(got["headers"]["baggage"]) == [STAMP.context()]
    assert got["headers"]["baggage"].endswith(",mine=1")
    assert answer.getheader("x-kept") == "yes"
    assert answer.headers.get_all("set-cookie") == ["a=1", "b=2"]
    assert "traceparent" not in json.loads(unstamped)["headers"]
    assert len(proxied_run.passed) == 1


def test_bytes_that_no_client_should_send_are_passed_on(target: str) -> None:
    with proxied(target) as proxy, socket.create_connection(_address(proxy), 10) as client:
        proxy.begin(proxied_run := ProxiedRun(TRACE, STAMP))
        client.sendall("GET /ä?b=%20 HTTP/1.1\r\nx-kept: one\r\n two\r\n\r\n".encode())
        answer = http.client.HTTPResponse(client)
        answer.begin()
        got = json.loads(answer.read())

    assert got["path"] == "/%C3%A4?b=%20"
    assert got["headers"]["x-kept"] == "one  two"
    assert [each.sent.status for each in proxied_run.passed] == [200]


def _address(proxy: Proxy) -> tuple[str, int]:
    host, _, port = urlsplit(proxy.url).netloc.partition(":")
    return host, int(port)


def test_bodies_in_chunks_and_answers_without_one(target: str) -> None:
    with proxied(target) as proxy:
        _, content = ask(proxy, "PUT", "/", iter([b"hel", b"lo"]))
        head, nothing = ask(proxy, "HEAD", "/")

    assert json.loads(content)["body"] == "hello"
    assert (head.status, nothing) == (200, b"")


@pytest.mark.parametrize("length", ["-1", "five", "1_0"])
def test_a_body_of_no_length_goes_nowhere(target: str, length: str) -> None:
    proxied_run = ProxiedRun(TRACE, STAMP)
    with proxied(target) as proxy:
        proxy.begin(proxied_run)
        connection = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=10)
        connection.putrequest("POST", "/")
        connection.putheader("Content-Length", length)
        connection.endheaders()
        answer = connection.getresponse()
        connection.close()

    assert (answer.status, answer.getheader("connection")) == (400, "close")
    assert proxied_run.passed == []


def test_answers_are_held_against_what_is_asserted(target: str) -> None:
    proxied_run = ProxiedRun(TRACE, STAMP)
    with proxied(target, "status==200", "json.method==GET") as proxy:
        proxy.begin(proxied_run)
        for method, path in (("GET", "/"), ("DELETE", "/"), ("GET", "/teapot")):
            ask(proxy, method, path)

    assert [each.wrong for each in proxied_run.passed] == [
        (),
        ("json.method==GET",),
        ("status==200",),
    ]
    assert [each.sent.failed for each in proxied_run.passed] == [False, False, True]


def test_a_target_that_is_away_is_a_bad_gateway() -> None:
    proxied_run = ProxiedRun(TRACE, STAMP)
    with proxied("http://127.0.0.1:1") as proxy:
        proxy.begin(proxied_run)
        answer, content = ask(proxy, "GET", "/")

    assert answer.status == 502
    assert b"ConnectionRefusedError" in content
    assert [each.sent.status for each in proxied_run.passed] == [0]


def test_targets_and_addresses_that_are_none(target: str) -> None:
    with pytest.raises(InvalidAddress, match="give a URL"):
        Proxy("127.0.0.1:0", "localhost:8080")
    with proxied(target) as proxy, pytest.raises(InvalidAddress, match="cannot listen"):
        Proxy(urlsplit(proxy.url).netloc, target)
