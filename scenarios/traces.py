"""Where the lineages of replayed requests come from: the service, Jaeger, or spans sent to us.

Each source is asked by trace id until it knows the whole trace. The service says only what is
whole; of the others' a trace is taken to be whole when it has not grown for some seconds.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, Protocol

import httpx

from ldfi.error_words import unanswered
from ldfi.errors import InvalidScenario, Unreachable
from ldfi.lineage.errors import UnreadableTraces
from ldfi.lineage.lineage import learn_in_full
from ldfi.lineage.outline import Outline, outline
from ldfi.lineage.readers.compressed import decompressed
from ldfi.lineage.readers.jaeger import read_trace
from ldfi.lineage.readers.otlp import decode_protobuf
from ldfi.lineage.readers.otlp_json import decode_json
from ldfi.lineage.span import Span, Trace
from ldfi.scenarios.reproduction import Attempt

QUIET: Final = 6.0
"""Seconds without a new span after which a trace is whole: SDKs send theirs every five."""
PATIENCE: Final = 20.0
"""Seconds after the last answer for which lineages are waited for."""
MAX_BODY: Final = 16 * 1024 * 1024

_POLL: Final = 0.25


class Source(Protocol):
    """Something that may know a trace. ``name``: what it is called in messages. ``quiet``: seconds
    for which what it knows of a trace must not have changed."""

    name: str
    quiet: float

    async def find(self, trace_id: str) -> tuple[Outline, ...] | None:
        """Find the lineage as far as it is known by now; None: nothing yet. Raises Unreachable."""


class SpanSource(Protocol):
    """Something that knows the spans of a trace, with their times."""

    async def spans(self, trace_id: str) -> list[Span]:
        """Return what is known of a trace so far. Raises Unreachable."""


class Service:
    """The service, if the spans of the target reach it."""

    def __init__(self, url: str, token: str) -> None:
        self.name = f"the service at {url}"
        self.quiet = 0.0
        self._url = f"{url.rstrip('/')}/api/v1/replays"
        self._headers = {"authorization": f"Bearer {token}"}

    async def find(self, trace_id: str) -> tuple[Outline, ...] | None:
        """Ask the API."""
        async with httpx.AsyncClient(timeout=5.0) as client:
            try:
                answer = await client.get(f"{self._url}/{trace_id}", headers=self._headers)
            except httpx.HTTPError as error:
                raise Unreachable(f"{self.name} does not answer: {unanswered(error)}") from error
        if answer.status_code == 404:
            return None
        if answer.is_error:
            raise Unreachable(f"{self.name} answers {answer.status_code}: {answer.text[:200]}")
        return tuple(map(Outline.from_json, answer.json()["calls"]))


class Jaeger:
    """Jaeger's query service."""

    def __init__(self, url: str, quiet: float = QUIET) -> None:
        self.quiet = quiet
        self.name = f"Jaeger at {url}"
        self._url = f"{url.rstrip('/')}/api/traces"

    async def find(self, trace_id: str) -> tuple[Outline, ...] | None:
        """Ask for the trace, and outline what is known of it."""
        return _outlined(trace_id, await self.spans(trace_id))

    async def spans(self, trace_id: str) -> list[Span]:
        """Ask for the trace as its own pages do. Raises Unreachable."""
        async with httpx.AsyncClient(timeout=5.0) as client:
            try:
                answer = await client.get(f"{self._url}/{trace_id}")
                if answer.status_code == 404:
                    return []
                answer.raise_for_status()
                traces = answer.json()["data"]
            except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
                raise Unreachable(f"{self.name} gives no trace: {unanswered(error)}") from error
        return [span for trace in traces or () for span in read_trace(trace).spans]


class SpanListener:
    """Spans that the target's services, or their Collector, export to us: OTLP over HTTP."""

    def __init__(self, quiet: float = QUIET) -> None:
        self.quiet = quiet
        self.name = "the spans that were received"
        self._spans: defaultdict[str, list[Span]] = defaultdict(list)
        self._lock = threading.Lock()

    async def find(self, trace_id: str) -> tuple[Outline, ...] | None:
        """Outline what has come in so far of a trace; None: nothing yet."""
        return _outlined(trace_id, await self.spans(trace_id))

    async def spans(self, trace_id: str) -> list[Span]:
        """List what has come in so far of a trace."""
        with self._lock:
            return list(self._spans.get(trace_id, ()))

    def receive(self, kind: str, encoding: str, body: bytes) -> bool:
        """Take in one export; False where it cannot be read."""
        try:
            plain = decompressed(body, encoding)
            batch = decode_json(plain) if kind == "application/json" else decode_protobuf(plain)
        except UnreadableTraces:
            return False
        with self._lock:
            for span in batch.spans:
                self._spans[span.trace_id].append(span)
        return True


@contextmanager
def listening(address: str, quiet: float = QUIET) -> Iterator[SpanListener]:
    """Receive OTLP at ``HOST:PORT`` (``/v1/traces``). Raises InvalidScenario where none can be."""
    listener = SpanListener(quiet)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(length) if length <= MAX_BODY else b""
            kind = self.headers.get("content-type", "").partition(";")[0].strip()
            read = listener.receive(kind, self.headers.get("content-encoding", ""), body)
            self.send_response(200 if read else 400)
            self.send_header("content-type", kind or "application/x-protobuf")
            answer = b"{}" if kind == "application/json" else b""
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    host, _, port = address.rpartition(":")
    try:
        server = ThreadingHTTPServer((host or "127.0.0.1", int(port)), Handler)
    except (OSError, ValueError, OverflowError) as error:
        raise InvalidScenario(f"--listen {address}: {error}; give HOST:PORT") from error
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    try:
        yield listener
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def with_lineages(
    attempts: list[Attempt], source: Source, patience: float = PATIENCE
) -> list[Attempt]:
    """Add their lineages to the attempts, as far as they are known in time."""
    end = time.monotonic() + patience
    found = await asyncio.gather(*(_whole(source, each.trace_id, end) for each in attempts))
    return [replace(each, lineage=lineage) for each, lineage in zip(attempts, found, strict=True)]


async def _whole(source: Source, trace_id: str, end: float) -> tuple[Outline, ...] | None:
    known: tuple[Outline, ...] | None = None
    since = time.monotonic()
    while (now := time.monotonic()) < end and (known is None or now - since < source.quiet):
        found = await source.find(trace_id)
        if found != known:
            known, since = found, time.monotonic()
        await asyncio.sleep(_POLL)
    return known


def _outlined(trace_id: str, spans: list[Span]) -> tuple[Outline, ...] | None:
    learned = learn_in_full(Trace.of(trace_id, spans)) if spans else None
    return None if learned is None else outline(learned.tree)
