"""OTLP over gRPC, at the same address as over HTTP: many SDKs speak it unless told otherwise.

gRPC is HTTP/2, whose connections begin with a line of their own. What begins so is passed on to a
gRPC server on loopback, which is started when the first one comes: whoever has no need of gRPC
needs neither grpcio nor the time to import it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from importlib.util import find_spec
from threading import Lock, Thread
from typing import Any, Final

MAX_MESSAGE: Final = 16 * 1024 * 1024
"""Bytes of one export."""

_BEGINS: Final = b"PRI"
"""How HTTP/2 begins; no request of HTTP/1 does."""
_CHUNK: Final = 65536
_TRACES: Final = "opentelemetry.proto.collector.trace.v1.TraceService"

Take = Callable[[str, bytes], int]
"""Takes in one export, given what was shown as authorization; returns a status of HTTP."""


class OverGrpc:
    """Answers connections that speak gRPC; exports of traces go to ``take``."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._lock = Lock()
        self._server: Any = None
        self._port = 0

    def serve(self, connection: socket.socket) -> None:
        """Answer a connection until it ends. Raises ImportError where grpcio is missing."""
        with self._lock:
            if self._server is None:
                self._start()
        with socket.create_connection(("127.0.0.1", self._port)) as inner:
            back = Thread(target=_pour, args=(inner, connection), daemon=True, name="ldfi-grpc")
            back.start()
            _pour(connection, inner)
            back.join(5)

    def close(self) -> None:
        """Stop answering."""
        with self._lock:
            if self._server is not None:
                self._server.stop(None).wait(5)

    def _start(self) -> None:
        import grpc

        taking = self._take
        refusals = {
            HTTPStatus.UNAUTHORIZED: grpc.StatusCode.UNAUTHENTICATED,
            HTTPStatus.BAD_REQUEST: grpc.StatusCode.INVALID_ARGUMENT,
        }

        def export(body: bytes, context: Any) -> bytes:
            shown = dict(context.invocation_metadata()).get("authorization", "")
            status = taking(str(shown), body)
            if status in refusals:
                context.abort(refusals[HTTPStatus(status)], HTTPStatus(status).phrase)
            return b""

        class Handler(grpc.GenericRpcHandler):  # type: ignore[misc] # gRPC has no types
            def service(self, call: Any) -> Any:
                _, service, method = call.method.split("/")
                if method != "Export":
                    return None
                # Metrics and logs are let go: nobody should log errors for them
                does = export if service == _TRACES else lambda *_: b""
                return grpc.unary_unary_rpc_method_handler(does)

        limits = [("grpc.max_receive_message_length", MAX_MESSAGE)]
        server = grpc.server(ThreadPoolExecutor(4, "ldfi-grpc"), [Handler()], options=limits)
        self._port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self._server = server


def available() -> bool:
    """Return whether grpcio is installed."""
    return find_spec("grpc") is not None


def speaks_grpc(connection: socket.socket) -> bool:
    """Return whether a connection begins as HTTP/2 does; nothing of it is taken."""
    peek = socket.MSG_PEEK | socket.MSG_WAITALL
    return connection.recv(len(_BEGINS), peek) == _BEGINS


def _pour(source: socket.socket, target: socket.socket) -> None:
    """Forward bytes both ways until one side closes."""
    with suppress(OSError):
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
    for side in (source, target):
        with suppress(OSError):
            side.shutdown(socket.SHUT_RDWR)
