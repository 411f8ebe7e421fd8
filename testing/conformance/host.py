"""What is asked of a host, over its control protocol."""

from __future__ import annotations

import json
import secrets
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

PROTOCOL: Final = 1
ANSWER: Final = b"fine"
"""What the upstream says whenever it is asked."""
_STARTING: Final = 200.0
"""Seconds for an edge that is a process of its own, and has others start before it."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one request's calls came to: what their caller saw, and what is written on spans."""

    seen: Sequence[Mapping[str, Any]]
    spans: Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Host:
    """An implementation that can be asked, and the upstream that its calls are for."""

    url: str
    upstream: str
    service: str
    kinds: frozenset[str]
    """The words of the kinds that its calls over HTTP can have."""
    names: frozenset[str]
    """The kinds of points that it can name."""
    reads: str
    """``header``: it reads the raw header; ``sdk``: what OpenTelemetry's SDK made of it."""
    implementation: str
    is_edge: bool = False
    """Whether it can set up edges, too."""

    def point(self, rest: str = "/titles/*") -> str:
        """Name the point of the calls that :meth:`run` makes."""
        return f"{self.service}>http:GET:{self.upstream.removeprefix('http://')}{rest}"

    def run(
        self, baggage: str, *, calls: int = 1, timeout_ms: int = 10_000, sampled: bool = True
    ) -> Run:
        """Have it serve a request with this baggage, in a trace of its own."""
        trace = f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-0{int(sampled)}"
        headers = {"traceparent": trace, **({"baggage": baggage} if baggage else {})}
        asked = {"headers": headers, "url": f"{self.upstream}/titles/17", "calls": calls}
        told = ask(f"{self.url}/run", {**asked, "timeout_ms": timeout_ms})
        return Run(told["seen"], told["spans"])

    def decode(self, cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Have it read contexts: each of ``keys``, ``value``, ``now``."""
        return list(ask(f"{self.url}/decode", {"cases": cases}))

    def name(self, cases: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
        """Have it name points, each by its ``kind`` and what is known of it."""
        return list(ask(f"{self.url}/name", {"cases": cases}))

    def edge(self, environment: Mapping[str, str]) -> str:
        """Have it set up an edge, as in a process with these variables; returns its URL."""
        asked = {"environment": environment}
        return str(ask(f"{self.url}/edge", asked, _STARTING)["url"])


def ask(url: str, body: object = None, patience: float = 60.0) -> Any:
    """Send JSON, or nothing, and read JSON; wait so many seconds for it."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310 - the URL that the user has typed
        url, data, {"content-type": "application/json"}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=patience) as answer:
        return json.load(answer)


@contextmanager
def met(url: str) -> Iterator[Host]:
    """Ask a host what it is, with an upstream in place. Raises ValueError for another protocol."""
    about = ask(f"{url}/about")
    if about["protocol"] != PROTOCOL:
        raise ValueError(f"the host speaks version {about['protocol']}, this is {PROTOCOL}")
    with _upstream() as upstream:
        yield Host(
            url,
            upstream,
            about["service"],
            frozenset(about["kinds"]),
            frozenset(about["names"]),
            about["reads"],
            about["implementation"],
            bool(about.get("edge")),
        )


class _Fine(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, *_: object) -> None:
        pass


class _Upstream(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


@contextmanager
def _upstream() -> Iterator[str]:
    server = _Upstream(("127.0.0.1", 0), _Fine)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
