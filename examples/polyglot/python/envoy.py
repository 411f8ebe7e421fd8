"""Envoy on loopback at ``PORT``, in front of ``UPSTREAM``: with the filter that ``ldfi export
envoy`` writes for the calls of ``CALLER``, which asks the processor at ``PROCESSOR``.

It becomes Envoy, so whoever ends this process ends that.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from ldfi.scenarios.export.envoy import listener

TYPES = "type.googleapis.com/envoy.extensions.filters"


def configuration(caller: str, port: int, upstream: int, processor: int) -> dict[str, Any]:
    exported = listener(caller, "127.0.0.1", processor)
    router = {
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": f"{TYPES}.http.router.v3.Router"},
    }
    passing = {"match": {"prefix": "/"}, "route": {"cluster": "upstream"}}
    manager = {
        "@type": f"{TYPES}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "polyglot",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [passing]}]},
        "http_filters": [*exported["http_filters"], router],
    }
    filters = [{"name": "http", "typed_config": manager}]
    listening = {"address": address(port), "filter_chains": [{"filters": filters}]}
    upstreams = {
        "name": "upstream",
        "load_assignment": {
            "cluster_name": "upstream",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address(upstream)}}]}],
        },
    }
    clusters = [upstreams, *exported["clusters"]]
    return {"static_resources": {"listeners": [listening], "clusters": clusters}}


def address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def main() -> None:
    ports = (int(os.environ[name]) for name in ("PORT", "UPSTREAM", "PROCESSOR"))
    document = configuration(os.environ["CALLER"], *ports)
    written = Path(tempfile.mkdtemp(prefix="polyglot-")) / "envoy.json"
    written.write_text(json.dumps(document), encoding="utf-8")
    words = [sys.argv[1], "-c", str(written), "--concurrency", "1", "--disable-hot-restart"]
    os.execv(words[0], words)  # noqa: S606 - the binary that we were told


if __name__ == "__main__":
    main()
