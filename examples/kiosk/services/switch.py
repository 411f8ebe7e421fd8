"""A service that can be broken on purpose: at a switch it fails as services really do.

``PUT /switch`` with a kind of fault in the body, or the variable ``FAILS`` from the start on; an
empty body mends it. Nothing here knows of fault injection: what callers see comes over the wire.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

CONNECTION = "kiosk.connection"
"""The socket of a request, in its WSGI environment."""
JSON = [("content-type", "application/json")]

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Switch:
    """A WSGI application that answers as another does, or fails as it is told."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.fails = os.environ.get("FAILS", "")
        self._turned = threading.Event()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/health":
            return said(start, b"ok")
        if environ["PATH_INFO"] == "/switch":
            self._turn(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])).decode())
            return said(start, b"so be it")
        word, _, status = self.fails.partition(":")
        if not word:
            return self.application(environ, start)
        if word == "status":
            return said(start, b"out of order", f"{status} Out Of Order")
        return getattr(self, word)(environ, start)

    def _turn(self, fails: str) -> None:
        self.fails = fails
        self._turned.set()
        self._turned = threading.Event()

    def empty(self, _environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        return said(start, b"")

    def truncated(self, _environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Announce more than is sent, send some of it, and hang up."""
        start("200 OK", [*JSON, ("content-length", "64")])
        return self._streamed()

    def _streamed(self) -> Iterator[bytes]:
        yield b'{"copies":'
        yield b" 1"

    def corrupt(self, _environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        return said(start, b"\xff\x00\xfe\xc3\x28")

    def reset(self, environ: dict[str, Any], _start: Callable[..., Any]) -> Iterable[bytes]:
        """Tear the connection down, as a process that is gone: the peer is told of a reset."""
        connection: socket.socket = environ[CONNECTION]
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with socket.socket() as another:  # the last that holds the connection lets go of it
            os.dup2(another.fileno(), connection.fileno())
        raise ConnectionResetError

    def timeout(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Say nothing, until the switch is turned."""
        self._turned.wait(60)
        return self.reset(environ, start)


def said(start: Callable[..., Any], body: bytes, status: str = "200 OK") -> Iterable[bytes]:
    start(status, [*JSON, ("content-length", str(len(body)))])
    return [body]


class Handler(WSGIRequestHandler):
    def get_environ(self) -> dict[str, Any]:
        return super().get_environ() | {CONNECTION: self.connection}

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64


def serve(application: Application) -> None:
    """Answer at the port that the environment names, until the process is killed."""
    with Server(("127.0.0.1", int(os.environ["PORT"])), Handler) as server:
        server.set_app(Switch(application))
        server.serve_forever(0.05)
