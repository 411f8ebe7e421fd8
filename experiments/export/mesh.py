"""A fault as a proxy of a service mesh can match it.

A proxy compares text: the raw ``baggage`` header, the method, the path. So a fault becomes three
expressions, in the syntax of RE2 (which Envoy and Istio both use), each of which has to match the
*whole* of its text. The expression for the baggage accepts failure contexts of the treatment arm
that name this fault in exactly this way (``docs/failure-context.md``), and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ldfi.experiments.errors import NotExpressible
from ldfi.fit.context import point_hash
from ldfi.fit.faults import Fault
from ldfi.fit.points import MAX_NAME_LENGTH, Point
from ldfi.kinds import KINDS

MAX_DELAY_MS: Final = 9_999_999
"""What a failure context has room for."""

WARNINGS: Final = (
    "NOT VERIFIED: a proxy checks neither the signature nor the expiry of a failure context. "
    "Whoever gets a `baggage` header of the right shape to this proxy fails the call. Take every "
    "context from outside away at the edge (fit.EdgeMiddleware does), or do not use this.",
    "NO LEASE: this stays until you remove it. `ldfi halt` stops the edge from stamping requests; "
    "it does not reach the proxy.",
    "NO PROOF: the proxy writes no `fit.fired` on spans and nothing for the control arm, so an "
    "experiment whose faults are injected here ends inconclusive. Use it to reproduce a finding.",
    "COARSER ROUTES: a `*` in the route matches any one segment, not only identifiers.",
)
"""What any mesh loses. ``docs/mesh.md`` says more."""


@dataclass(frozen=True, slots=True)
class ProxyFault:
    """A fault and what a proxy has to match for it. The expressions are RE2's."""

    fault: Fault
    caller: str
    peer: str
    delay_ms: int
    grpc: bool
    method: str
    path: str
    """An expression for the path, less its query."""

    @property
    def baggage(self) -> str:
        """An expression for the whole of a ``baggage`` header."""
        argument = str(self.delay_ms) if self.fault.kind == "delay" else ""
        listed = f"{self.fault.kind[0]}{point_hash(self.fault.point)}{argument}"
        return (
            r"(.*,)?\s*fit=1\.[\w-]+\.[\w-]+\.t\.[0-9]+\."
            rf"([\w-]+~)*{listed}(~[\w-]+)*\.[\w-]+\s*([,;].*)?"
        )


def proxy_faults(faults: Sequence[Fault], delay_ms: int) -> list[ProxyFault]:
    """List what the proxy beside one caller has to match, in front of one upstream.

    ``delay_ms`` is the length of delays, as the campaign or scenario that stamps requests has it.
    Raises NotExpressible.
    """
    if not 1 <= delay_ms <= MAX_DELAY_MS:
        raise NotExpressible(f"a delay of {delay_ms} ms; a context has room for 1 to 9,999,999")
    found = [_proxy_fault(fault, delay_ms) for fault in dict.fromkeys(faults)]
    for what, values in (
        ("caller", {each.caller for each in found}),
        ("upstream", {each.peer for each in found}),
    ):
        if len(values) > 1:
            raise NotExpressible(
                f"one export is for one {what}, and these faults have {len(values)}: "
                f"{', '.join(sorted(values))}; export them one by one"
            )
    if len({each.fault.point for each in found}) < len(found):
        raise NotExpressible("a failure context holds one fault a point, and here are more")
    return found


def _proxy_fault(fault: Fault, delay_ms: int) -> ProxyFault:
    point = Point.parse(fault.point)
    if point.kind not in ("http", "rpc"):
        raise NotExpressible(
            f"{fault} is at a point of kind {point.kind!r}, which does not pass a proxy of the "
            "mesh; only http and rpc do"
        )
    if fault.kind not in KINDS:
        raise NotExpressible(
            f"{fault} is of the kind {fault.kind}, which is not exported: a proxy's abort would be "
            f"another failure. Use fit in {point.caller}"
        )
    if fault.first:
        raise NotExpressible(
            f"{fault} hits only the first {fault.first} calls of a request; a proxy does not count "
            f"calls. Use fit in {point.caller}, or export {fault.kind}@{fault.point} (every call)"
        )
    if len(fault.point) >= MAX_NAME_LENGTH:
        raise NotExpressible(f"the name of {fault} was cut; a proxy would need all of its route")
    grpc = point.kind == "rpc"
    return ProxyFault(
        fault,
        point.caller,
        point.peer,
        delay_ms,
        grpc,
        "POST" if grpc else point.operation,
        _path(f"{point.template}/{point.operation}" if grpc else point.template or "/"),
    )


def _path(template: str) -> str:
    return "/".join("[^/?]+" if part == "*" else _segment(part) for part in template.split("/"))


def _segment(part: str) -> str:
    return "[^/?]*".join(map(re.escape, part.split("*")))
