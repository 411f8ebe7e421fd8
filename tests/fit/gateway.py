"""``ldfi-proxy gateway`` beside a real Envoy, before an upstream: a front for tests.

python tests/fit/gateway.py LDFI-PROXY UPSTREAM

It says on which port Envoy listens, and ends with both when it is told to. SIGUSR1 kills what Envoy
asks.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[2]))

from ldfi.cli.ports import free_port
from ldfi.scenarios.export.envoy import gateway
from tests.scenarios.export.proxy import EXTENSIONS, envoy_binary

WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""Whoever kills this process kills those that it has started."""


def address(host: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": host, "port_value": port}}


def bootstrap(port: int, asked: int, upstream: str) -> dict[str, Any]:
    """Write what Envoy starts with: what is exported, a router, and the upstream."""
    exported, where = gateway("127.0.0.1", asked), urlsplit(upstream)
    router = {"@type": f"{EXTENSIONS}.filters.http.router.v3.Router"}
    filters = [*exported["http_filters"], {"name": "router", "typed_config": router}]
    route = {"match": {"prefix": "/"}, "route": {"cluster": "upstream"}}
    manager = {
        "@type": f"{EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "front",
        "use_remote_address": True,  # else nobody but clients says whose a request is
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        "http_filters": filters,
        "upgrade_configs": [{"upgrade_type": "websocket"}],
    }
    chain = {"filters": [{"name": "http", "typed_config": manager}]}
    endpoint = {"endpoint": {"address": address(where.hostname or "", where.port or 80)}}
    behind = {
        "name": "upstream",
        "load_assignment": {
            "cluster_name": "upstream",
            "endpoints": [{"lb_endpoints": [endpoint]}],
        },
    }
    listener = {"address": address("127.0.0.1", port), "filter_chains": [chain]}
    clusters = [*exported["clusters"], behind]
    return {"static_resources": {"listeners": [listener], "clusters": clusters}}


def listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main(proxy: str, upstream: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    words = [*WITH_US, proxy, "gateway", "--listen", "127.0.0.1:0"]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as edge,
    ):
        said = ""
        while edge.stderr and not (found := re.search(r":(\d+), an edge", said)):
            said = edge.stderr.readline()
        asked, port = int(found[1]) if found else 0, free_port()
        config = Path(folder) / "envoy.json"
        config.write_text(json.dumps(bootstrap(port, asked, upstream)), encoding="utf-8")
        words = [*WITH_US, envoy_binary(), "-c", str(config), "--concurrency", "1"]
        quiet = [*words, "--disable-hot-restart", "--log-level", "off"]
        with subprocess.Popen(quiet) as envoy:
            try:
                while not listening(port):
                    time.sleep(0.02)
                signal.signal(signal.SIGUSR1, lambda *_: edge.kill())
                sys.stdout.write(f"{port}\n")
                sys.stdout.flush()
                while True:
                    signal.pause()
            finally:
                envoy.terminate()
                edge.terminate()


if __name__ == "__main__":
    main(*sys.argv[1:])
