"""What is wrong with an installation, as far as the service itself can tell: pure functions.

Each takes what the API answers and says what it means. What no route tells is not guessed: whether
the services under test have the same keys. Which calls have no injector is known of services whose
injectors report; of others it shows when nothing fires.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from ldfi.analysis.words import length, percent
from ldfi.experiments.domain.traffic.class_traffic import WHY_ASIDE
from ldfi.fit.hosts import VARIABLE, may_reach, without_port
from ldfi.fit.protocol.points import Point, is_address

FEW: Final = 0.05
"""Share of traces that may go wrong: a few hundredths always do."""

ENOUGH: Final = 20
"""Traces from which on a share says anything."""

SILENT: Final = 600.0
"""Seconds without a request after which traffic counts as gone."""

MOSTLY: Final = 0.9
"""Share of requests that must go well for experiments to begin."""

NAMED: Final = 5
"""Points that are named; the others are counted."""

_SPANS: Final = (
    "services export to LDFI's URL over HTTP (OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf), or to "
    "its port for gRPC, with a token of role ingest; `ldfi init` prints what to tell them"
)
_DROPPED: Final = {
    "trace_without_root": "the edge must be traced, and have fit.EdgeMiddleware and fit.Sampler",
    "trace_incomplete": "sample by parent everywhere, and look whether an exporter's queue is full",
    "trace_unanswered": "sample by parent everywhere: some callees export no spans now and then",
    "trace_short_of_calls": "say in LDFI_EXPORT_INTERVAL how seldom services export",
    "join_unknown_trace": (
        "devices report the trace id of their request, and fit.Sampler keeps it; where a load"
        " balancer stamps traceparent …-00 (not sampled), set OTEL_TRACES_SAMPLER=always_on behind"
    ),
}
_UNSAMPLED: Final = (
    "whoever calls them says that nothing is sampled (traceparent …-00, as many load balancers"
    " stamp it), and they believe it: set OTEL_TRACES_SAMPLER=always_on where these requests"
    " arrive, or let the balancer stamp …-01, or no traceparent at all"
)
_SAMPLE: Final = re.compile(r'^ldfi_traces_total\{fate="(\w+)"\} (\S+)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Checkup:
    """One thing that was looked at. ``well``: None where nobody can say. ``advice``: what to do."""

    about: str
    well: bool | None
    said: str
    advice: str = ""

    def to_json(self) -> dict[str, Any]:
        """Write it for programs."""
        return asdict(self)


def of_keys(signing_id: str | None, fault: str = "") -> Checkup:
    """Look at FIT_KEYS of this shell; ``fault``: why they cannot be read."""
    if fault:
        return Checkup("keys", False, fault, "`ldfi init` makes some; FIT_KEYS is ID:SECRET")
    if signing_id is None:
        return Checkup("keys", None, "FIT_KEYS is not set here, so nothing is known of them")
    said = f"this shell signs with the key {signing_id}; the service cannot see what others have"
    return Checkup("keys", None, said, f"the edge and all services must know {signing_id} as well")


def of_status(status: Mapping[str, Any]) -> Iterator[Checkup]:
    """Look at what has arrived, who asks for rules, and whether anything is stopped."""
    spans, outcomes, well = (status[name] for name in ("spans", "outcomes", "went_well"))
    yield Checkup("spans", spans > 0, f"{spans} received since it started", "" if spans else _SPANS)
    yield from _of_grpc(status)
    if not outcomes and status.get("outcomes_from") == "root":
        said = "root spans say how requests went, where an answer of 200 may hide an error"
        yield Checkup("outcomes", None, said)
    elif not outcomes:
        advice = "devices report with a token of role devices, or set LDFI_OUTCOMES=root"
        yield Checkup("outcomes", None, "no device has reported; root spans may stand in", advice)
    else:
        fine = well >= MOSTLY * outcomes
        said = f"{outcomes} reported, {percent(well / outcomes)} of them good"
        repair = "repair first what fails by itself: experiments begin where most goes well"
        yield Checkup("outcomes", fine, said, "" if fine else repair)
    edges = status["edges"]
    ask = "the edge needs LDFI_URL, LDFI_TOKEN (role edge) and FIT_KEYS; its logger `fit` says more"
    said = f"{edges} ask for rules" if edges else "none asks for rules: nothing can be injected"
    yield Checkup("edges", edges > 0, said, "" if edges else ask)
    if status["halted"]:
        yield Checkup("halt", False, f"halted: {status['halted']}", "`ldfi resume`")
    if status["guardrail"]:
        yield Checkup("guardrail", False, f"breached: {status['guardrail']}", "`ldfi status`")
    older = status.get("by_kind_only", {})
    if older:
        said = "; ".join(f"{', '.join(each)} in {name}" for name, each in sorted(older.items()))
        advice = (
            "update fit there: calls of client libraries that it does not know count as reached"
        )
        told = f"report kinds of calls only, and no libraries: {said}"
        yield Checkup("injectors", None, told, advice)
    if silent := status.get("silent"):
        said = f"{', '.join(silent[:NAMED])}: injectors report, and no trace tells of any request"
        yield Checkup("sampling", False, said, _UNSAMPLED)
    for service, libraries in status.get("bare", {}).items():
        counts = ", ".join(f"{count:,} or more by {each}" for each, count in libraries.items())
        advice = (
            "background work has none; where requests make these calls, instrument the library,"
            " and pass the context on to the thread, pool or queue that makes them"
            " (threads and pools in Python: install opentelemetry-instrumentation-threading)"
        )
        yield Checkup("calls", None, f"{service}: {counts} ran in no trace at all", advice)
    if status.get("not_signed"):
        advice = "nothing is signed until a backup is restored, or `ldfi certificate adopt`"
        yield Checkup("signatures", False, status["not_signed"], advice)


def _of_grpc(status: Mapping[str, Any]) -> Iterator[Checkup]:
    """Look at what has come over gRPC: where spans are missing, or some have come that way."""
    port, exports = status.get("grpc_port", 0), status.get("grpc_exports", 0)
    if exports:
        yield Checkup("grpc", True, f"{exports} exports arrived by gRPC; port {port}")
    elif status["spans"]:
        return
    elif port:
        yield Checkup("grpc", None, f"nothing arrived by gRPC; port {port} takes OTLP")
    elif status.get("grpc_off"):
        yield Checkup("grpc", None, f"OTLP over gRPC is off: {status['grpc_off']}")


def of_traces(exposition: str, dropped: Mapping[str, int]) -> Iterator[Checkup]:
    """Look at what became of traces. ``exposition``: what Prometheus is told."""
    fates = {fate: float(count) for fate, count in _SAMPLE.findall(exposition)}
    cut = fates.get("cut", 0.0) + fates.get("rootless", 0.0)
    whole, late = fates.get("whole", 0.0), fates.get("late", 0.0)
    if not fates:
        yield Checkup("traces", None, "this process does not put traces together: ask the leader")
    elif cut + whole < ENOUGH:
        yield Checkup("traces", None, f"{cut + whole:.0f} came to an end: too few to say anything")
    else:
        shares = ("cut", cut / (cut + whole)), ("late", late / max(1.0, whole))
        said = ", ".join(f"{percent(share)} {name}" for name, share in shares)
        fine = all(share <= FEW for _, share in shares)
        advice = "say in LDFI_EXPORT_INTERVAL how seldom services export (OTEL_BSP_SCHEDULE_DELAY)"
        yield Checkup("traces", fine, f"{said} of {cut + whole:.0f}", "" if fine else advice)
    for reason, advice in _DROPPED.items():
        count = dropped.get(reason, 0)
        if count >= ENOUGH and count > FEW * (count + cut + whole):
            yield Checkup("dropped", False, f"{reason}: {count}", advice)


def of_classes(
    classes: Sequence[Mapping[str, Any]], forecast: Mapping[str, Any], now: float
) -> Iterator[Checkup]:
    """Look at request classes, and at what a campaign could decide on them."""
    if not classes:
        said = "no request class is known: it takes some dozen good requests of one"
        yield Checkup("classes", False, said, "look at spans, outcomes and traces")
        return
    silent = now - max(each["last_seen"] for each in classes)
    fresh = silent < SILENT
    said = f"{len(classes)} known, the last request {length(max(0.0, silent))} ago"
    yield Checkup("classes", fresh, said, "" if fresh else "is there any traffic?")
    for each in classes:
        if each["unfit"]:
            advice = "often an id in the path that is taken for a word, or a route that does two"
            yield Checkup("class", False, f"{each['name']}: {each['unfit']}", advice)
    yield from _of_injectors(classes)
    yield from _of_addresses(classes)
    yield from _of_hosts(classes)
    yield from _of_parents(classes)
    yield from _of_unseen(classes)
    for each in forecast["classes"]:
        if each["decides"] != "both":
            advice = "a larger --treatment or --window, or more traffic"
            yield Checkup("class", False, each["words"], advice)
    why = forecast["why_not"]
    start = "`ldfi campaign start --dry-run` tells more"
    said = f"would not start: {why}" if why else "may start"
    yield Checkup("campaign", not why, said, start if why else "")


def _of_addresses(classes: Sequence[Mapping[str, Any]]) -> Iterator[Checkup]:
    """Name procedures whose points differ by address alone: no client names a call so, and what is
    meant for one of them passes by another name."""
    replicas: dict[Point, set[str]] = {}
    for name in sorted({point for each in classes for point in each.get("support", ())}):
        point = Point.parse(name)
        if point.kind == "rpc" and is_address(point.peer):
            replicas.setdefault(replace(point, peer=""), set()).add(point.peer)
    several = {str(point): peers for point, peers in replicas.items() if len(peers) > 1}
    if several:
        listed = sorted(several)
        more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
        said = f"points of {', '.join(listed[:NAMED])}{more} differ by address alone"
        advice = (
            "faults are meant for the address and passed by the name that is called: in Go put "
            "fitgrpc.ClientHandler around the stats handler, so that spans name the target"
        )
        yield Checkup("names", False, said, advice)


def _of_hosts(classes: Sequence[Mapping[str, Any]]) -> Iterator[Checkup]:
    """Name the hosts that are called and get no failure context."""
    points = {Point.parse(name) for each in classes for name in each.get("support", ())}
    peers = {point.peer for point in points if point.kind in {"http", "rpc"} and point.peer}
    ports = {peer: peer.rpartition(":")[0] for peer in peers}  # an IPv6 address has no brackets
    barred = {peer for peer in peers if not may_reach(peer) and not may_reach(ports[peer])}
    if barred:
        listed = sorted(map(without_port, barred))
        more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
        said = f"no failure context is sent to {', '.join(listed[:NAMED])}{more}: public hosts"
        advice = (
            "calls there are made to fail as any; where such a host is yours and shall see the "
            f"context, set in the services that call it {VARIABLE}={','.join(listed)}"
        )
        yield Checkup("hosts", None, said, advice)


def _of_parents(classes: Sequence[Mapping[str, Any]]) -> Iterator[Checkup]:
    aside = (each.get("not_looked_at", {}) for each in classes)
    lost = sorted(
        {name for names in aside for name, why in names.items() if why == WHY_ASIDE["parentless"]}
    )
    if lost:
        advice = "update what exports their spans, or let them read the traceparent header"
        yield Checkup("parents", False, f"spans of {', '.join(lost)} name no parents", advice)


def _of_unseen(classes: Sequence[Mapping[str, Any]]) -> Iterator[Checkup]:
    """Say of each class what its traces do not tell. What may be somebody else's is no fault."""
    for each in classes:
        figure = each.get("unseen", {})
        if figure.get("line"):
            well = None if figure["share"] == 0.0 else False
            said = f"{each['name']}: {figure['line']}"
            yield Checkup("unseen", well, said, "; ".join(figure["advice"]))


def _of_injectors(classes: Sequence[Mapping[str, Any]]) -> Iterator[Checkup]:
    without: dict[str, str] = {}
    for each in classes:
        without |= each.get("no_injector", {})
    if without:
        listed = sorted(without)
        more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
        said = f"none at {', '.join(listed[:NAMED])}{more}: campaigns do not try these"
        advice = "; ".join(sorted({f"install {without[point]}" for point in listed[:NAMED]}))
        yield Checkup("injectors", None, said, advice)
