"""A proxy before the system under test: it stamps every request of a test in any language."""

from __future__ import annotations

import http.client
import secrets
import string
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import SplitResult, quote, urlsplit

from ldfi.error_words import unreadable
from ldfi.explore.external.assertions import AnswerAssertion
from ldfi.explore.external.bodies import body_of
from ldfi.explore.external.receiver import InvalidAddress, split
from ldfi.explore.external.requests import SentRequest
from ldfi.explore.external.stamp import DEVICE_HEADER, Stamp

TIMEOUT: Final = 120.0
"""Seconds for which the system may keep silent."""

_OF_ONE_CONNECTION: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding"),
        *("upgrade", "content-length", "host", "traceparent", "tracestate", "baggage"),
        "accept-encoding",  # what assertions are held against is plain
        DEVICE_HEADER,
    }
)


@dataclass(frozen=True, slots=True)
class Passed:
    """A request that passed through, as the command sent it, and what of the answer is wrong."""

    sent: SentRequest
    headers: tuple[tuple[str, str], ...]
    body: bytes
    wrong: tuple[str, ...] = ()


@dataclass(slots=True)
class ProxiedRun:
    """What passes through in one run: all of it is stamped alike."""

    trace_id: str
    stamp: Stamp
    passed: list[Passed] = field(default_factory=list)


class Proxy:
    """Listens at ``address`` and hands on to ``target``, stamped as the run asks.

    ``assertions`` are held against every answer. Raises InvalidAddress.
    """

    def __init__(
        self, address: str, target: str, assertions: Sequence[AnswerAssertion] = ()
    ) -> None:
        url = _target(target)
        self._https = url.scheme == "https"
        self._host, self._port = url.hostname or "", url.port or (443 if self._https else 80)
        self._base = url.path.rstrip("/")
        self._assertions = tuple(assertions)
        self._lock = threading.Lock()
        self._proxied_run: ProxiedRun | None = None
        host, port = split(address)
        try:
            self._server = ThreadingHTTPServer((host, port), self._handler())
        except (OSError, UnicodeError) as error:
            raise InvalidAddress(f"cannot listen at {address}: {unreadable(error)}") from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True, name="ldfi-proxy"
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Return where the command reaches the system."""
        host, port = self._server.server_address[:2]
        return f"http://{'127.0.0.1' if host == '0.0.0.0' else host!s}:{port}"  # noqa: S104

    def begin(self, proxied_run: ProxiedRun | None) -> None:
        """Stamp for this run from now on; for none with None."""
        with self._lock:
            self._proxied_run = proxied_run

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def handed_on(
        self, method: str, path: str, headers: list[tuple[str, str]], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """Hand a request on, and note it; returns the answer: status, headers and body."""
        with self._lock:
            proxied_run = self._proxied_run
        span_id, start = secrets.token_hex(8), time.time_ns()
        onward = [(k, v) for k, v in headers if k.lower() not in _OF_ONE_CONNECTION]
        if proxied_run is not None:
            given = {name.lower(): value for name, value in headers}
            stamped = proxied_run.stamp.headers(
                proxied_run.trace_id, span_id, given.get(DEVICE_HEADER), given.get("baggage", "")
            )
            onward += stamped.items()
        try:
            status, answered, content = self._asked(method, self._base + path, onward, body)
        except (OSError, http.client.HTTPException) as error:
            status, answered, content = 0, [], f"{type(error).__name__}: {error}".encode()
        if proxied_run is not None:
            url = f"http://{self._host}:{self._port}{self._base}{path}"
            sent = SentRequest(span_id, method, url, start, time.time_ns(), status)
            wrong = tuple(each.text for each in self._assertions if not each.holds(status, content))
            with self._lock:
                proxied_run.passed.append(Passed(sent, tuple(headers), body, wrong))
        return status or 502, answered, content

    def _asked(
        self, method: str, path: str, headers: list[tuple[str, str]], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        kind = http.client.HTTPSConnection if self._https else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=TIMEOUT)
        try:
            connection.putrequest(method, _in_ascii(path), skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, " ".join(value.splitlines()))
            if body or method not in {"GET", "HEAD", "OPTIONS", "DELETE"}:
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_request(self) -> None:
                body = body_of(self.headers, self.rfile)
                if body is None:
                    self.send_error(400, "the body has no length, or broke off")
                    return
                status, headers, content = proxy.handed_on(
                    self.command, self.path, self.headers.items(), body
                )
                self.send_response_only(status)
                for name, value in headers:
                    if name.lower() not in _OF_ONE_CONNECTION:
                        self.send_header(name, value)
                if self.command == "HEAD" or status in {204, 304}:
                    content = b""
                if status not in {204, 304}:
                    self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = handle_request  # noqa: N815
            do_DELETE = do_HEAD = do_OPTIONS = handle_request  # noqa: N815

            def log_message(self, *_: Any) -> None:
                """Say nothing: the command has its own output."""

            def handle(self) -> None:
                with suppress(OSError):  # the command hung up
                    super().handle()

        return Handler


def _target(url: str) -> SplitResult:
    """Read where the system answers. Raises InvalidAddress for what is no address of a server."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and bool((parts.hostname or "").encode("idna"))
        if known and parts.port != 0:
            return parts
    except ValueError:  # of brackets, a port or a name
        pass
    raise InvalidAddress(f"{url!r} is not a target; give a URL, as in http://127.0.0.1:8080")


def _in_ascii(path: str) -> str:
    """Quote the bytes of a path that nobody has quoted: few clients do, and http.client must."""
    return quote(path.encode("latin-1"), safe=string.printable)
