"""Chaos Mesh: an HTTPChaos for each fault, in the pods of what is called.

It can match a header only by its exact value, so never the signed context, whose value is another
each time. It matches ``x-ldfi-scenario`` instead, which nobody signs and no SDK carries along.

https://chaos-mesh.org/docs/simulate-http-chaos-on-kubernetes/
"""

from __future__ import annotations

import re
from typing import Any, Final

from ldfi.errors import NotExpressible
from ldfi.fit.protocol.points import Point
from ldfi.scenarios.export.mesh import ProxyFault
from ldfi.scenarios.scenario import Scenario

HEADER: Final = "x-ldfi-scenario"
SECONDS: Final = 60
"""How long it stays. Without a duration it would stay until somebody deletes it."""

WARNINGS: Final = (
    f"NOT SIGNED: whoever sends the header {HEADER} gets the faults. Let your edge take it out of "
    "requests from outside, or apply this only where nobody else is.",
    f"NOT CARRIED ALONG: SDKs carry `baggage`, not {HEADER}. Your services have to pass it on from "
    "the request to this call, or nothing fires.",
    "ANY CALLER: the fault is where the call arrives, whoever makes it.",
    "NO STATUS: an error is a connection that is cut, not an answer of 503.",
    f"LEASE: it ends by itself after {SECONDS} seconds, or when you delete it.",
    "COARSER ROUTES: a `*` in the path matches anything, and there is no proof that it fired.",
)


def resources(
    scenario: Scenario, faults: list[ProxyFault], namespace: str, label: tuple[str, str], port: int
) -> list[dict[str, Any]]:
    """Write the resources. ``label``: of the pods that are called. Raises NotExpressible."""
    return [
        _resource(scenario, number, fault, namespace, label, port)
        for number, fault in enumerate(faults, start=1)
    ]


def _resource(
    scenario: Scenario,
    number: int,
    this: ProxyFault,
    namespace: str,
    label: tuple[str, str],
    port: int,
) -> dict[str, Any]:
    if this.grpc:
        raise NotExpressible(
            f"{this.fault} is a call of gRPC; HTTPChaos speaks HTTP/1.1 only. Use ldfi-proxy"
        )
    action = {"delay": f"{this.delay_ms}ms"} if this.fault.kind == "delay" else {"abort": True}
    return {
        "apiVersion": "chaos-mesh.org/v1alpha1",
        "kind": "HTTPChaos",
        "metadata": {"name": f"ldfi-{_name(scenario.id)}-{number}", "namespace": namespace},
        "spec": {
            "mode": "all",
            "selector": {"namespaces": [namespace], "labelSelectors": {label[0]: label[1]}},
            "target": "Request",
            "port": port,
            "method": this.method,
            "path": Point.parse(this.fault.point).template or "/",
            "request_headers": {HEADER: scenario.id},
            **action,
            "duration": f"{SECONDS}s",
        },
    }


def _name(text: str) -> str:
    """Turn a text into part of a name in Kubernetes (RFC 1123)."""
    return re.sub(r"[^a-z0-9-]", "-", text.lower()).strip("-")[:40]
