"""Istio: the same filters as for Envoy, as an EnvoyFilter: for the sidecars of one caller, or for a
gateway.

https://istio.io/latest/docs/reference/config/networking/envoy-filter/
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from ldfi.scenarios.export import envoy

Context = Literal["SIDECAR_OUTBOUND", "GATEWAY"]


def envoy_filter(
    caller: str, host: str, port: int, namespace: str | None, source: Mapping[str, str]
) -> dict[str, Any]:
    """Write the resource for a caller. ``source`` are the labels of the pods that call."""
    name = re.sub("[^a-z0-9-]+", "-", caller.lower()).strip("-")
    filters, where = [envoy.http_filter(caller)], envoy.cluster(host, port)
    return _resource(name, namespace, source, "SIDECAR_OUTBOUND", filters, where)


def gateway(
    host: str, port: int, namespace: str | None, source: Mapping[str, str]
) -> dict[str, Any]:
    """Write the resource for a gateway. ``source`` are the labels of its pods."""
    filters, where = envoy.gateway_filters(), envoy.cluster(host, port, envoy.EDGE)
    return _resource("edge", namespace, source, "GATEWAY", filters, where)


def _resource(
    name: str,
    namespace: str | None,
    source: Mapping[str, str],
    context: Context,
    filters: list[dict[str, Any]],
    where: dict[str, Any],
) -> dict[str, Any]:
    patches = [_filter(each, context) for each in filters]
    return {
        "apiVersion": "networking.istio.io/v1alpha3",
        "kind": "EnvoyFilter",
        "metadata": {"name": f"ldfi-{name}", **({"namespace": namespace} if namespace else {})},
        "spec": {
            "workloadSelector": {"labels": dict(source)},
            "configPatches": [*patches, _cluster(where, context)],
        },
    }


def _filter(made: dict[str, Any], context: Context) -> dict[str, Any]:
    manager = "envoy.filters.network.http_connection_manager"
    router = {"name": "envoy.filters.http.router"}
    chain = {"filterChain": {"filter": {"name": manager, "subFilter": router}}}
    return {
        "applyTo": "HTTP_FILTER",
        "match": {"context": context, "listener": chain},
        "patch": {"operation": "INSERT_BEFORE", "value": made},
    }


def _cluster(made: dict[str, Any], context: Context) -> dict[str, Any]:
    return {
        "applyTo": "CLUSTER",
        "match": {"context": context},
        "patch": {"operation": "ADD", "value": made},
    }
