"""A control plane that streams offers, leases rules to whoever asks, and grants devices one by one.

What edges of a service without streams do is asked of :class:`ldfi.testing.ControlPlane`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from ldfi.fit.protocol.rules import Rule

VERSION: Final = "epoch-1"
LEASE_SECONDS: Final = 5.0
EVENTS: Final = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Granting:
    """How asks are answered: with this, so many seconds later."""

    status: int = 200
    granted: bool = True
    version: str = VERSION
    after: float = 0.0


@dataclass
class OfferingPlane:
    """Serves these rules, in one version. ``leases``: whether it answers polls."""

    rules: tuple[Rule, ...]
    granting: Granting = Granting()
    leases: bool = True
    url: str = ""
    streams: int = 0
    """How many streams are open."""
    polls: list[Mapping[str, str]] = field(default_factory=list)
    asks: list[Mapping[str, Any]] = field(default_factory=list)
    gone: threading.Event = field(default_factory=threading.Event)

    def told(self, name: str) -> str:
        """Return what the last poll said by this name; empty where there was none."""
        return self.polls[-1].get(name, "") if self.polls else ""

    def document(self, seconds: float) -> bytes:
        """Write the rules, as an offer or for so many seconds."""
        rules = [rule.to_json() for rule in self.rules]
        said = {"version": VERSION, "lease_seconds": seconds, "asks": True, "rules": rules}
        return json.dumps(said).encode()


@contextmanager
def offering(plane: OfferingPlane) -> Iterator[OfferingPlane]:
    """Have a plane listen on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(plane))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    plane.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield plane
    finally:
        plane.gone.set()
        server.shutdown()
        server.server_close()


def _handler(plane: OfferingPlane) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # what is asked for has milliseconds

        def do_GET(self) -> None:
            if EVENTS in self.headers.get("Accept", ""):
                self._stream()
                return
            said = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
            plane.polls.append(said)
            plane.gone.wait(float(said["wait"]) if said["version"] == VERSION else 0.0)
            self._send(200 if plane.leases else 503, plane.document(LEASE_SECONDS))

        def do_POST(self) -> None:
            plane.asks.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            how = plane.granting
            time.sleep(how.after)
            seconds = LEASE_SECONDS if how.granted else 0.0
            said = {"granted": how.granted, "lease_seconds": seconds, "version": how.version}
            self._send(how.status, json.dumps(said).encode())

        def _stream(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", EVENTS)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b": hello\r\ndata: " + plane.document(0.0) + b"\r\n\r\n")
            plane.streams += 1
            plane.gone.wait()

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing: the check has its own output."""

        def handle(self) -> None:
            with suppress(OSError):  # the edge hung up
                super().handle()

    return Handler
