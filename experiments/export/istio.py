"""Istio: the same filter as for Envoy, as an EnvoyFilter for the sidecars of one caller.

https://istio.io/latest/docs/reference/config/networking/envoy-filter/
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ldfi.experiments.export import envoy


def envoy_filter(
    caller: str, host: str, port: int, namespace: str | None, source: Mapping[str, str]
) -> dict[str, Any]:
    """Write the resource. ``source`` are the labels of the pods that call."""
    name = f"ldfi-{re.sub('[^a-z0-9-]+', '-', caller.lower()).strip('-')}"
    return {
        "apiVersion": "networking.istio.io/v1alpha3",
        "kind": "EnvoyFilter",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": {
            "workloadSelector": {"labels": dict(source)},
            "configPatches": [_filter(caller), _cluster(host, port)],
        },
    }


def _filter(caller: str) -> dict[str, Any]:
    manager = "envoy.filters.network.http_connection_manager"
    router = {"name": "envoy.filters.http.router"}
    chain = {"filterChain": {"filter": {"name": manager, "subFilter": router}}}
    return {
        "applyTo": "HTTP_FILTER",
        "match": {"context": "SIDECAR_OUTBOUND", "listener": chain},
        "patch": {"operation": "INSERT_BEFORE", "value": envoy.http_filter(caller)},
    }


def _cluster(host: str, port: int) -> dict[str, Any]:
    return {
        "applyTo": "CLUSTER",
        "match": {"context": "SIDECAR_OUTBOUND"},
        "patch": {"operation": "ADD", "value": envoy.cluster(host, port)},
    }
