"""What a signed request through somebody's system tells: pure functions.

Two requests of the control arm are sent, into which nothing is injected. The first shows which
calls are made; the second names them all, and who can make a call fail writes that it would have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ldfi.experiments.queries.diagnosis import NAMED, Checkup

SLOW: Final = 12.0
"""Seconds after which spans are late: by default each process exports every five."""

_EXPORT: Final = (
    "services export to LDFI's URL (OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf), and the edge's "
    "sampler keeps requests under experiment (OTEL_TRACES_SAMPLER=fit)"
)
_EDGE: Final = (
    "the edge needs fit.EdgeMiddleware and this very FIT_KEYS, and what stands in front of it must "
    "pass on `baggage`, `traceparent` and `x-device-id`"
)
_INJECTOR: Final = (
    "they need FIT_KEYS as this shell has it, fit.install() before their clients are used, and "
    "OTEL_PROPAGATORS=tracecontext,baggage all the way to them"
)


@dataclass(frozen=True, slots=True)
class Probe:
    """One request. ``status``: None where there was no answer, for the reason ``failure``.
    ``spans``: how many of anybody's came in meanwhile. ``seen``: its lineage, as the API shows it;
    ``after``: seconds after the answer when it was whole."""

    status: int | None
    failure: str = ""
    spans: int = 0
    seen: Mapping[str, Any] | None = None
    after: float = 0.0


def calls_of(seen: Mapping[str, Any]) -> list[str]:
    """List the points of a lineage, each once, in their order."""
    return list(dict.fromkeys(_points(seen["calls"])))


def of_first(url: str, probe: Probe) -> Iterator[Checkup]:
    """Look at a request that names no call: does it come through, and do its spans?"""
    if probe.status is None:
        yield Checkup("request", False, f"{url} does not answer: {probe.failure}", "is it up?")
        return
    yield Checkup("request", probe.status < 500, f"{url} answers {probe.status}", "repair it first")
    if probe.seen is not None:
        said = f"its spans were whole {probe.after:.1f} s after the answer"
        advice = "lower OTEL_BSP_SCHEDULE_DELAY (500), or raise LDFI_EXPORT_INTERVAL to what it is"
        late = probe.after > SLOW
        yield Checkup("its trace", not late, said, advice if late else "")
    elif probe.spans:
        said = f"it never came as a request of ours, though {probe.spans} spans came meanwhile"
        yield Checkup("its trace", False, said, _EDGE)
    else:
        said = "it never came, and no span of anything else did meanwhile"
        yield Checkup("its trace", False, said, _EXPORT)


def of_second(called: Sequence[str], probe: Probe) -> Iterator[Checkup]:
    """Look at a request that names every call of the first: who could have made one fail?"""
    if not called:
        said = "no call was seen in it: nothing can be injected"
        yield Checkup("its calls", False, said, "instrument its clients (OpenTelemetry)")
        return
    if probe.seen is None:
        yield Checkup("its calls", None, "a second request was not seen", "ask again")
        return
    would = {fault.partition("@")[2] for fault in probe.seen["would_fire"]}
    again = set(calls_of(probe.seen))
    lacking = [point for point in called if point in again and point not in would]
    could = len(would & set(called))
    if not lacking:
        yield Checkup("its calls", True, f"each of {could} could be made to fail")
        return
    services = ", ".join(sorted({point.partition(">")[0] for point in lacking}))
    more = f" and {len(lacking) - NAMED} more" if len(lacking) > NAMED else ""
    said = f"{could} of {len(called)} could be made to fail, not {', '.join(lacking[:NAMED])}{more}"
    yield Checkup("its calls", bool(could) and None, said, f"{services}: {_INJECTOR}")


def _points(calls: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for call in calls:
        yield call["call"]
        yield from _points(call.get("calls", ()))
