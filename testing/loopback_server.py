"""An HTTP server on loopback in threads of its own, which can go away and come back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


Respond = Callable[[str, Mapping[str, str], str], Answer | None]
"""Path, query and authorization of a GET request → the answer; None to hang up."""


class Listener:
    """Answers GET requests with ``respond``. ``leaving``: whoever waits shall hang up."""

    def __init__(self, respond: Respond) -> None:
        self.leaving = True
        self._respond = respond
        self._port = 0
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Return where it listens, or has listened."""
        return f"http://127.0.0.1:{self._port}"

    def open(self) -> None:
        """Listen; on the same port as before, where there is one."""
        if self._server is None:
            self.leaving = False
            server = ThreadingHTTPServer(("127.0.0.1", self._port), self._handler())
            server.daemon_threads = True
            self._server, self._port = server, server.server_port
            self._thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop listening; does nothing where nobody listens."""
        server, self._server = self._server, None
        if server is not None and self._thread is not None:
            self.leaving = True
            server.shutdown()
            server.server_close()
            self._thread.join(5)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        respond = self._respond

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = urlsplit(self.path)
                query = {k: v[0] for k, v in parse_qs(asked.query, keep_blank_values=True).items()}
                answer = respond(asked.path, query, self.headers.get("Authorization", ""))
                if answer is not None:
                    self._send(answer)

            def _send(self, answer: Answer) -> None:
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *_: Any) -> None:
                """Say nothing: a test has its own output."""

            def handle(self) -> None:
                with suppress(OSError):  # the edge hung up
                    super().handle()

        return Handler
