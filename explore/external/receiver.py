"""Spans as services export them: OTLP over HTTP or gRPC, on loopback unless told otherwise."""

from __future__ import annotations

import hmac
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any, Final

from ldfi.error_words import unreadable
from ldfi.errors import Invalid
from ldfi.explore.external import over_grpc
from ldfi.explore.external.bodies import body_of
from ldfi.explore.external.over_grpc import OverGrpc
from ldfi.lineage.errors import UnreadableTraces
from ldfi.lineage.readers.compressed import decompressed
from ldfi.lineage.readers.otlp import decode_protobuf
from ldfi.lineage.readers.otlp_json import decode_json
from ldfi.lineage.span import Span

MAX_BODY: Final = over_grpc.MAX_MESSAGE
ANY_PORT: Final = "127.0.0.1:0"

_JSON: Final = "application/json"
_PROTOBUF: Final = "application/x-protobuf"


class InvalidAddress(Invalid):
    """Raised for an address that cannot be listened on; the message shows it."""


class Receiver:
    """Listens at ``address`` (``HOST:PORT``) and hands on what comes in to ``take``.

    Beyond loopback whoever exports has to show ``token``. Counted are exports that did not
    (``refused``), those that were no traces (``unreadable``), and connections that speak gRPC while
    grpcio is missing here (``grpc``). Raises InvalidAddress.
    """

    def __init__(self, address: str, token: str, take: Callable[[list[Span]], None]) -> None:
        self.counts: Counter[str] = Counter()
        self._take = take
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        host, port = split(address)
        self._expected = "" if is_loopback(host) else f"Bearer {token}"
        self._grpc = OverGrpc(lambda shown, body: self.receive(_PROTOBUF, "", shown, body))
        try:
            self._server = self._listening(host, port)
        except (OSError, UnicodeError) as error:
            raise InvalidAddress(
                f"nothing can be received at {address}: {unreadable(error)}"
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True, name="ldfi-receiver"
        )
        self._thread.start()

    @property
    def address(self) -> str:
        """Return where it listens."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def close(self) -> None:
        """Stop listening, and hang up: who keeps a connection would be heard by nobody."""
        self._server.shutdown()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()
        self._grpc.close()
        self._thread.join(5)

    def receive(self, kind: str, encoding: str, shown: str, body: bytes) -> int:
        """Take in one export; returns the status to answer with."""
        if self._expected and not hmac.compare_digest(shown.encode(), self._expected.encode()):
            self.counts["refused"] += 1
            return 401
        try:
            plain = decompressed(body, encoding)
            batch = decode_json(plain) if kind == _JSON else decode_protobuf(plain)
        except UnreadableTraces:
            self.counts["unreadable"] += 1
            return 400
        self._take(list(batch.spans))
        return 200

    def receive_over_grpc(self, connection: socket.socket) -> None:
        """Take in what comes over a connection that speaks gRPC, as long as it lasts."""
        if over_grpc.available():
            self._grpc.serve(connection)
        else:
            self.counts["grpc"] += 1

    @contextmanager
    def keeping(self, connection: socket.socket) -> Iterator[None]:
        """Remember a connection as long as the block lasts."""
        with self._lock:
            self._open.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(connection)

    def _listening(self, host: str, port: int) -> ThreadingHTTPServer:
        receiver = self

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def finish_request(self, request: Any, client_address: Any) -> None:
                with receiver.keeping(request), suppress(OSError):  # the service is gone
                    if not over_grpc.speaks_grpc(request):
                        super().finish_request(request, client_address)
                    else:
                        receiver.receive_over_grpc(request)

        return Server((host, port), self._handler())

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # exporters keep their connection

            def do_POST(self) -> None:
                body = body_of(self.headers, self.rfile, MAX_BODY)
                kind = self.headers.get("content-type", "").partition(";")[0].strip()
                given = self.headers.get
                status = 200  # metrics and logs are let go: nobody should log errors for them
                if body is None:
                    receiver.counts["unreadable"] += 1
                    status = 400
                elif self.path.endswith("/v1/traces"):
                    status = receiver.receive(
                        kind, given("content-encoding", ""), given("authorization", ""), body
                    )
                answer = b"{}" if kind == _JSON else b""
                self.send_response(status)
                self.send_header("content-type", kind or _PROTOBUF)
                self.send_header("content-length", str(len(answer)))
                if body is None:
                    self.send_header("connection", "close")
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                """Say nothing: the test has its own output."""

        return Handler


def split(address: str) -> tuple[str, int]:
    """Read ``HOST:PORT`` (no host: loopback). Raises InvalidAddress."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise InvalidAddress(f"{address!r} is not an address; give HOST:PORT, as in 127.0.0.1:4318")
    return host.strip("[]") or "127.0.0.1", int(port)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
