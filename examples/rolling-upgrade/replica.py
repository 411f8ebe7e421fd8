"""One replica of a small store: a process of its own, with versioned records behind HTTP.

python replica.py NAME PORT RELEASE
"""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RECORDS = {str(number): {"title": f"item {number}", "version": 1} for number in range(1000)}


class Replica(BaseHTTPRequestHandler):
    """``GET /records/KEY`` and ``GET /healthz``. Connections are kept alive."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    name, release = "", ""

    def do_GET(self) -> None:
        """Answer with a record, or with who this is."""
        _, kind, *key = self.path.split("/")
        if kind == "healthz":
            self._answer(200, {"name": self.name, "release": self.release})
        elif kind == "records" and key and key[0] in RECORDS:
            self._answer(200, RECORDS[key[0]])
        else:
            self._answer(404, {"error": f"no such thing: {self.path}"})

    def _answer(self, status: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: a line for each request would be a lot."""


def end_with_parent() -> None:
    """End when standard input closes: whoever started this holds the other end, and is gone
    then."""
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=end_with_parent, daemon=True).start()
    Replica.name, port, Replica.release = sys.argv[1:]
    ThreadingHTTPServer(("127.0.0.1", int(port)), Replica).serve_forever()
