"""A server that takes spans, as a back end for traces would, and counts them."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from zlib import MAX_WBITS, decompress

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Sink:
    """``spans`` by trace id, ``names`` by service and name of the span."""

    spans: Counter[str] = field(default_factory=Counter)
    names: Counter[tuple[str, str]] = field(default_factory=Counter)
    tokens: set[str] = field(default_factory=set)

    def take(self, headers: Mapping[str, str], body: bytes) -> None:
        """One export."""
        self.tokens.add(headers.get("authorization", ""))
        if headers.get("content-encoding") == "gzip":
            body = decompress(body, 16 + MAX_WBITS)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            attributes = {a.key: a.value.string_value for a in resource.resource.attributes}
            service = attributes.get("service.name", "")
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                self.spans[span.trace_id.hex()] += 1
                self.names[service, span.name] += 1


@contextmanager
def listening(sink: Sink, port: int = 0) -> Iterator[str]:
    """The URL at which it takes OTLP over HTTP. ``port``: 0 is any that is free."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            sink.take(headers, self.rfile.read(int(headers["content-length"])))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def free_ports(count: int) -> list[str]:
    """Ports that nobody listens on, for now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [str(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


def until(condition: Callable[[], object], seconds: float) -> None:
    """Wait for it to hold."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
