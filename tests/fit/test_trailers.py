"""What comes behind a body as trailers is no header: a context in it reaches nobody."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ldfi import fit
from ldfi.testing.live_service import served
from tests.fit.edges import ANY, Held, a_rule

FOREIGN = b"fit=v1.someone-else.t.9999999999.f.m"
WAIT = 20.0


class Waiting:
    """An application that looks at its headers once trailers have come."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.headers: list[tuple[bytes, bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.begun.set()
        while (await receive()).get("more_body"):
            pass
        self.headers = [pair for pair in scope["headers"] if pair[0] == b"baggage"]
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})


@contextmanager
def asked(url: str) -> Iterator[socket.socket]:
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=WAIT) as connection:
        yield connection


@pytest.mark.parametrize("parser", ["httptools", "h11"])
@pytest.mark.parametrize("own", [b"", b"baggage: a=b\r\n"])
def test_a_context_in_a_trailer_does_not_get_past_the_edge(parser: str, own: bytes) -> None:
    app = Waiting()
    edge = fit.EdgeMiddleware(app, Held(a_rule(predicate=ANY)))
    with served(edge, http=parser, lifespan="off") as url, asked(url) as connection:
        connection.sendall(
            b"POST / HTTP/1.1\r\nhost: shop\r\ntransfer-encoding: chunked\r\n" + own + b"\r\n"
        )
        assert app.begun.wait(WAIT), "the request did not arrive"
        connection.sendall(b"1\r\nx\r\n0\r\nbaggage: " + FOREIGN + b"\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 204")

    assert app.headers == ([(b"baggage", b"a=b")] if own else [])
