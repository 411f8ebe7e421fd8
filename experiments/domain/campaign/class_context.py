"""What every result of a class is seen against: its traffic, and what all results show together.

A result says what fired and what was relied on. What follows from that depends on more: which
points share a system, what stands behind what, which callers give up. All of that grows with
traffic and with later results, so it is gathered first, and results are learned against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ldfi.experiments.domain.campaign.kinds import Kinds
from ldfi.experiments.domain.campaign.result import ExperimentResult
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.class_traffic import Traffic
from ldfi.experiments.domain.traffic.injectors import Injectors
from ldfi.experiments.domain.traffic.observed_kinds import shown
from ldfi.experiments.domain.traffic.patterns import matching
from ldfi.experiments.domain.traffic.topology import Topology
from ldfi.fit.protocol.kinds import FaultKind


@dataclass(frozen=True, slots=True)
class ClassContext:
    """Equal ones let the same results mean the same."""

    supports: tuple[tuple[frozenset[str], frozenset[str]], ...]
    """What the traffic relies on: faults, and what had failed by itself."""
    called: frozenset[str]
    """Every point that a request in which nothing failed may call."""
    points: frozenset[str]
    """Every point seen, in traffic or in experiments."""
    implications: frozenset[tuple[str, str]]
    """Pairs (delay, error) of points whose callers were seen to give up."""
    unlike: frozenset[str]
    """Points at which kinds that are assumed to be alike are not."""
    proxied: frozenset[str]
    """Points before which a proxy stands, which answers for a dependency that is dead."""
    shown: tuple[tuple[str, tuple[FaultKind, ...]], ...]
    """By point, the kinds of failure that nature has shown there and that can be injected."""
    limited: tuple[tuple[str, frozenset[str], str], ...]
    """By point, the words of the kinds that injectors can bring about there: none at all where it
    has no injector; and why not, where that is known. What is not named here is not limited, as far
    as anybody knows."""
    known_as: tuple[int, int]
    """Which topology, and how often it has changed."""
    taken_in: frozenset[str]
    """Points whose calls run in traces of their own, which a person has said to be of these
    requests: they are relied on, as far as anybody knows, and nothing can be injected there."""
    after_answer: frozenset[str]
    """Points that requests reach only where nobody waits for them any more. What fails there may
    hurt the device later, and nothing can be injected there."""
    topology: Topology = field(compare=False)
    traces: tuple[str, ...] = field(compare=False)
    """An example of each of the supports."""

    @property
    def given_up(self) -> frozenset[str]:
        """Points whose callers do not wait for ever."""
        return frozenset(delay.partition("@")[2] for delay, _ in self.implications)


def class_context(
    traffic: Traffic, results: Sequence[ExperimentResult], settings: Settings, injectors: Injectors
) -> ClassContext:
    """Return the context in which results of a class are read: from its traffic and the results."""
    frequent = tuple(traffic.frequent())
    seen = {f.partition("@")[2] for relied_on, _, _ in frequent for f in relied_on}
    taken_in = traffic.taken_in - seen
    after_answer = traffic.after_answer() - seen - taken_in
    beyond = taken_in | after_answer
    more = frozenset(f"{kind}@{point}" for kind in ("error", "delay") for point in beyond)
    frequent = tuple((relied_on | more, failed, trace) for relied_on, failed, trace in frequent)
    faults = {fault for relied_on, _, _ in frequent for fault in relied_on}
    implications: set[tuple[str, str]] = set()
    for result in results:
        faults |= result.relied_on
        implications |= result.implications
    topology = traffic.topology
    points = frozenset(fault.partition("@")[2] for fault in faults)
    return ClassContext(
        supports=tuple((relied_on, failed) for relied_on, failed, _ in frequent),
        called=traffic.usually_called(),
        points=points,
        implications=frozenset(implications),
        unlike=Kinds(settings.kinds, settings.alike).unlike(results),
        proxied=_proxied(frequent, settings.proxied),
        shown=tuple(sorted(shown(failures for _, failures, _ in frequent).items())),
        limited=(
            *injectors.limits(points - beyond),
            *((point, frozenset[str](), "") for point in sorted(beyond)),
        ),
        known_as=(id(topology), topology.changes),
        taken_in=taken_in,
        after_answer=after_answer,
        topology=topology,
        traces=tuple(trace_id for _, _, trace_id in frequent),
    )


def _proxied(
    seen: Iterable[tuple[frozenset[str], frozenset[str], str]], patterns: tuple[str, ...]
) -> frozenset[str]:
    """Return the points whose callee's proxy answers 503 for a dead dependency: those declared,
    and those where that answer was seen and a refused connection never was."""
    listed = list(seen)
    failed = {fault for _, failures, _ in listed for fault in failures}
    faults = failed | {fault for relied_on, _, _ in listed for fault in relied_on}
    points = {fault.partition("@")[2] for fault in faults}
    named = {point for point in points if matching(patterns, [point]) is not None}
    return frozenset(
        named | {p for p in points if f"status:503@{p}" in failed and f"refused@{p}" not in failed}
    )
