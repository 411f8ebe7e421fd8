"""A fault as something outside of the caller can inject it that reads no failure context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ldfi.errors import NotExpressible
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.kinds import KINDS, draws, family
from ldfi.fit.protocol.points import MAX_NAME_LENGTH, Point

MAX_DELAY_MS: Final = 9_999_999
"""What a failure context has room for."""


@dataclass(frozen=True, slots=True)
class ProxyFault:
    """A fault and what has to be matched for it."""

    fault: Fault
    caller: str
    peer: str
    delay_ms: int
    grpc: bool
    method: str


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
    if family(fault.kind) == "slow":
        raise NotExpressible(
            f"{fault} is a body that comes slowly, and a proxy of the mesh delays requests alone: "
            f"that is another failure. Use fit in {point.caller}, or ldfi-proxy as a reverse proxy"
        )
    if draws(fault.kind):
        raise NotExpressible(
            f"{fault} draws another length for each request; here a delay has one. Export "
            f"delay@{fault.point}"
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
    )
