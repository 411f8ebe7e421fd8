"""Envoy: HTTP filters (v3) to put in front of the router, in the proxy beside the caller.

https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/fault_filter
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ldfi.experiments.export.mesh import ProxyFault

TYPE: Final = "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault"
NAME: Final = "ldfi.fault"
"""Of every filter: Envoy puts the metadata of a fault that fired under its filter's name."""
HTTP_STATUS: Final = 503
GRPC_STATUS: Final = 14
"""UNAVAILABLE."""

_ALWAYS: Final = {"numerator": 100, "denominator": "HUNDRED"}


def warnings(max_active: int) -> list[str]:
    """Say what Envoy loses, besides what every mesh does."""
    return [
        "RETRIES: the filter answers before Envoy's router, so Envoy neither retries an injected "
        "error nor applies its timeout to an injected delay.",
        f"LIMIT: of more than {max_active} requests failing at the same time the rest go through.",
    ]


def http_filters(faults: Sequence[ProxyFault], cluster: str, max_active: int) -> dict[str, Any]:
    """Write one filter for each fault, for requests bound for the upstream ``cluster``.

    At most ``max_active`` requests are held or failed at once by each filter; others go through.
    """
    return {"http_filters": [_filter(fault, cluster, max_active) for fault in faults]}


def _filter(this: ProxyFault, cluster: str, max_active: int) -> dict[str, Any]:
    query = r"(\?.*)?"
    return {
        "name": NAME,
        "typed_config": {
            "@type": TYPE,
            "upstream_cluster": cluster,
            "headers": [
                _header("baggage", {"safe_regex": {"regex": this.baggage}}),
                _header(":method", {"exact": this.method}),
                _header(":path", {"safe_regex": {"regex": this.path + query}}),
            ],
            "max_active_faults": max_active,
            **_action(this),
            "filter_metadata": {"fit.point": this.fault.point, "fit.fired": this.fault.kind},
        },
    }


def _header(name: str, match: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "string_match": match}


def _action(this: ProxyFault) -> dict[str, Any]:
    if this.fault.kind == "delay":
        return {"delay": {"fixed_delay": f"{this.delay_ms / 1000:.3f}s", "percentage": _ALWAYS}}
    status = {"grpc_status": GRPC_STATUS} if this.grpc else {"http_status": HTTP_STATUS}
    return {"abort": {**status, "percentage": _ALWAYS}}
