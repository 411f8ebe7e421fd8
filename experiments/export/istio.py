"""Istio: a VirtualService for one host, with a route for each fault and one for all else.

https://istio.io/latest/docs/reference/config/networking/virtual-service/
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ldfi.experiments.export.mesh import ProxyFault

HTTP_STATUS: Final = 503
GRPC_STATUS: Final = "UNAVAILABLE"

WARNINGS: Final = (
    "RETRIES AND TIMEOUTS OFF: where a fault is set on a route, Istio applies neither the retries "
    "nor the timeout of that route. What your callers see may differ from a real failure.",
    "ROUTES: a host has one VirtualService. Where yours exists, put the routes with a `fault` in "
    "front of its own, each with the `route` that its requests take now.",
)

_ALWAYS: Final = {"value": 100}
"""Without a percentage Istio hits nobody."""


def virtual_service(
    faults: Sequence[ProxyFault], host: str, namespace: str | None, source: Mapping[str, str]
) -> dict[str, Any]:
    """Write the resource. ``source`` are the labels of the pods that call."""
    names = "\n".join(str(fault.fault) for fault in faults)
    name = f"ldfi-{hashlib.sha256(names.encode()).hexdigest()[:8]}"
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": {
            "hosts": [host],
            "http": [
                *({**_fault(fault, source), **_to(host)} for fault in faults),
                _to(host),
            ],
        },
    }


def _to(host: str) -> dict[str, Any]:
    return {"route": [{"destination": {"host": host}}]}


def _fault(this: ProxyFault, source: Mapping[str, str]) -> dict[str, Any]:
    return {
        "match": [
            {
                "headers": {"baggage": {"regex": this.baggage}},
                "method": {"exact": this.method},
                "uri": {"regex": this.path},
                "sourceLabels": dict(source),
            }
        ],
        "fault": _action(this),
    }


def _action(this: ProxyFault) -> dict[str, Any]:
    if this.fault.kind == "delay":
        fixed = f"{this.delay_ms / 1000:.3f}s"
        return {"delay": {"percentage": _ALWAYS, "fixedDelay": fixed}}
    status = {"grpcStatus": GRPC_STATUS} if this.grpc else {"httpStatus": HTTP_STATUS}
    return {"abort": {"percentage": _ALWAYS, **status}}
